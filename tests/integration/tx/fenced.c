/* bizlock_fence(): a transaction that commits after it was a holder's. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_tx.h"

TestSuite(fenced, .init = tx_world_begin, .fini = tx_world_end, .timeout = 240);

#define LEASE_MS 2000  /* long enough to fence in, short enough to wait for its end */
#define SOON_MS 10000  /* far less where nothing hangs */
#define LONG_MS 600000 /* never over in a test */

static bizlock *holder(const char *id, uint32_t lease_ms)
{
	bizlock *b = client(NULL);

	expect(OK, b, acquire(b, id, .lease_ms = lease_ms));
	return b;
}

/* ---- held ---------------------------------------------------------------------- */

TX_TEST(fenced, is_a_holder)
{
	bizlock *b = holder("k", LONG_MS);
	MYSQL *tx = tx_open();

	tx_begin(tx, 1);
	for (int i = 0; i < 3; i++)
		expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	tx_commits(tx, 1);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

TX_TEST(fenced, is_a_hold_of_any_depth)
{
	bizlock *b = holder("k", LONG_MS);
	MYSQL *tx = tx_new();

	expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	db_run(tx, "COMMIT");
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	tx_begin(tx, 0);
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	db_run(tx, "COMMIT");
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	tx_begin(tx, 0);
	expect(NOT_OWNER, b, bizlock_fence(b, KEY("k"), NULL, tx));
}

TX_TEST(fenced, are_several_locks_in_one_transaction)
{
	bizlock *b = holder("j", LONG_MS);
	MYSQL *tx = tx_open();

	expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
	tx_begin(tx, 0);
	expect(OK, b, bizlock_fence(b, KEY("j"), NULL, tx));
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	expect(NOT_OWNER, b, bizlock_fence(b, KEY("i"), NULL, tx));
}

TX_TEST(fenced, are_several_transactions_of_one_holder)
{
	bizlock *b = client(NULL);
	MYSQL *one = tx_open(), *two = tx_open();

	expect(OK, b, acquire_as(b, "k", "task"));
	tx_begin(one, 1);
	tx_begin(two, 2);
	expect(OK, b, bizlock_fence(b, KEY("k"), "task", one));
	expect(OK, b, bizlock_fence(b, KEY("k"), "task", two));
	tx_commits(one, 1);
	tx_commits(two, 2);
}

/* Every renewal is a newer version of the row than the snapshot's. */
TX_TEST(fenced, is_a_hold_that_was_renewed_after_the_snapshot)
{
	bizlock *b = holder("k", LONG_MS);
	MYSQL *tx = tx_open();

	tx_begin(tx, 1);
	db_number(tx, "SELECT COUNT(*) FROM biz_lock");
	expect(OK, b, bizlock_renew(b, KEY("k"), NULL, LONG_MS / 2));
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	tx_commits(tx, 1);
}

/* The snapshot shows this owner as the holder, with the fence it has in memory. */
TX_TEST(fenced, is_not_a_hold_that_only_the_snapshot_shows)
{
	bizlock *a = holder("k", LONG_MS), *b = client(NULL);
	MYSQL *tx = tx_open();

	tx_begin(tx, 1);
	db_number(tx, "SELECT COUNT(*) FROM biz_lock");
	expect(OK, b, bizlock_break(b, KEY("k"), row_of(&world, KEY("k")).fence));
	expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
	expect(LOST, a, bizlock_fence(a, KEY("k"), NULL, tx));
}

TX_TEST(fenced, are_keys_and_named_owners_with_awkward_bytes)
{
	static const char *const names[] = {"'", "\\", "`\"", "a'b\\", "--", "%s", ";"};
	bizlock *b = client(NULL);
	MYSQL *tx = tx_open();

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		expect(OK, b, acquire_as(b, names[i], names[i]));
		tx_begin(tx, 0);
		expect(OK, b, bizlock_fence(b, KEY(names[i]), names[i], tx));
		expect(NOT_OWNER, b, bizlock_fence(b, KEY(names[i]), "another", tx));
		expect(NOT_OWNER, b, bizlock_fence(b, KEY(names[i]), NULL, tx));
	}
	expect(OK, b, acquire(b, "\xf0\x9f\x94\x92 \xc3\xa1\n", .lease_ms = LONG_MS));
	tx_begin(tx, 0);
	expect(OK, b, bizlock_fence(b, KEY("\xf0\x9f\x94\x92 \xc3\xa1\n"), NULL, tx));
}

