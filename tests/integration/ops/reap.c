/* bizlock_reap(): what it purges, what it leaves, and what it reports. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_reap.h"

TestSuite(reap, .init = world_begin, .fini = world_end, .timeout = 240);

/* ---- what goes, what stays ---------------------------------------------------------- */

Test(reap, purges_what_dead_holders_left)
{
	bizlock *b = client(NULL);

	stale_leases(world.admin, "old", .rows = 1200, .ago_ms = OLD_MS);
	expect_reaped(b, NULL, .leases = 1200);
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_lock"), 0);
}

Test(reap, purges_rests_that_are_over)
{
	bizlock *b = client(NULL);

	stale_rests(world.admin, "old", .rows = 30, .ago_ms = OLD_MS);
	expect_reaped(b, NULL, .rests = 30);
	cr_assert_eq(left_of("biz_lock", "old"), 0);
}

Test(reap, purges_rows_of_row_locks)
{
	bizlock *b = client(NULL);

	stale_row_locks(world.admin, "old", .rows = 1200, .ago_ms = OLD_MS);
	expect_reaped(b, NULL, .row_locks = 1200);
	cr_assert_eq(db_number(world.admin,
	                       "SELECT COUNT(*) FROM biz_row_lock WHERE biz_type <> 'bizlock'"),
	             0);
}

/* By default, rows are old after an hour. Row locks are old ten minutes later, because their use is
 * noted only every ten minutes. */
Test(reap, leaves_what_is_live_resting_or_not_old)
{
	bizlock *b = client(NULL);

	stale_leases(world.admin, "live", .rows = 600, .ago_ms = -60000);
	stale_leases(world.admin, "fresh", .rows = 600, .ago_ms = HOUR_MS - 60000);
	stale_leases(world.admin, "old", .rows = 600, .ago_ms = HOUR_MS + 60000);
	stale_rests(world.admin, "resting", .rows = 10, .ago_ms = -60000);
	stale_rests(world.admin, "fresh-rest", .rows = 10, .ago_ms = HOUR_MS - 60000);
	stale_rests(world.admin, "old-rest", .rows = 10, .ago_ms = HOUR_MS + 60000);
	stale_row_locks(world.admin, "fresh", .rows = 10, .ago_ms = HOUR_MS + 540000);
	stale_row_locks(world.admin, "old", .rows = 10, .ago_ms = HOUR_MS + 660000);
	expect_reaped(b, NULL, .leases = 600, .rests = 10, .row_locks = 10);
	cr_assert_eq(left_of("biz_lock", "live"), 600);
	cr_assert_eq(left_of("biz_lock", "fresh"), 610);
	cr_assert_eq(left_of("biz_lock", "old"), 0);
	cr_assert_eq(left_of("biz_lock", "resting"), 10);
	cr_assert_eq(left_of("biz_row_lock", "fresh"), 10);
	cr_assert_eq(left_of("biz_row_lock", "old"), 0);
}

Test(reap, purges_at_once_where_it_is_told_to)
{
	bizlock *b = client(NULL);
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;

	opts.older_than_ms = 0;
	stale_leases(world.admin, "live", .rows = 10, .ago_ms = -60000);
	stale_leases(world.admin, "fresh", .rows = 10, .ago_ms = 1);
	expect_reaped(b, &opts, .leases = 10);
	cr_assert_eq(left_of("biz_lock", "live"), 10);
}

Test(reap, the_oldest_age_is_no_trouble)
{
	bizlock *b = client(NULL);
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;

	opts.older_than_ms = 3153600000000;
	stale_leases(world.admin, "old", .rows = 10, .ago_ms = OLD_MS);
	stale_row_locks(world.admin, "old", .rows = 10, .ago_ms = OLD_MS);
	expect_reaped(b, &opts, .leases = 0);
}

Test(reap, empty_tables_are_no_trouble)
{
	bizlock *b = client(NULL);

	expect_reaped(b, NULL, .leases = 0);
	expect(OK, b, bizlock_reap(b, NULL, NULL));
}

