/* bizlock_row_lock(): one transaction at a time has the row lock, until it ends. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_tx.h"

TestSuite(row_lock, .init = tx_world_begin, .fini = tx_world_end, .timeout = 240);

#define AT_ONCE_MS 10000 /* far below the 50 s for which InnoDB waits */

#define FLAGS 3
static const uint32_t flags_of[FLAGS] = {0, BIZLOCK_ROW_SKIP, BIZLOCK_ROW_WAIT};

/* ---- held how long -------------------------------------------------------------- */

static MYSQL *holder(bizlock *b, const char *id)
{
	MYSQL *tx = tx_new();

	expect(OK, b, bizlock_row_lock(b, KEY(id), tx, 0));
	cr_assert(row_is_locked(b, KEY(id)));
	return tx;
}

TX_TEST(row_lock, is_held_until_commit)
{
	bizlock *b = client(NULL);
	MYSQL *tx = holder(b, "k");

	db_run(tx, "COMMIT");
	cr_assert(!row_is_locked(b, KEY("k")));
}

TX_TEST(row_lock, is_held_until_rollback)
{
	bizlock *b = client(NULL);
	MYSQL *tx = holder(b, "k");

	db_run(tx, "ROLLBACK");
	cr_assert(!row_is_locked(b, KEY("k")));
}

TX_TEST(row_lock, is_held_until_the_connection_ends)
{
	bizlock *b = client(NULL);
	MYSQL *tx = holder(b, "k");

	tx_close(tx);
	eventually(!row_is_locked(b, KEY("k")));
}

TX_TEST(row_lock, can_be_taken_again_in_the_same_transaction)
{
	bizlock *b = client(NULL);
	MYSQL *tx = holder(b, "k");

	for (unsigned i = 0; i < FLAGS; i++)
		expect(OK, b, bizlock_row_lock(b, KEY("k"), tx, flags_of[i]));
	db_run(tx, "COMMIT");
	cr_assert(!row_is_locked(b, KEY("k")));
}

TX_TEST(row_lock, takes_many_in_one_transaction)
{
	bizlock *b = client(NULL);
	MYSQL *tx = tx_new();
	char id[16];

	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof(id), "k%d", i);
		expect(OK, b, bizlock_row_lock(b, KEY(id), tx, 0));
	}
	cr_assert(row_is_locked(b, KEY("k0")));
	cr_assert(row_is_locked(b, KEY("k19")));
	cr_assert(!row_is_locked(b, KEY("k20")));
}

/* ---- taken ------------------------------------------------------------------------ */

/* BUSY changes neither what the transaction wrote nor the session. */
TX_TEST(row_lock, of_somebody_else_is_busy_at_once_and_does_no_harm)
{
	bizlock *a = client(NULL), *b = client(NULL);
	MYSQL *tx = tx_open();
	int64_t start = now_ms();

	holder(a, "k");
	tx_begin(tx, 1);
	expect(BUSY, b, bizlock_row_lock(b, KEY("k"), tx, 0));
	expect_message(b, "k");
	expect(BUSY, b, bizlock_row_lock(b, KEY("k"), tx, BIZLOCK_ROW_SKIP));
	cr_assert_lt(now_ms() - start, AT_ONCE_MS);
	tx_commits(tx, 1);
}

TX_TEST(row_lock, with_wait_is_busy_when_the_session_has_waited_enough)
{
	bizlock *b = client(NULL);
	MYSQL *tx = tx_open();
	int64_t start;

	holder(b, "k");
	db_run(tx, "SET SESSION innodb_lock_wait_timeout = 2");
	tx_begin(tx, 1);
	start = now_ms();
	expect(BUSY, b, bizlock_row_lock(b, KEY("k"), tx, BIZLOCK_ROW_WAIT));
	cr_assert_gt(now_ms() - start, 900, "InnoDB counts in whole seconds");
	cr_assert_lt(now_ms() - start, 2000 + AT_ONCE_MS);
	cr_assert_eq(db_number(tx, "SELECT @@innodb_lock_wait_timeout"), 2);
	tx_commits(tx, 1);
}

TX_TEST(row_lock, with_wait_gets_it_when_it_is_free)
{
	bizlock *b = client(NULL);
	MYSQL *first = holder(b, "k"), *second = tx_new();
	struct tx_thread t;

	row_lock_start(&t, b, "k", second, BIZLOCK_ROW_WAIT);
	steadily(!atomic_load(&t.done), 1500);
	db_run(first, "COMMIT");
	cr_assert_eq(row_lock_join(&t), BIZLOCK_OK, "%s", t.errmsg);
	cr_assert(row_is_locked(b, KEY("k")));
}

