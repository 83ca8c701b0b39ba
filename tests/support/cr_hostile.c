#define _GNU_SOURCE 1
#include "cr_hostile.h"

#include <stdio.h>

#include "cr_findings.h"
#include "cr_keyset.h"
#include "cr_tx.h"

#define PASSWORD "c0rrect-horse"
#define LEASE_MS 600000
#define LONGER_MS 900000
#define KEYS 4
#define MANY 8
#define ODD "k\xc3\xa9" /* other bytes in latin1 */
#define FENCE 1000      /* fences that others drew before */

static struct own_server server;
static const char *setting; /* the one that is tried */
static unsigned long long last_fence;
static MYSQL *other; /* has a row locked */

void hostile_end(void)
{
	if (other)
		mysql_close(other); /* else dropping the schema would wait for it */
	if (world.admin)
		tx_world_end();
	own_server_end(&server);
}

#define holds(cond) cr_assert((cond), "%s: not so: %s", setting, #cond)
#define answers(want, b, call)                                                                     \
	do {                                                                                       \
		int got_ = (call);                                                                 \
		cr_assert(got_ == BIZLOCK_##want, "%s: %s: %s, not BIZLOCK_%s: %s", setting,       \
		          #call, bizlock_err_name(got_), #want, bizlock_errmsg(b));                \
	} while (0)

/* ---- what is tried ------------------------------------------------------------------ */

static long long held(void)
{
	return db_number(
	        world.admin,
	        "SELECT COUNT(*) FROM biz_lock WHERE biz_type = 'test' AND NOT " FREE_ROWS);
}

static bool lasts(const char *id, long long ms)
{
	long long left_us = row_of(&world, KEY(id)).left_us;

	return left_us > (ms - PATIENCE_MS) * 1000 && left_us <= ms * 1000;
}

/* Everything about one key is in its row, at once, for all to see. */
static void one_key(bizlock *b, bizlock *rival)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct row row;

	answers(OK, b, acquire(b, ODD, .lease_ms = LEASE_MS, .grant = &grant));
	row = row_of(&world, KEY(ODD));
	holds(row.there && row.depth == 1 && row.fence == grant.fence);
	holds(grant.fence > last_fence);
	holds(lasts(ODD, LEASE_MS));
	last_fence = grant.fence;
	answers(BUSY, rival, acquire(rival, ODD, .lease_ms = LEASE_MS));
	answers(OK, b, acquire(b, ODD, .lease_ms = LEASE_MS));
	holds(row_of(&world, KEY(ODD)).depth == 2);
	answers(OK, b, bizlock_renew(b, KEY(ODD), NULL, LONGER_MS));
	holds(lasts(ODD, LONGER_MS));
	answers(OK, b, bizlock_verify(b, KEY(ODD), NULL));
	answers(OK, b, bizlock_release(b, KEY(ODD), NULL, NULL));
	holds(row_of(&world, KEY(ODD)).depth == 1);
	answers(OK, b, bizlock_release(b, KEY(ODD), NULL, NULL));
	holds(held() == 0);
}

static void several_keys(bizlock *b, bizlock *rival)
{
	struct keyset set;

	keyset_make(&set, KEYS, "set");
	answers(OK, b, keyset_acquire(b, &set, .lease_ms = LEASE_MS));
	holds(held() == KEYS);
	for (size_t i = 0; i < KEYS; i++) {
		holds(set.grants[i].fence > last_fence && lasts(set.ids[i], LEASE_MS));
		holds(row_of(&world, set.keys[i]).fence == set.grants[i].fence);
	}
	for (size_t i = 0; i < KEYS; i++)
		if (set.grants[i].fence > last_fence)
			last_fence = set.grants[i].fence;
	keyset_forget(&set);
	answers(BUSY, rival, keyset_acquire(rival, &set, .lease_ms = LEASE_MS));
	answers(OK, b, keyset_release(b, &set, NULL));
	holds(held() == 0);
}