Test(reap, what_is_held_is_held_on)
{
	bizlock *b = client(NULL);
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	const char *before;

	opts.older_than_ms = 0;
	expect(OK, b, acquire(b, "mine", .lease_ms = 600000));
	before = row_text("mine");
	stale_leases(world.admin, "old", .rows = 10, .ago_ms = OLD_MS);
	expect_reaped(b, &opts, .leases = 10);
	cr_assert_str_eq(row_text("mine"), before);
	expect(OK, b, bizlock_verify(b, KEY("mine"), NULL));
	expect(OK, b, bizlock_release(b, KEY("mine"), NULL, NULL));
}

Test(reap, the_next_holder_of_a_purged_lock_gets_a_larger_fence)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	bizlock_grant first = BIZLOCK_GRANT_INIT, second = BIZLOCK_GRANT_INIT;

	opts.older_than_ms = 0;
	expect(OK, a, acquire(a, "k", .lease_ms = 100, .wait_ms = -1, .grant = &first));
	lease_is_over("k");
	expect_reaped(b, &opts, .leases = 1);
	expect(OK, b, acquire(b, "k", .grant = &second));
	cr_assert_gt(second.fence, first.fence);
	cr_assert_eq(second.flags, 0);
	expect(LOST, a, bizlock_release(a, KEY("k"), NULL, NULL));
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
}

/* ---- keys ----------------------------------------------------------------------------- */

static void add_key(const char *type, const char *id)
{
	db_run(world.admin,
	       "INSERT INTO biz_lock (biz_type, biz_id, owner, reentrant, timeout, gmt_create,"
	       " gmt_modified) VALUES (%s, %s, 'o', 1, UTC_TIMESTAMP(6) - INTERVAL 1 DAY,"
	       " UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
	       db_literal(type), db_literal(id));
}

Test(reap, keys_may_be_any_bytes)
{
	static const char *const texts[] = {"a",  "A",  "a ",   "\xc3\xa1", "'", "''",
	                                    "\"", "\\", "\\'",  "`",        "%", "a\n",
	                                    "\1", ";",  "0x61", "?",        ","};
	bizlock *b = client(NULL);
	size_t n = sizeof(texts) / sizeof(texts[0]);

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			add_key(texts[i], texts[j]);
	expect_reaped(b, NULL, .leases = n * n);
}

/* These keys are longer than bizlock's: the column's length counts characters, not bytes. */
Test(reap, keys_may_be_as_long_as_the_columns)
{
	bizlock *b = client(NULL);

	for (int i = 0; i < 9; i++)
		db_run(world.admin,
		       "INSERT INTO biz_lock (biz_type, biz_id, owner, reentrant, timeout,"
		       " gmt_create, gmt_modified) VALUES (REPEAT(_utf8mb4 x'f09f9492', 64),"
		       " CONCAT(REPEAT(_utf8mb4 x'f09f9492', 127), '%d'), 'o', 1,"
		       " UTC_TIMESTAMP(6) - INTERVAL 1 DAY, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
		       i);
	expect_reaped(b, NULL, .leases = 9);
}

/* Keys that differ in the second column of the primary key only, over the end of a page. */
Test(reap, many_types_of_one_id)
{
	bizlock *b = client(NULL);
	bizlock_reap_result result;

	stale_leases(world.admin, "old", .rows = 1100, .ago_ms = OLD_MS);
	stale_leases(world.admin, "z", .rows = 1, .ago_ms = OLD_MS);
	db_run(world.admin, "UPDATE biz_lock SET biz_type = biz_id, biz_id = 'one'"
	                    " WHERE biz_id LIKE 'old-%%'");
	result = reaped(b, NULL);
	cr_assert_eq(result.leases, 1101);
	cr_assert_eq(result.looked_at, 1102, "%llu", (unsigned long long)result.looked_at);
}

/* ---- what is said of it ------------------------------------------------------------------ */

/* The reaper's own lock is one more row. */
Test(reap, counts_what_it_looked_at)
{
	bizlock *b = client(NULL);
	bizlock_reap_result result;

	stale_leases(world.admin, "live", .rows = 700, .ago_ms = -60000);
	stale_leases(world.admin, "old", .rows = 700, .ago_ms = OLD_MS);
	stale_row_locks(world.admin, "new", .rows = 20);
	result = reaped(b, NULL);
	cr_assert_eq(result.looked_at, 1421, "%llu", (unsigned long long)result.looked_at);
	cr_assert_eq(result.passed_over, 0);
}