/* Makes two transactions wait for each other. Returns the one that InnoDB has rolled back. */
static MYSQL *deadlocked(bizlock *b, MYSQL *one, MYSQL *two)
{
	struct tx_thread t;
	int rc;

	deadlocks_may_happen();
	expect(OK, b, bizlock_row_lock(b, KEY("a"), one, 0));
	expect(OK, b, bizlock_row_lock(b, KEY("b"), two, 0));
	row_lock_start(&t, b, "b", one, BIZLOCK_ROW_WAIT);
	rc = bizlock_row_lock(b, KEY("a"), two, BIZLOCK_ROW_WAIT);
	if (rc == BIZLOCK_OK) {
		cr_assert_eq(row_lock_join(&t), BIZLOCK_DB, "%s", t.errmsg);
		cr_assert(strstr(t.errmsg, "1213"), "%s", t.errmsg);
		return one;
	}
	cr_assert_eq(rc, BIZLOCK_DB, "%s", bizlock_errmsg(b));
	expect_message(b, "1213");
	cr_assert_eq(row_lock_join(&t), BIZLOCK_OK, "%s", t.errmsg);
	return two;
}

/* InnoDB rolls one of them back, and its caller gets the server's message. */
TX_TEST(row_lock, that_wait_for_each_other_are_a_deadlock_of_the_callers)
{
	bizlock *b = client(NULL);
	MYSQL *one = tx_open(), *two = tx_open(), *victim;

	tx_begin(one, 1);
	tx_begin(two, 2);
	victim = deadlocked(b, one, two);
	nothing_is_left_of(victim, victim == one ? 1 : 2);
	tx_commits(victim == one ? two : one, victim == one ? 2 : 1);
}

/* The error that ended the transaction did not tell the connector that it is over. Without a
 * transaction, a row lock or a fence would end at once. */
TX_TEST(row_lock, and_fence_after_a_deadlock_find_no_transaction)
{
	bizlock *b = client(NULL);
	MYSQL *victim = deadlocked(b, tx_new(), tx_new());

	expect(OK, b, acquire(b, "k", .lease_ms = 600000));
	for (int which = 0; which < CALLS; which++)
		expect(MISUSE, b, tx_call(which, b, KEY("k"), victim));
}

/* ---- the row behind it -------------------------------------------------------------- */

/* The row is newer than the snapshot, which sees no row or an older one. */
TX_TEST(row_lock, works_when_the_row_is_newer_than_the_snapshot)
{
	bizlock *b = client(NULL);
	MYSQL *tx = tx_open(), *other;

	tx_begin(tx, 1);
	other = holder(b, "k");
	db_run(other, "COMMIT");
	expect(OK, b, bizlock_row_lock(b, KEY("k"), tx, 0));
	cr_assert(row_is_locked(b, KEY("k")));
	tx_commits(tx, 1);
}

TX_TEST(row_lock, works_when_the_row_was_purged_and_made_anew_after_the_snapshot)
{
	bizlock *b = client(NULL);
	MYSQL *tx = tx_open(), *other = holder(b, "k");

	db_run(other, "COMMIT");
	for (unsigned i = 0; i < FLAGS; i++) {
		tx_begin(tx, 1);
		db_number(tx, "SELECT COUNT(*) FROM biz_row_lock");
		db_run(world.admin, "DELETE FROM biz_row_lock");
		cr_assert(!row_is_locked(b, KEY("k")));
		expect(OK, b, bizlock_row_lock(b, KEY("k"), tx, flags_of[i]));
		cr_assert(row_is_locked(b, KEY("k")));
		db_run(tx, "ROLLBACK");
	}
}

/* If the row were looked for before it is made, a gap would stay locked, and the insert of a
 * neighbour would wait. */
TX_TEST(row_lock, of_new_keys_do_not_stand_in_each_others_way)
{
	bizlock *a = client(NULL), *b = client(NULL);
	MYSQL *one = tx_new(), *two = tx_new();
	int64_t start = now_ms();
	char id[16];

	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof(id), "new-%02d", (i * 7) % 20);
		expect(OK, i % 2 ? a : b,
		       bizlock_row_lock(i % 2 ? a : b, KEY(id), i % 2 ? one : two, 0));
	}
	cr_assert_lt(now_ms() - start, AT_ONCE_MS);
}