/* Threads whose requests travel together. */
static void many_threads(bizlock *b)
{
	struct call calls[MANY];
	char ids[MANY][8];

	for (int releases = 0; releases <= 1; releases++) {
		for (int i = 0; i < MANY; i++) {
			snprintf(ids[i], sizeof(ids[i]), "b%d", i);
			if (releases)
				call_start_release(&calls[i]);
			else
				call_start(&calls[i], b, ids[i], .wait_ms = -1, .owner = ids[i]);
		}
		for (int i = 0; i < MANY; i++)
			cr_assert_eq(call_join(&calls[i]), BIZLOCK_OK, "%s: %s", setting,
			             calls[i].errmsg);
		holds(held() == (releases ? 0 : MANY));
	}
}

/* The caller's session has inherited the setting, too. What the setting does there is the caller's
 * own affair, but bizlock's answers must be true, and the session must work as before. */
static void transaction(bizlock *b, const struct server *at, unsigned long flags)
{
	MYSQL *tx = tx_connect(at, world.schema, flags);
	bool open = db_try(tx, "START TRANSACTION READ WRITE") &&
	            db_try(tx, "INSERT INTO `%s`.ledger VALUES (1)", world.schema);

	answers(OK, b, acquire(b, "tx", .lease_ms = LEASE_MS));
	if (open) {
		answers(OK, b, bizlock_row_lock(b, KEY("tx"), tx, 0));
		answers(OK, b, bizlock_fence(b, KEY("tx"), NULL, tx));
		answers(OK, b, bizlock_commit(b, KEY("tx"), NULL, tx));
		holds(ledger_has(1));
		holds(!tx_is_open(tx));
		db_run(world.admin, "DELETE FROM ledger WHERE id = 1");
		db_run(tx, "START TRANSACTION READ WRITE");
		db_run(tx, "INSERT INTO `%s`.ledger VALUES (2)", world.schema);
		db_run(world.admin,
		       "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND"
		       " WHERE biz_type = 'test' AND biz_id = 'tx'");
		answers(LOST, b, bizlock_commit(b, KEY("tx"), NULL, tx));
		holds(!tx_is_open(tx) && !ledger_has(2));
	}
	tx_close(tx);
	db_run(world.admin, "DELETE FROM biz_lock WHERE biz_type = 'test' AND biz_id = 'tx'");
	answers(LOST, b, bizlock_release(b, KEY("tx"), NULL, NULL));
}

static int count(void *arg, const bizlock_info *info)
{
	(void)info;
	++*(int *)arg;
	return 0;
}

static int see_run(void *arg, const bizlock_run *run)
{
	*(bizlock_run *)arg = *run;
	return 0;
}

static void recording(bizlock *b)
{
	bizlock_run_result done = BIZLOCK_RUN_RESULT_INIT;
	bizlock_run seen = {.runs = 0};

	done.outcome = BIZLOCK_RUN_DONE;
	answers(OK, b, bizlock_run_begin(b, KEY("a"), "task"));
	answers(OK, b, bizlock_each_run(b, "test", "a", see_run, &seen));
	holds(seen.outcome == BIZLOCK_RUN_RUNNING && seen.began_us > 0 && !seen.ended_us);
	answers(OK, b, bizlock_run_end(b, KEY("a"), "task", &done));
	answers(OK, b, bizlock_each_run(b, NULL, NULL, see_run, &seen));
	holds(seen.outcome == BIZLOCK_RUN_DONE && seen.succeeded_us == seen.ended_us);
	holds(seen.runs == 1 && seen.failures == 0 && seen.failures_in_row == 0);
	db_run(world.admin, "DELETE FROM biz_run WHERE biz_type = 'test' AND biz_id = 'a'");
}