/* ---- not held -------------------------------------------------------------------- */

static void refuses_from_another_thread(void *arg)
{
	bizlock *b = arg;
	MYSQL *tx = tx_new();

	expect(NOT_OWNER, b, bizlock_fence(b, KEY("k"), NULL, tx));
}

TX_TEST(fenced, is_nobody_without_a_hold)
{
	bizlock *a = holder("k", LONG_MS), *b = client(NULL);
	MYSQL *tx = tx_open();
	const char *before = row_text("k");

	tx_begin(tx, 1);
	expect(NOT_OWNER, b, bizlock_fence(b, KEY("k"), NULL, tx));
	expect(NOT_OWNER, a, bizlock_fence(a, KEY("k"), "task", tx));
	expect(NOT_OWNER, a, bizlock_fence(a, KEY("K"), NULL, tx));
	in_another_thread(refuses_from_another_thread, a);
	cr_assert_str_eq(row_text("k"), before);
	tx_commits(tx, 1);
}

/* Fencing only asks and changes nothing, so the caller rolls back. */
TX_TEST(fenced, is_not_a_hold_that_was_taken_over)
{
	bizlock *a = holder("k", 300), *b = client(NULL);
	MYSQL *tx = tx_open();

	lease_is_over("k");
	expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
	tx_begin(tx, 1);
	expect(LOST, a, bizlock_fence(a, KEY("k"), NULL, tx));
	cr_assert(tx_is_open(tx));
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

TX_TEST(fenced, is_not_a_hold_that_was_broken)
{
	bizlock *a = holder("k", LONG_MS), *b = client(NULL);
	MYSQL *tx = tx_new();

	expect(OK, b, bizlock_break(b, KEY("k"), row_of(&world, KEY("k")).fence));
	expect(LOST, a, bizlock_fence(a, KEY("k"), NULL, tx));
	expect(LOST, a, bizlock_fence(a, KEY("k"), NULL, tx));
	expect_message(a, "the server does not have it any more");
}

TX_TEST(fenced, is_not_a_hold_whose_lease_is_over)
{
	bizlock *b = holder("k", 300);
	MYSQL *tx = tx_new();

	lease_is_over("k");
	expect(LOST, b, bizlock_fence(b, KEY("k"), NULL, tx));
}

/* The local clock has seen nothing, as if the server's clock had been set forward. */
TX_TEST(fenced, is_not_a_hold_whose_lease_is_over_by_the_servers_clock_alone)
{
	bizlock *b = holder("k", LONG_MS);
	MYSQL *tx = tx_new();

	db_run(world.admin, "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND");
	expect(LOST, b, bizlock_fence(b, KEY("k"), NULL, tx));
}

/* Another hold of the same owner, which the client does not know. */
TX_TEST(fenced, is_not_a_hold_with_another_fence)
{
	bizlock *b = holder("k", LONG_MS);
	MYSQL *tx = tx_new();

	db_run(world.admin, "UPDATE biz_lock SET fence = fence + 100");
	expect(LOST, b, bizlock_fence(b, KEY("k"), NULL, tx));
}

/* ---- contenders -------------------------------------------------------------------- */

/* The lease is over, and the transaction is still open. */
static MYSQL *fenced_past_the_lease(bizlock **ret_holder)
{
	bizlock *a = holder("k", LEASE_MS);
	MYSQL *tx = tx_open();

	tx_begin(tx, 1);
	expect(OK, a, bizlock_fence(a, KEY("k"), NULL, tx));
	lease_is_over("k");
	*ret_holder = a;
	return tx;
}

static void contenders_come_back(const char *queue)
{
	bizlock *a, *b = client(OPTIONS("queue", queue));
	MYSQL *tx = fenced_past_the_lease(&a);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	const char *before = row_text("k");
	int64_t start = now_ms();

	expect(BUSY, b, acquire(b, "k", .lease_ms = LONG_MS));
	expect(TIMEOUT, b, acquire(b, "k", .wait_ms = 500, .lease_ms = LONG_MS));
	expect(TIMEOUT, b, acquire(b, "k", .wait_ms = 1500, .lease_ms = LONG_MS));
	cr_assert_lt(now_ms() - start, 2000 + SOON_MS);
	cr_assert_str_eq(row_text("k"), before);
	tx_commits(tx, 1);
	expect(OK, b, acquire(b, "k", .wait_ms = SOON_MS, .lease_ms = LONG_MS, .grant = &grant));
	cr_assert_eq(grant.flags, BIZLOCK_TOOK_OVER);
	expect(LOST, a, bizlock_release(a, KEY("k"), NULL, NULL));
}

TX_TEST(fenced, keeps_contenders_at_the_doorbell_away_past_the_lease)
{
	contenders_come_back("auto");
}

TX_TEST(fenced, keeps_contenders_that_poll_away_past_the_lease)
{
	deadlocks_may_happen();
	contenders_come_back("off");
}

/* Several contenders at once, so that some come while another one tries. */
TX_TEST(fenced, keeps_many_contenders_away_until_it_ends)
{
	bizlock *a, *b[2] = {client(NULL), client(OPTIONS("queue", "off"))};
	MYSQL *tx = fenced_past_the_lease(&a);
	struct call calls[2];
	int64_t ended;

	deadlocks_may_happen();
	for (int i = 0; i < 2; i++)
		call_start(&calls[i], b[i], "k", .wait_ms = i ? 600000 : -1, .owner = "task");
	steadily(!atomic_load(&calls[0].done) && !atomic_load(&calls[1].done), 2500);
	db_run(tx, "ROLLBACK");
	ended = now_ms();
	eventually(atomic_load(&calls[0].done) || atomic_load(&calls[1].done));
	cr_assert_lt(now_ms() - ended, SOON_MS);
	for (int i = 0; i < 2; i++)
		if (!atomic_load(&calls[i].done))
			bizlock_interrupt(b[i]);
	for (int i = 0; i < 2; i++)
		call_join(&calls[i]);
	cr_assert_neq(calls[0].rc, calls[1].rc, "%s", bizlock_err_name(calls[0].rc));
	cr_assert(ledger_has(1) == false);
}

/* A transaction ends with its connection, too. */
TX_TEST(fenced, ends_with_the_connection)
{
	bizlock *a, *b = client(NULL);
	MYSQL *tx = fenced_past_the_lease(&a);

	expect(BUSY, b, acquire(b, "k", .lease_ms = LONG_MS));
	tx_close(tx);
	expect(OK, b, acquire(b, "k", .wait_ms = SOON_MS, .lease_ms = LONG_MS));
	cr_assert(!ledger_has(1));
}

/* To an operator, the fence is what it is to a contender. */
TX_TEST(fenced, cannot_be_broken_and_nobody_hangs)
{
	bizlock *a, *b = client(OPTIONS("io_timeout_ms", "1000"));
	MYSQL *tx = fenced_past_the_lease(&a);
	uint64_t fence = row_of(&world, KEY("k")).fence;
	int64_t start = now_ms();
	int rc = bizlock_break(b, KEY("k"), fence);

	cr_assert_neq(rc, BIZLOCK_OK);
	cr_assert_lt(now_ms() - start, 2000 + SOON_MS, "it may take two network timeouts");
	cr_assert(row_of(&world, KEY("k")).there);
	tx_commits(tx, 1);
	/* The server may still have the statement of the first one, and run it now. */
	rc = bizlock_break(b, KEY("k"), fence);
	cr_assert(rc == BIZLOCK_OK || rc == BIZLOCK_LOST, "%s", bizlock_errmsg(b));
}