/* A locking read that finds nothing may lock the gap that it looked into. The next insert there
 * would wait for a transaction that has no row lock. */
static void is_busy_and_in_nobodys_way(uint32_t flags)
{
	bizlock *b = client(NULL);
	MYSQL *loser = tx_new(), *tx = tx_new();
	int64_t took = 0, rounds = 0;
	char id[16];

	holder(b, "k");
	holder(b, "m");
	db_run(tx, "SET SESSION innodb_lock_wait_timeout = 2");
	expect(BUSY, b, bizlock_row_lock(b, KEY("k"), loser, flags));
	for (int i = 0; i < 10; i++) {
		snprintf(id, sizeof(id), "%c%d", i % 2 ? 'j' : 'l', i);
		rounds += round_ms(b);
		took -= now_ms();
		expect(OK, b, bizlock_row_lock(b, KEY(id), tx, 0));
		took += now_ms();
	}
	cr_assert_lt(took, AT_ONCE_MS / 2 + 4 * rounds, "a second each");
}

TX_TEST(row_lock, that_is_busy_stands_in_nobodys_way)
{
	is_busy_and_in_nobodys_way(0);
}

/* At other isolation levels, InnoDB keeps the gap behind a row that it skips. */
Test(row_lock, that_skips_stands_in_nobodys_way_in_read_committed)
{
	tx_way = TX_READ_COMMITTED;
	is_busy_and_in_nobodys_way(BIZLOCK_ROW_SKIP);
}

/* ---- names ---------------------------------------------------------------------------- */

TX_TEST(row_lock, tells_keys_apart_by_any_byte)
{
	static const char *const ids[] = {
	        "a",   "A",   "a ",   "\xc3\xa1", "'",  "''",       "\"", "\\",
	        "\\'", "`",   "%",    "a\n",      "\1", "\t",       ";",  "\xf0\x9f\x94\x92",
	        "--",  "/* ", "0x61", "x'61'",    "?",  "@@version"};
	bizlock *b = client(NULL);
	MYSQL *tx = tx_new(), *other = tx_new();
	bizlock_key type = {"other", "a"};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		expect(OK, b, bizlock_row_lock(b, KEY(ids[i]), other, 0));
		db_run(other, "ROLLBACK");
		tx_begin(other, 0);
		expect(OK, b, bizlock_row_lock(b, KEY(ids[i]), tx, 0));
		expect(BUSY, b, bizlock_row_lock(b, KEY(ids[i]), other, 0));
		cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_row_lock WHERE %s",
		                       row_where(KEY(ids[i]))),
		             1);
	}
	expect(OK, b, bizlock_row_lock(b, type, other, 0));
}

TX_TEST(row_lock, takes_the_longest_keys)
{
	char id[BIZLOCK_ID_MAX + 1], kind[BIZLOCK_TYPE_MAX + 1];
	bizlock *b = client(NULL);
	MYSQL *tx = tx_new();
	bizlock_key key = {kind, id};

	memset(id, '\'', BIZLOCK_ID_MAX);
	memset(kind, '\\', BIZLOCK_TYPE_MAX);
	id[BIZLOCK_ID_MAX] = kind[BIZLOCK_TYPE_MAX] = '\0';
	expect(OK, b, bizlock_row_lock(b, key, tx, 0));
	cr_assert(row_is_locked(b, key));
}

TX_TEST(row_lock, and_lease_lock_of_one_key_know_nothing_of_each_other)
{
	bizlock *a = client(NULL), *b = client(NULL);

	holder(a, "k");
	expect(OK, b, acquire(b, "k", .lease_ms = 60000));
	holder(a, "j");
	expect(OK, b, acquire(b, "j", .lease_ms = 60000));
	expect(OK, b, acquire(b, "i", .lease_ms = 60000));
	holder(a, "i");
	expect(OK, b, bizlock_release(b, KEY("i"), NULL, NULL));
}

TX_TEST(row_lock, honours_the_prefix_of_its_client)
{
	bizlock *plain = client(NULL), *b = client_new(&world, OPTIONS("table_prefix", "x_"));

	expect(OK, b, bizlock_migrate(b));
	expect(OK, b, bizlock_open(b));
	holder(b, "k");
	holder(plain, "k");
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM x_biz_row_lock"), 1);
	bizlock_close(b);
}
