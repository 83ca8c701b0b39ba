#define _GNU_SOURCE 1
#include "cr_tx.h"

#include <stdio.h>

#define OPEN_MAX 16

enum tx_way tx_way;

static MYSQL *opened[OPEN_MAX];

void tx_world_begin(void)
{
	world_begin();
	db_run(world.admin, "CREATE TABLE ledger (id INT PRIMARY KEY) ENGINE=InnoDB");
}

void tx_world_end(void)
{
	/* Before the world ends: dropping the schema would wait for the transactions of these
	 * connections. */
	for (int i = 0; i < OPEN_MAX; i++)
		if (opened[i])
			mysql_close(opened[i]);
	world_end();
}

bool tx_way_unknown(void)
{
	const char *sanitizer = getenv("BIZLOCK_SANITIZE");
	char *found;
	bool unknown;

	/* For sanitizers, which look at memory and threads, all three ways are the same, and each
	 * takes long. */
	if (sanitizer && *sanitizer)
		return tx_way != TX_REPEATABLE_READ;
	if (tx_way != TX_SNAPSHOT)
		return false;
	found = db_text(world.admin, "SHOW VARIABLES LIKE 'innodb_snapshot_isolation'");
	unknown = !found[0];
	free(found);
	return unknown;
}

/* ---- connections ------------------------------------------------------------ */

static void isolate(MYSQL *tx)
{
	db_run(tx, "SET SESSION TRANSACTION ISOLATION LEVEL %s",
	       tx_way == TX_READ_COMMITTED ? "READ COMMITTED" : "REPEATABLE READ");
	if (tx_way == TX_SNAPSHOT)
		db_run(tx, "SET SESSION innodb_snapshot_isolation = ON");
}

static MYSQL *connect_to(const struct server *at, const char *schema, unsigned long flags,
                         unsigned read_s)
{
	int i = 0;

	while (i < OPEN_MAX && opened[i])
		i++;
	if (i == OPEN_MAX)
		die("too many connections");
	opened[i] = db_connect(at, schema, flags, read_s);
	isolate(opened[i]);
	return opened[i];
}

MYSQL *tx_connect(const struct server *at, const char *schema, unsigned long flags)
{
	return connect_to(at, schema, flags, 4 * PATIENCE_MS / 1000);
}

MYSQL *tx_open(void)
{
	return tx_connect(&world.at, world.schema, 0);
}

MYSQL *tx_new(void)
{
	MYSQL *tx = tx_open();

	tx_begin(tx, 0);
	return tx;
}

MYSQL *tx_through(const struct proxy *p, unsigned long flags)
{
	struct server at = proxy_address(p);

	return tx_connect(&at, world.schema, flags);
}

MYSQL *tx_hasty(const struct proxy *p, unsigned long flags)
{
	struct server at = proxy_address(p);

	return connect_to(&at, world.schema, flags, 1);
}

void tx_close(MYSQL *tx)
{
	for (int i = 0; i < OPEN_MAX; i++)
		if (opened[i] == tx)
			opened[i] = NULL;
	mysql_close(tx);
}

/* ---- transactions ------------------------------------------------------------ */

void tx_begin(MYSQL *tx, int id)
{
	db_run(tx, "START TRANSACTION");
	db_number(tx, "SELECT COUNT(*) FROM `%s`.ledger", world.schema);
	if (id)
		db_run(tx, "INSERT INTO `%s`.ledger VALUES (%d)", world.schema, id);
}

/* The answer to a statement carries the status; an error does not. */
bool tx_is_open(MYSQL *tx)
{
	db_run(tx, "DO 0");
	return tx->server_status & SERVER_STATUS_IN_TRANS;
}

bool ledger_has(int id)
{
	return db_number(world.admin, "SELECT COUNT(*) FROM ledger WHERE id = %d", id) == 1;
}

void tx_commits(MYSQL *tx, int id)
{
	cr_assert(tx_is_open(tx), "the transaction is gone");
	cr_assert(!ledger_has(id), "it was committed");
	db_run(tx, "COMMIT");
	cr_assert(ledger_has(id), "what it wrote is gone");
}

void nothing_is_left_of(MYSQL *tx, int id)
{
	cr_assert(!tx_is_open(tx), "the transaction is still open");
	cr_assert(!ledger_has(id), "what it wrote can be seen");
	db_run(world.admin, "SET SESSION innodb_lock_wait_timeout = 1");
	cr_assert(db_try(world.admin, "INSERT INTO ledger VALUES (%d)", id), "it is locked: %s",
	          mysql_error(world.admin));
	db_run(world.admin, "DELETE FROM ledger WHERE id = %d", id);
}

/* ---- calls -------------------------------------------------------------------- */

int tx_call(enum tx_call which, bizlock *b, bizlock_key key, MYSQL *tx)
{
	switch (which) {
	case ROW_LOCK:
		return bizlock_row_lock(b, key, tx, 0);
	case FENCE:
		return bizlock_fence(b, key, NULL, tx);
	default:
		return bizlock_commit(b, key, NULL, tx);
	}
}

bool row_is_locked(bizlock *b, bizlock_key key)
{
	MYSQL *tx = tx_new();
	int rc = bizlock_row_lock(b, key, tx, 0);

	cr_assert(rc == BIZLOCK_OK || rc == BIZLOCK_BUSY, "%s", bizlock_errmsg(b));
	db_run(tx, "ROLLBACK"); /* when close returns, the server may not have noticed */
	tx_close(tx);
	return rc == BIZLOCK_BUSY;
}

static void *run(void *arg)
{
	struct tx_thread *t = arg;

	t->rc = bizlock_row_lock(t->b, KEY(t->id), t->tx, t->flags);
	if (t->rc != BIZLOCK_OK)
		snprintf(t->errmsg, sizeof(t->errmsg), "%s", bizlock_errmsg(t->b));
	atomic_store(&t->done, true);
	return NULL;
}

void row_lock_start(struct tx_thread *t, bizlock *b, const char *id, MYSQL *tx, uint32_t flags)
{
	*t = (struct tx_thread){.b = b, .id = id, .tx = tx, .flags = flags};
	if (pthread_create(&t->thread, NULL, run, t) != 0)
		die("no thread");
}

int row_lock_join(struct tx_thread *t)
{
	eventually(atomic_load(&t->done));
	pthread_join(t->thread, NULL);
	return t->rc;
}