Test(reap, estimates_how_many_rows_there_are)
{
	bizlock *b = client(NULL);
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	bizlock_reap_result result;

	opts.flags = BIZLOCK_REAP_DRY_RUN;
	stale_leases(world.admin, "live", .rows = 1000, .ago_ms = -60000);
	stale_row_locks(world.admin, "new", .rows = 1000);
	db_run(world.admin, "ANALYZE TABLE biz_lock, biz_row_lock");
	result = reaped(b, &opts);
	cr_assert(result.rows >= 1000 && result.rows <= 4000, "%llu",
	          (unsigned long long)result.rows);
}

Test(reap, tells_of_its_progress)
{
	bizlock *b = client(NULL);
	struct at_progress p = {.at = 0};
	bizlock_reap_opts opts = with_progress(&p, 100);
	bizlock_reap_result result;

	stale_leases(world.admin, "old", .rows = 1000, .ago_ms = OLD_MS);
	stale_row_locks(world.admin, "old", .rows = 1000, .ago_ms = OLD_MS);
	result = reaped(b, &opts);
	cr_assert_geq(p.calls, 20);
	cr_assert_eq(p.last.size, sizeof(p.last));
	cr_assert_eq(p.last.leases, result.leases);
	cr_assert_eq(p.last.row_locks, result.row_locks);
	cr_assert_eq(p.last.looked_at, result.looked_at);
	cr_assert_eq(p.last.rows, result.rows);
}

Test(reap, tells_of_pages_without_anything_to_purge)
{
	bizlock *b = client(NULL);
	struct at_progress p = {.at = 0};
	bizlock_reap_opts opts = with_progress(&p, 500);

	stale_leases(world.admin, "live", .rows = 2000, .ago_ms = -60000);
	reaped(b, &opts);
	cr_assert_geq(p.calls, 4);
}

Test(reap, ends_early_when_progress_says_so)
{
	bizlock *b = client(NULL);
	struct at_progress p = {.at = 3, .answer = 1};
	bizlock_reap_opts opts = with_progress(&p, 10);

	stale_leases(world.admin, "old", .rows = 100, .ago_ms = OLD_MS);
	stale_row_locks(world.admin, "old", .rows = 100, .ago_ms = OLD_MS);
	expect_reaped(b, &opts, .leases = 30);
	cr_assert_eq(p.calls, 3);
	cr_assert_eq(left_of("biz_lock", "old"), 70);
	cr_assert(!row_of(&world, REAPER).there);
}

/* ---- how much ------------------------------------------------------------------------------- */

struct sizes {
	long long most;   /* the most rows that went between two looks from outside */
	long long before; /* rows at the last look */
};

static int watch_sizes(void *arg, const bizlock_reap_result *so_far)
{
	struct sizes *s = arg;
	long long now = left_of("biz_lock", "old") + left_of("biz_row_lock", "old");

	cr_assert_eq(now, 2 * 2000 - (long long)(so_far->leases + so_far->row_locks),
	             "what it says has gone is not committed");
	s->most = s->before - now > s->most ? s->before - now : s->most;
	s->before = now;
	return 0;
}

/* Each batch is a transaction: what progress reports has been committed. */
Test(reap, batches_are_no_larger_than_allowed)
{
	bizlock *b = client(NULL);
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	static const uint32_t batches[] = {150, 700, 10000};
	for (int i = 0; i < 3; i++) {
		struct sizes sizes = {.before = 2 * 2000};

		opts.batch = batches[i];
		opts.progress = watch_sizes;
		opts.arg = &sizes;
		stale_leases(world.admin, "old", .rows = 2000, .ago_ms = OLD_MS);
		stale_row_locks(world.admin, "old", .rows = 2000, .ago_ms = OLD_MS);
		expect_reaped(b, &opts, .leases = 2000, .row_locks = 2000);
		cr_assert_leq(sizes.most, batches[i]);
		cr_assert_gt(sizes.most, 1);
	}
}

