/* Rows of row locks: when they count as used, and when they are purged. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_numbers.h"
#include "cr_reap.h"
#include "cr_tx.h"

TestSuite(reap_row_locks, .init = tx_world_begin, .fini = tx_world_end, .timeout = 240);

#define FLAGS 3
static const uint32_t flags_of[FLAGS] = {0, BIZLOCK_ROW_SKIP, BIZLOCK_ROW_WAIT};

static long long noted_us_ago(const char *id)
{
	return db_number(world.admin,
	                 "SELECT TIMESTAMPDIFF(MICROSECOND, gmt_create, UTC_TIMESTAMP(6))"
	                 " FROM biz_row_lock WHERE %s",
	                 row_where(KEY(id)));
}

/* ---- in use ---------------------------------------------------------------------------- */

TX_TEST(reap_row_locks, one_that_a_transaction_has_is_passed_over_without_waiting)
{
	bizlock *b = client(NULL);
	MYSQL *tx;

	stale_row_locks(world.admin, "old", .rows = 20, .ago_ms = OLD_MS);
	tx = tx_new();
	expect(OK, b, bizlock_row_lock(b, KEY("k"), tx, 0));
	db_run(tx, "SELECT 1 FROM biz_row_lock WHERE biz_id = 'old-0000007' FOR UPDATE");
	expect_reaped(b, NULL, .row_locks = 19, .passed_over = 1);
	cr_assert_eq(numbers_of(b).retried_conflict, 0, "it waited");
	cr_assert(row_is_locked(b, KEY("k")));
	db_run(tx, "COMMIT");
	expect_reaped(b, NULL, .row_locks = 1);
}

/* The optimizer treats a single row differently. */
TX_TEST(reap_row_locks, one_alone_that_a_transaction_has_is_passed_over_without_waiting)
{
	bizlock *b = client(NULL);
	MYSQL *tx;

	stale_row_locks(world.admin, "old", .rows = 1, .ago_ms = OLD_MS);
	tx = tx_new();
	db_run(tx, "SELECT 1 FROM biz_row_lock FOR UPDATE");
	expect_reaped(b, NULL, .passed_over = 1);
	cr_assert_eq(numbers_of(b).retried_conflict, 0, "it waited");
	db_run(tx, "COMMIT");
	expect_reaped(b, NULL, .row_locks = 1);
}

TX_TEST(reap_row_locks, a_use_is_noted_and_keeps_the_row)
{
	bizlock *b = client(NULL);
	MYSQL *tx = tx_new();

	stale_row_locks(world.admin, "old", .rows = FLAGS + 1, .ago_ms = OLD_MS);
	for (unsigned i = 0; i < FLAGS; i++) {
		expect(OK, b, bizlock_row_lock(b, KEY(stale_id("old", i)), tx, flags_of[i]));
		cr_assert(row_is_locked(b, KEY(stale_id("old", i))));
	}
	db_run(tx, "COMMIT");
	for (unsigned i = 0; i < FLAGS; i++)
		cr_assert_lt(noted_us_ago(stale_id("old", i)), 60000000);
	expect_reaped(b, NULL, .row_locks = 1);
	cr_assert_eq(left_of("biz_row_lock", "old"), FLAGS);
}

/* If it were, each use would have to write. */
TX_TEST(reap_row_locks, a_use_is_not_noted_again_for_ten_minutes)
{
	bizlock *b = client(NULL);
	MYSQL *tx = tx_new();

	stale_row_locks(world.admin, "new", .rows = 1, .ago_ms = 540000);
	stale_row_locks(world.admin, "old", .rows = 1, .ago_ms = 660000);
	expect(OK, b, bizlock_row_lock(b, KEY(stale_id("new", 0)), tx, 0));
	expect(OK, b, bizlock_row_lock(b, KEY(stale_id("old", 0)), tx, 0));
	cr_assert_geq(noted_us_ago(stale_id("new", 0)), 540000000);
	cr_assert_lt(noted_us_ago(stale_id("old", 0)), 60000000);
}

/* A call that is refused must not wait a second to note the use. */
TX_TEST(reap_row_locks, a_use_is_noted_without_waiting)
{
	bizlock *b = client(NULL);
	MYSQL *holder, *tx = tx_new();
	int64_t took = 0, rounds = 0;

	stale_row_locks(world.admin, "old", .rows = 1, .ago_ms = OLD_MS);
	holder = tx_new();
	db_run(holder, "SELECT 1 FROM biz_row_lock FOR UPDATE");
	for (unsigned i = 0; i < 8; i++) {
		rounds += round_ms(b);
		took -= now_ms();
		expect(BUSY, b, bizlock_row_lock(b, KEY(stale_id("old", 0)), tx, flags_of[i % 2]));
		took += now_ms();
	}
	cr_assert_lt(took, 7000 + 4 * rounds);
	cr_assert_geq(noted_us_ago(stale_id("old", 0)), OLD_MS * 1000);
}

