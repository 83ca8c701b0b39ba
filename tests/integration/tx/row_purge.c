/* bizlock_row_lock() while a reaper purges the rows behind row locks. */
#define _GNU_SOURCE 1
#include "cr_tx.h"

TestSuite(row_purge, .init = tx_world_begin, .fini = tx_world_end, .timeout = 240);

#define FLAGS 3
static const uint32_t flags_of[FLAGS] = {0, BIZLOCK_ROW_SKIP, BIZLOCK_ROW_WAIT};
static const char *const flag_names[FLAGS] = {"NOWAIT", "SKIP LOCKED", "WAIT"};

/* The row is made on a connection of bizlock's. Its last reply comes late, so that the row can be
 * purged before it. */
#define LATE_MS 3000

static struct fault last_reply_of(struct proxy *p, bizlock *b)
{
	struct fault fault = {.what = FAULT_DELAY, .side = FAULT_REPLIES, .delay_ms = LATE_MS};
	MYSQL *tx = tx_new();
	struct fault_trace trace;
	unsigned replies = 0;

	proxy_arm(p, NULL);
	expect(OK, b, bizlock_row_lock(b, KEY("another"), tx, 0));
	trace = proxy_trace(p);
	for (unsigned i = 0; i < trace.count; i++)
		replies += trace.packets[i].side == FAULT_REPLIES;
	cr_assert_gt(replies, 0);
	fault.packet = replies - 1;
	tx_close(tx);
	return fault;
}

static void purged_in_between(struct proxy *p, bizlock *b, const struct fault *late, unsigned flag)
{
	MYSQL *tx = tx_new();
	struct tx_thread t;
	unsigned purged;

	proxy_arm(p, late);
	row_lock_start(&t, b, "k", tx, flags_of[flag]);
	eventually(db_number(world.admin, "SELECT COUNT(*) FROM biz_row_lock WHERE %s",
	                     row_where(KEY("k"))) > 0);
	db_run(world.admin, "DELETE FROM biz_row_lock WHERE %s", row_where(KEY("k")));
	purged = (unsigned)db_number(world.admin, "SELECT ROW_COUNT()");
	cr_assert_eq(row_lock_join(&t), BIZLOCK_OK, "%s: %s", flag_names[flag], t.errmsg);
	cr_assert_eq(purged, 1);
	cr_assert(row_is_locked(b, KEY("k")), "%s", flag_names[flag]);
	tx_close(tx);
	eventually(!row_is_locked(b, KEY("k")));
	db_run(world.admin, "DELETE FROM biz_row_lock WHERE %s", row_where(KEY("k")));
}

static void survives_a_purge(unsigned flag)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	struct fault late;

	db_run(world.admin, "SET SESSION innodb_lock_wait_timeout = 1");
	works(b);
	late = last_reply_of(p, b);
	purged_in_between(p, b, &late, flag);
	proxy_stop(p);
}

TX_TEST(row_purge, between_making_and_locking_is_survived)
{
	survives_a_purge(0);
}

TX_TEST(row_purge, of_one_that_skips_between_making_and_locking_is_survived)
{
	survives_a_purge(1);
}

TX_TEST(row_purge, of_one_that_waits_between_making_and_locking_is_survived)
{
	survives_a_purge(2);
}

struct reaper {
	MYSQL *db;
	atomic_bool stop;
	atomic_ulong purged;
};

static void *reap(void *arg)
{
	struct reaper *r = arg;

	while (!atomic_load(&r->stop))
		if (db_try(r->db, "DELETE FROM biz_row_lock WHERE %s", row_where(KEY("k"))))
			atomic_fetch_add(&r->purged,
			                 (unsigned long)db_number(r->db, "SELECT ROW_COUNT()"));
	return NULL;
}

/* OK: another client gets BUSY. BUSY: the reaper has the row locked. No other answer comes. */
TX_TEST(row_purge, by_a_reaper_that_never_rests_is_survived)
{
	bizlock *b = client(NULL);
	struct reaper r = {.db = tx_open()};
	unsigned got[3] = {0};
	MYSQL *tx = tx_open();
	int64_t end = now_ms() + PATIENCE_MS;
	pthread_t thread;

	deadlocks_may_happen();
	if (pthread_create(&thread, NULL, reap, &r) != 0)
		die("no thread");
	/* The other thread may begin late, and may be faster for a long time. */
	for (int round = 0;
	     round < 90 || (!(atomic_load(&r.purged) && got[0] && got[1]) && now_ms() < end);
	     round++) {
		int rc;

		tx_begin(tx, 0);
		rc = bizlock_row_lock(b, KEY("k"), tx, flags_of[round % 3]);
		cr_assert(rc == BIZLOCK_OK || (rc == BIZLOCK_BUSY && round % 3 != 2), "%s: %s: %s",
		          flag_names[round % 3], bizlock_err_name(rc), bizlock_errmsg(b));
		got[round % 3] += rc == BIZLOCK_OK;
		if (rc == BIZLOCK_OK && round % 10 == 0)
			cr_assert(row_is_locked(b, KEY("k")), "round %d", round);
		db_run(tx, "COMMIT");
	}
	atomic_store(&r.stop, true);
	pthread_join(thread, NULL);
	cr_assert_gt(atomic_load(&r.purged), 0);
	cr_assert(got[0] > 0 && got[1] > 0 && got[2] >= 30, "%u %u %u", got[0], got[1], got[2]);
}
