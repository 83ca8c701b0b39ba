/* Transactions on one node of a cluster, takeovers on the other. */
#define _GNU_SOURCE 1
#include <bizlock_tx.h>

#include "cr_galera.h"

static MYSQL *tx;

static void end(void)
{
	if (tx)
		mysql_close(tx);
	galera_end();
}

TestSuite(galera_tx, .fini = end, .timeout = 480);

/* Long enough to outlast the beginning of the transaction. */
#define SHORT_MS 3000

/* The node catches up first: even the table may not have reached it yet. */
static long long ledger_on(int node)
{
	MYSQL *db = db_open(&galera_nodes[node].at, NULL);
	long long n;

	db_run(db, "SET SESSION wsrep_sync_wait = 1");
	n = db_number(db, "SELECT COUNT(*) FROM `%s`.ledger", world.schema);
	mysql_close(db);
	return n;
}

/* A holder on node 0, with a transaction there. */
static bizlock *begin(uint32_t lease_ms)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock *b;

	galera_begin();
	db_run(world.admin, "CREATE TABLE ledger (id INT PRIMARY KEY) ENGINE=InnoDB");
	b = galera_client(0);
	opts.lease_ms = lease_ms;
	opts.flags = BIZLOCK_NO_RENEW;
	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	tx = db_open(&galera_nodes[0].at, world.schema);
	db_run(tx, "START TRANSACTION");
	db_run(tx, "INSERT INTO ledger VALUES (1)");
	return b;
}

static void taken_over_on_the_other_node(void)
{
	bizlock *other = galera_client(1);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, other,
	       acquire(other, "k", .wait_ms = PATIENCE_MS, .lease_ms = 60000, .grant = &grant));
	cr_assert_eq(grant.flags, BIZLOCK_TOOK_OVER);
	bizlock_close(other);
}

Test(galera_tx, a_holder_commits)
{
	bizlock *b = begin(600000);

	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	expect(OK, b, bizlock_commit(b, KEY("k"), NULL, tx));
	eventually(ledger_on(1) == 1);
	bizlock_close(b);
}

Test(galera_tx, a_stale_holder_does_not)
{
	bizlock *b = begin(SHORT_MS);

	taken_over_on_the_other_node();
	eventually(bizlock_left_ms(b, KEY("k"), NULL) <= 0);
	expect(LOST, b, bizlock_commit(b, KEY("k"), NULL, tx));
	cr_assert_eq(ledger_on(0), 0);
	bizlock_close(b);
}

/* The check changes the row, and a transaction sees what it has changed itself, however old its
 * snapshot is. */
Test(galera_tx, one_that_has_read_before_the_grant_does_not)
{
	bizlock *b = begin(600000);

	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	db_number(tx, "SELECT COUNT(*) FROM ledger");
	expect(OK, b, acquire(b, "k", .lease_ms = 600000));
	for (int i = 0; i < 2; i++)
		expect(STALE, b, bizlock_fence(b, KEY("k"), NULL, tx));
	expect(STALE, b, bizlock_commit(b, KEY("k"), NULL, tx));
	cr_assert_eq(ledger_on(0), 0);
	db_run(tx, "START TRANSACTION");
	db_run(tx, "INSERT INTO ledger VALUES (1)");
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	expect(OK, b, bizlock_commit(b, KEY("k"), NULL, tx));
	cr_assert_eq(ledger_on(0), 1);
	bizlock_close(b);
}

/* The takeover changes the row in a transaction on the other node. The transaction that commits
 * first wins, and the cluster rolls the other one back. */
Test(galera_tx, one_that_was_taken_over_after_its_fence_does_not)
{
	bizlock *b = begin(SHORT_MS);

	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	taken_over_on_the_other_node();
	cr_assert_neq(bizlock_commit(b, KEY("k"), NULL, tx), BIZLOCK_OK);
	cr_assert_eq(ledger_on(0), 0);
	cr_assert_eq(ledger_on(1), 0);
	bizlock_close(b);
}