/* The note of the other client is a change after the snapshot of this transaction. */
TX_TEST(reap_row_locks, a_use_that_was_noted_after_the_snapshot_is_no_trouble)
{
	bizlock *a = client(NULL), *b = client(NULL);
	MYSQL *tx = tx_new(), *other = tx_new();

	stale_row_locks(world.admin, "old", .rows = FLAGS, .ago_ms = OLD_MS);
	db_number(tx, "SELECT COUNT(*) FROM biz_row_lock");
	for (unsigned i = 0; i < FLAGS; i++) {
		expect(OK, a, bizlock_row_lock(a, KEY(stale_id("old", i)), other, 0));
		db_run(other, "ROLLBACK");
		tx_begin(other, 0);
		expect(OK, b, bizlock_row_lock(b, KEY(stale_id("old", i)), tx, flags_of[i]));
		cr_assert(row_is_locked(b, KEY(stale_id("old", i))));
	}
}

/* ---- purged ------------------------------------------------------------------------------ */

TX_TEST(reap_row_locks, a_purged_one_is_made_anew)
{
	bizlock *b = client(NULL);
	MYSQL *tx = tx_new();

	stale_row_locks(world.admin, "old", .rows = FLAGS, .ago_ms = OLD_MS);
	db_number(tx, "SELECT COUNT(*) FROM biz_row_lock");
	expect_reaped(b, NULL, .row_locks = FLAGS);
	for (unsigned i = 0; i < FLAGS; i++) {
		expect(OK, b, bizlock_row_lock(b, KEY(stale_id("old", i)), tx, flags_of[i]));
		cr_assert(row_is_locked(b, KEY(stale_id("old", i))));
	}
	expect_reaped(b, NULL, .row_locks = 0);
}

struct users {
	bizlock *b;
	MYSQL *tx;
	uint32_t flags;
	atomic_bool stop;
	atomic_uint at;
	unsigned taken, busy;
	char error[512];
};

#define PURGED 4000u

/* Uses the rows that the reaper reaches next. */
static void *use(void *arg)
{
	struct users *u = arg;

	for (unsigned i = 0; !atomic_load(&u->stop); i++) {
		const char *id = stale_id("old", atomic_load(&u->at) + i * 7 % 100);
		int rc;

		tx_begin(u->tx, 0);
		rc = bizlock_row_lock(u->b, KEY(id), u->tx, u->flags);
		u->taken += rc == BIZLOCK_OK;
		u->busy += rc == BIZLOCK_BUSY;
		if (rc != BIZLOCK_OK && rc != BIZLOCK_BUSY && !u->error[0])
			snprintf(u->error, sizeof(u->error), "%s", bizlock_errmsg(u->b));
		db_run(u->tx, "COMMIT");
	}
	return NULL;
}

static int follow(void *arg, const bizlock_reap_result *so_far)
{
	struct users *u = arg;

	atomic_store(&u->at, (unsigned)(so_far->row_locks + so_far->passed_over));
	return 0;
}

static void used_while_purged(uint32_t flags)
{
	bizlock *b = client(NULL);
	struct users u = {.b = client(NULL), .tx = tx_open(), .flags = flags};
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	pthread_t thread;

	deadlocks_may_happen();
	stale_row_locks(world.admin, "old", .rows = PURGED, .ago_ms = OLD_MS);
	if (pthread_create(&thread, NULL, use, &u) != 0)
		die("no thread");
	opts.batch = 50;
	opts.progress = follow;
	opts.arg = &u;
	reaped(b, &opts);
	atomic_store(&u.stop, true);
	pthread_join(thread, NULL);
	cr_assert_str_eq(u.error, "");
	cr_assert_gt(u.taken, 0);
	cr_assert(flags != BIZLOCK_ROW_WAIT || u.busy == 0, "%u busy", u.busy);
}

TX_TEST(reap_row_locks, may_be_used_while_they_are_purged)
{
	used_while_purged(0);
}

TX_TEST(reap_row_locks, may_be_waited_for_while_they_are_purged)
{
	used_while_purged(BIZLOCK_ROW_WAIT);
}