static void looking_after(bizlock *b)
{
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	bizlock_reap_result reaped = BIZLOCK_REAP_RESULT_INIT;
	int seen = 0;

	opts.older_than_ms = 0;
	answers(OK, b, acquire_as(b, "a", "task"));
	answers(OK, b, acquire_as(b, "b", "task"));
	answers(OK, b, acquire_as(b, "c", "task"));
	answers(OK, b, bizlock_each(b, "test", count, &seen));
	holds(seen == 3);
	recording(b);
	db_run(world.admin, "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND"
	                    " WHERE biz_type = 'test' AND biz_id IN ('b', 'c')");
	answers(OK, b, bizlock_reap(b, &opts, &reaped));
	holds(held() == 1 && reaped.leases == 2);
	answers(OK, b, bizlock_break(b, KEY("a"), row_of(&world, KEY("a")).fence));
	holds(held() == 0);
}

static void tables(const struct world *plain)
{
	bizlock *b = client_new(plain, OPTIONS("table_prefix", "new_"));
	struct findings f;

	answers(OK, b, bizlock_migrate(b));
	answers(OK, b, bizlock_migrate(b));
	answers(OK, b, bizlock_open(b));
	bizlock_close(b);
	f = doctor_of(plain, OPTIONS("table_prefix", "new_"), BIZLOCK_OK);
	expect_good(&f, SERVERS_OWN " inherited");
	db_run(world.admin, "DROP TABLE new_biz_lock, new_biz_row_lock, new_biz_lock_schema, "
	                    "new_biz_run");
}

/* Another user's row that is locked all the time. A statement that reads more rows than those of
 * its own keys waits for this one. */
static void lock_a_row(void)
{
	other = db_open(&world.at, world.schema);
	db_run(other, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;"
	              "START TRANSACTION;"
	              "SELECT 1 FROM biz_lock WHERE biz_type = 'locked' FOR UPDATE;"
	              "INSERT INTO biz_run (biz_id, biz_type, fence, owner, outcome, began_at, "
	              "runs, since_success) VALUES ('a', 'locked', 1, '', 'done', "
	              "UTC_TIMESTAMP(6), 1, 1)");
}

void hostile_works(const struct world *plain, const char *what, bool interrupts)
{
	bizlock *b = client_new(plain, OPTIONS("renew", "off"));
	bizlock *rival = client_new(&world, NULL);

	setting = what;
	/* The statement that undoes the setting is interrupted, too, at times. */
	if (interrupts) {
		eventually(bizlock_open(b) == BIZLOCK_OK);
		eventually(bizlock_open(rival) == BIZLOCK_OK);
	} else {
		answers(OK, b, bizlock_open(b));
		answers(OK, rival, bizlock_open(rival));
	}
	one_key(b, rival);
	several_keys(b, rival);
	many_threads(b);
	several_keys(b, rival);
	one_key(b, rival);
	if (!interrupts) {
		transaction(b, &plain->at, 0);
		transaction(b, &plain->at, CLIENT_MULTI_STATEMENTS);
	}
	looking_after(b);
	bizlock_close(b);
	bizlock_close(rival);
	tables(plain);
}

struct world hostile_begin(void)
{
	struct world plain;

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	own_server_start(&server, "");
	world_make(&world, &server.at);
	world_migrate(&world);
	db_run(world.admin,
	       "CREATE TABLE ledger (id INT PRIMARY KEY) ENGINE=InnoDB;"
	       "INSERT INTO biz_lock (biz_id, biz_type, fence, owner, reentrant, timeout,"
	       " gmt_create, gmt_modified) VALUES ('m', 'locked', %d, 'other', 1,"
	       " '2037-01-01', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
	       FENCE);
	last_fence = FENCE;
	for (const char *const *host = (const char *const[]){"%", "localhost", NULL}; *host; host++)
		db_run(world.admin,
		       "CREATE USER '%s'@'%s' IDENTIFIED BY '" PASSWORD "';"
		       "GRANT ALL ON `%s`.* TO '%s'@'%s'",
		       world.schema, *host, world.schema, world.schema, *host);
	lock_a_row();
	plain = world;
	snprintf(plain.at.user, sizeof(plain.at.user), "%s", world.schema);
	snprintf(plain.at.password, sizeof(plain.at.password), PASSWORD);
	return plain;
}