Test(reap, one_row_at_a_time)
{
	bizlock *b = client(NULL);
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;

	opts.batch = 1;
	stale_leases(world.admin, "old", .rows = 12, .ago_ms = OLD_MS);
	stale_rests(world.admin, "rest", .rows = 3, .ago_ms = OLD_MS);
	expect_reaped(b, &opts, .leases = 12, .rests = 3);
}

static void no_more_than(uint64_t max, uint32_t flags)
{
	bizlock *b = client(NULL);
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	bizlock_reap_result result;

	opts.max = max;
	opts.batch = 7;
	opts.flags = flags;
	result = reaped(b, &opts);
	cr_assert_eq(result.leases + result.rests + result.row_locks, max, "%llu, %llu, %llu",
	             (unsigned long long)result.leases, (unsigned long long)result.rests,
	             (unsigned long long)result.row_locks);
}

Test(reap, purges_no_more_than_is_wanted)
{
	long long left = 60;

	stale_leases(world.admin, "old", .rows = 20, .ago_ms = OLD_MS);
	stale_rests(world.admin, "old-rest", .rows = 20, .ago_ms = OLD_MS);
	stale_row_locks(world.admin, "old", .rows = 20, .ago_ms = OLD_MS);
	for (uint64_t max = 1; max < 30; max += 9) {
		no_more_than(max, BIZLOCK_REAP_DRY_RUN);
		no_more_than(max, 0);
		left -= (long long)max;
		cr_assert_eq(left_of("biz_lock", "old") + left_of("biz_row_lock", "old"), left);
	}
}

/* ---- a dry run --------------------------------------------------------------------- */

static const char *checksums(void)
{
	static char text[512];
	char *rows = db_text(world.admin, "CHECKSUM TABLE biz_lock, biz_row_lock");

	snprintf(text, sizeof(text), "%s", rows);
	free(rows);
	return text;
}

static void nobody_reaps(void *arg)
{
	(void)arg;
	cr_assert(!row_of(&world, REAPER).there, "a dry run took the lock");
}

Test(reap, a_dry_run_counts_and_changes_nothing)
{
	bizlock *b = client(NULL);
	struct at_progress p = {.at = 1, .act = nobody_reaps};
	bizlock_reap_opts opts = with_progress(&p, 500);
	char before[512];

	opts.flags = BIZLOCK_REAP_DRY_RUN;
	stale_leases(world.admin, "old", .rows = 1100, .ago_ms = OLD_MS);
	stale_leases(world.admin, "live", .rows = 10, .ago_ms = -60000);
	stale_rests(world.admin, "rest", .rows = 20, .ago_ms = OLD_MS);
	stale_row_locks(world.admin, "old", .rows = 30, .ago_ms = OLD_MS);
	snprintf(before, sizeof(before), "%s", checksums());
	expect_reaped(b, &opts, .leases = 1100, .rests = 20, .row_locks = 30);
	cr_assert_geq(p.calls, 4);
	cr_assert_str_eq(checksums(), before);
	opts.flags = 0;
	opts.progress = NULL;
	expect_reaped(b, &opts, .leases = 1100, .rests = 20, .row_locks = 30);
}

/* ---- tables by another name -------------------------------------------------------- */

Test(reap, honours_the_prefix_of_its_client)
{
	bizlock *b = client_new(&world, OPTIONS("table_prefix", "x_"));

	expect(OK, b, bizlock_migrate(b));
	expect(OK, b, bizlock_open(b));
	stale_leases(world.admin, "old", .rows = 30, .ago_ms = OLD_MS);
	stale_row_locks(world.admin, "old", .rows = 40, .ago_ms = OLD_MS);
	db_run(world.admin, "INSERT INTO x_biz_lock SELECT * FROM biz_lock;"
	                    "INSERT INTO x_biz_row_lock SELECT * FROM biz_row_lock");
	expect_reaped(b, NULL, .leases = 30, .row_locks = 40);
	cr_assert_eq(left_of("x_biz_lock", "old") + left_of("x_biz_row_lock", "old"), 0);
	cr_assert_eq(left_of("biz_lock", "old") + left_of("biz_row_lock", "old"), 70);
	bizlock_close(b);
}
