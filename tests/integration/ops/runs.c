/* What bizlock_run_begin() and bizlock_run_end() record, and bizlock_each_run() shows. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_test.h"

TestSuite(runs, .init = world_begin, .fini = world_end, .timeout = 240);

struct seen {
	unsigned count, stop_after;
	bizlock_run last; /* its texts are below */
	char biz_type[64], biz_id[128], owner[192];
};

static int see(void *arg, const bizlock_run *run)
{
	struct seen *s = arg;

	s->last = *run;
	snprintf(s->biz_type, sizeof(s->biz_type), "%s", run->biz_type);
	snprintf(s->biz_id, sizeof(s->biz_id), "%s", run->biz_id);
	snprintf(s->owner, sizeof(s->owner), "%s", run->owner);
	return ++s->count == s->stop_after;
}

/* The only run of the key "k". */
static bizlock_run look(bizlock *b)
{
	struct seen s = {.count = 0};

	expect(OK, b, bizlock_each_run(b, "test", "k", see, &s));
	cr_assert_eq(s.count, 1);
	return s.last;
}

static void expect_outcome(bizlock *b, enum bizlock_outcome outcome)
{
	bizlock_run run = look(b);

	cr_assert_eq(run.outcome, outcome, "%u, not %u", run.outcome, outcome);
}

static uint64_t begin(bizlock *b, const char *owner)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b, acquire_as(b, "k", owner, .grant = &grant));
	expect(OK, b, bizlock_run_begin(b, KEY("k"), owner));
	return grant.fence;
}

static bizlock_run_result result(enum bizlock_outcome outcome, int32_t code, uint32_t number)
{
	bizlock_run_result ret = BIZLOCK_RUN_RESULT_INIT;

	ret.outcome = outcome;
	ret.exit_code = code;
	ret.exit_signal = number;
	return ret;
}

static void end(bizlock *b, const char *owner, bizlock_run_result how)
{
	expect(OK, b, bizlock_run_end(b, KEY("k"), owner, &how));
	expect(OK, b, bizlock_release(b, KEY("k"), owner, NULL));
}

static void run(bizlock *b, enum bizlock_outcome outcome)
{
	begin(b, "job");
	end(b, "job", result(outcome, 0, 0));
}

/* ---- one run after the other ------------------------------------------------------------- */

Test(runs, a_run_is_shown_while_it_runs_and_when_it_has_ended)
{
	bizlock *b = client(NULL);
	long long before = server_us();
	uint64_t fence = begin(b, "job");
	struct seen s = {.count = 0};
	bizlock_run now = look(b);

	expect(OK, b, bizlock_each_run(b, NULL, NULL, see, &s));
	cr_assert_str_eq(s.biz_type, "test");
	cr_assert_str_eq(s.biz_id, "k");
	cr_assert_str_eq(s.owner, row_of(&world, KEY("k")).owner);
	cr_assert_geq(now.size, sizeof(now));
	cr_assert_eq(now.outcome, BIZLOCK_RUN_RUNNING);
	cr_assert_eq(now.fence, fence);
	cr_assert(before <= now.began_us && now.began_us <= now.now_us);
	cr_assert(now.ended_us == 0 && now.succeeded_us == 0 && now.exit_code == -1);
	cr_assert(now.runs == 1 && now.failures == 0 && now.failures_in_row == 0);
	end(b, "job", result(BIZLOCK_RUN_DONE, 0, 0));
	now = look(b);
	cr_assert_eq(now.outcome, BIZLOCK_RUN_DONE);
	cr_assert(now.began_us <= now.ended_us && now.ended_us <= now.now_us);
	cr_assert(now.succeeded_us == now.ended_us && now.exit_code == 0 && now.exit_signal == 0);
	cr_assert(now.runs == 1 && now.failures == 0 && now.failures_in_row == 0);
}

Test(runs, failures_are_counted_and_the_last_success_is_kept)
{
	bizlock *b = client(NULL);
	int64_t succeeded;
	bizlock_run now;

	run(b, BIZLOCK_RUN_FAILED);
	run(b, BIZLOCK_RUN_DONE);
	succeeded = look(b).succeeded_us;
	begin(b, "job");
	end(b, "job", result(BIZLOCK_RUN_FAILED, 3, 0));
	now = look(b);
	cr_assert(now.outcome == BIZLOCK_RUN_FAILED && now.exit_code == 3 && !now.exit_signal);
	begin(b, "job");
	now = look(b);
	cr_assert(now.exit_code == -1 && now.ended_us == 0);
	cr_assert(now.runs == 4 && now.failures == 2 && now.failures_in_row == 1);
	end(b, "job", result(BIZLOCK_RUN_FAILED, -1, 9));
	now = look(b);
	cr_assert(now.exit_code == -1 && now.exit_signal == 9);
	cr_assert(now.runs == 4 && now.failures == 3 && now.failures_in_row == 2);
	cr_assert_eq(now.succeeded_us, succeeded);
	run(b, BIZLOCK_RUN_DONE);
	now = look(b);
	cr_assert(now.runs == 5 && now.failures == 3 && now.failures_in_row == 0);
	cr_assert(now.exit_signal == 0 && now.succeeded_us > succeeded);
}

/* A statement whose reply was lost is sent again. */
Test(runs, what_is_told_twice_counts_once)
{
	bizlock_run_result done = result(BIZLOCK_RUN_DONE, 0, 0);
	bizlock *b = client(NULL);
	bizlock_run now, then;

	begin(b, "job");
	now = look(b);
	expect(OK, b, bizlock_run_begin(b, KEY("k"), "job"));
	then = look(b);
	cr_assert(then.runs == 1 && then.began_us == now.began_us);
	expect(OK, b, bizlock_run_end(b, KEY("k"), "job", &done));
	now = look(b);
	end(b, "job", result(BIZLOCK_RUN_FAILED, 1, 0));
	then = look(b);
	cr_assert(then.outcome == BIZLOCK_RUN_DONE && then.ended_us == now.ended_us);
	cr_assert(then.runs == 1 && then.failures == 0);
}

/* ---- runs that do not end as they should ---------------------------------------------------- */

static void lease_ends(void)
{
	db_run(world.admin, "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6) WHERE %s",
	       row_where(KEY("k")));
}

Test(runs, a_run_without_its_lock_has_died)
{
	bizlock *b = client(NULL);
	bizlock_run now;

	begin(b, "job");
	expect_outcome(b, BIZLOCK_RUN_RUNNING);
	lease_ends();
	now = look(b);
	cr_assert(now.outcome == BIZLOCK_RUN_DIED && now.ended_us == 0 && now.exit_code == -1);
	cr_assert(now.runs == 1 && now.failures == 1 && now.failures_in_row == 1);
	db_run(world.admin, "DELETE FROM biz_lock");
	expect_outcome(b, BIZLOCK_RUN_DIED);
}

Test(runs, another_hold_of_the_key_does_not_hide_a_death)
{
	bizlock *a = client(NULL), *b = client(NULL);

	begin(a, "job");
	db_run(world.admin, "DELETE FROM biz_lock");
	expect(OK, b, acquire_as(b, "k", "other"));
	expect_outcome(b, BIZLOCK_RUN_DIED);
}

static void begin_with_rest(bizlock *b)
{
	bizlock_acquire_opts opts = OPTS(.lease_ms = 60000, .min_hold_ms = 3600000, .owner = "job",
	                                 .flags = BIZLOCK_NO_RENEW);

	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	expect(OK, b, bizlock_run_begin(b, KEY("k"), "job"));
	expect_outcome(b, BIZLOCK_RUN_RUNNING);
}

static void age_row(const char *interval)
{
	db_run(world.admin,
	       "UPDATE biz_lock SET gmt_modified = gmt_modified - INTERVAL %s WHERE %s", interval,
	       row_where(KEY("k")));
}

/* Nobody gets the lock for an hour, but the lease is over after a minute. */
Test(runs, a_death_is_seen_while_the_lock_is_kept_for_a_rest)
{
	bizlock *b = client(NULL);

	begin_with_rest(b);
	age_row("50 SECOND");
	expect_outcome(b, BIZLOCK_RUN_RUNNING);
	age_row("10 SECOND");
	expect_outcome(b, BIZLOCK_RUN_DIED);
	expect(OK, b, bizlock_renew(b, KEY("k"), "job", 0));
	expect_outcome(b, BIZLOCK_RUN_RUNNING);
}

/* The row says when the lease ends, whatever lease a call has asked for since. */
Test(runs, a_longer_lease_counts_where_nothing_rests)
{
	bizlock *b = client(NULL);

	expect(OK, b, acquire(b, "k", .lease_ms = 1000, .owner = "job"));
	expect(OK, b, bizlock_run_begin(b, KEY("k"), "job"));
	expect(OK, b, bizlock_renew(b, KEY("k"), "job", 600000));
	age_row("100 SECOND");
	expect_outcome(b, BIZLOCK_RUN_RUNNING);
}

Test(runs, a_lock_at_rest_has_no_run)
{
	bizlock *b = client(NULL);

	begin_with_rest(b);
	expect(OK, b, bizlock_release(b, KEY("k"), "job", NULL));
	expect_outcome(b, BIZLOCK_RUN_DIED);
}

/* Before the client could know. */
Test(runs, success_without_the_lock_is_a_lost_run)
{
	bizlock_run_result done = result(BIZLOCK_RUN_DONE, 0, 0);
	bizlock *b = client(NULL);
	bizlock_run now;

	begin(b, "job");
	lease_ends();
	expect(OK, b, bizlock_run_end(b, KEY("k"), "job", &done));
	now = look(b);
	cr_assert(now.outcome == BIZLOCK_RUN_LOST && now.succeeded_us == 0 && now.exit_code == 0);
	cr_assert(now.ended_us > 0 && now.failures == 1);
}

Test(runs, a_hold_that_is_known_to_be_lost_is_a_lost_run)
{
	bizlock *b = client(NULL);
	uint64_t fence = begin(b, "job");
	bizlock_run_result done = result(BIZLOCK_RUN_DONE, 0, 0);

	expect(OK, b, bizlock_break(b, KEY("k"), fence));
	expect(OK, b, bizlock_run_end(b, KEY("k"), "job", &done));
	expect_outcome(b, BIZLOCK_RUN_LOST);
	expect(LOST, b, bizlock_run_begin(b, KEY("k"), "job"));
}

Test(runs, a_run_that_was_replaced_does_not_touch_its_successor)
{
	bizlock_run_result done = result(BIZLOCK_RUN_DONE, 0, 0);
	bizlock *a = client(NULL), *b = client(NULL);
	uint64_t fence;
	bizlock_run now;

	begin(a, "job");
	lease_ends();
	fence = begin(b, "next");
	expect(OK, a, bizlock_run_end(a, KEY("k"), "job", &done));
	now = look(b);
	cr_assert(now.outcome == BIZLOCK_RUN_RUNNING && now.fence == fence && !now.ended_us);
	cr_assert(now.runs == 2 && now.failures == 1 && now.succeeded_us == 0);
	end(b, "next", done);
	now = look(b);
	cr_assert(now.outcome == BIZLOCK_RUN_DONE && now.runs == 2 && now.failures == 1);
}

Test(runs, a_beginning_that_comes_too_late_changes_nothing)
{
	bizlock *a = client(NULL), *b = client(NULL);
	uint64_t fence;
	bizlock_run now;

	expect(OK, a, acquire_as(a, "k", "job"));
	lease_ends();
	fence = begin(b, "next");
	expect(OK, a, bizlock_run_begin(a, KEY("k"), "job"));
	now = look(b);
	cr_assert(now.runs == 1 && now.fence == fence && now.outcome == BIZLOCK_RUN_RUNNING);
}

/* ---- who waits for whom --------------------------------------------------------------------- */

static MYSQL *lock_rows(const char *table)
{
	MYSQL *db = db_open(&world.at, world.schema);

	db_run(db,
	       "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION;"
	       "SELECT 1 FROM %s FOR UPDATE",
	       table);
	return db;
}

Test(runs, no_lock_waits_for_the_table_of_runs)
{
	bizlock *b = client(NULL);
	struct call call;
	MYSQL *db;

	run(b, BIZLOCK_RUN_DONE);
	db = lock_rows("biz_run");
	expect(OK, b, acquire_as(b, "k", "job"));
	call_start(&call, b, "k", .wait_ms = -1, .owner = "next");
	call_blocks(&call);
	expect(DB, b, bizlock_run_begin(b, KEY("k"), "job"));
	expect(OK, b, bizlock_renew(b, KEY("k"), "job", 0));
	expect(OK, b, bizlock_release(b, KEY("k"), "job", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	mysql_close(db);
	expect(OK, b, bizlock_run_begin(b, KEY("k"), "next"));
	end(b, "next", result(BIZLOCK_RUN_DONE, 0, 0));
	cr_assert_eq(look(b).runs, 2);
}

/* A transaction may have fenced the lock. */
Test(runs, records_wait_for_no_row_of_a_lock)
{
	bizlock *b = client(NULL);
	bizlock_run_result done = result(BIZLOCK_RUN_DONE, 0, 0);
	MYSQL *db;

	expect(OK, b, acquire_as(b, "k", "job"));
	db = lock_rows("biz_lock");
	expect(OK, b, bizlock_run_begin(b, KEY("k"), "job"));
	expect_outcome(b, BIZLOCK_RUN_RUNNING);
	expect(OK, b, bizlock_run_end(b, KEY("k"), "job", &done));
	expect_outcome(b, BIZLOCK_RUN_DONE);
	mysql_close(db);
}

/* ---- many keys ---------------------------------------------------------------------------- */

/* Rows whose ids are the SQL expression `id` of the numbers n = 1, 2, ... */
static void make_runs(const char *id, unsigned n)
{
	db_run(world.admin,
	       "INSERT INTO biz_run (biz_id, biz_type, fence, owner, outcome, began_at, runs, "
	       "since_success) "
	       "WITH RECURSIVE numbers AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM numbers "
	       "WHERE n < %u) "
	       "SELECT %s, IF(n %% 3, 'test', 'other'), n, 'somebody', 'failed', "
	       "UTC_TIMESTAMP(6), 1, 1 FROM numbers",
	       n, id);
}

static void expect_count(bizlock *b, const char *type, const char *id, unsigned count)
{
	struct seen s = {.count = 0};

	expect(OK, b, bizlock_each_run(b, type, id, see, &s));
	cr_assert_eq(s.count, count, "%u, not %u", s.count, count);
}

Test(runs, pages_of_keys_of_all_kinds)
{
	bizlock *b = client(NULL);
	struct seen s = {.stop_after = 300};

	make_runs("CONCAT(REPEAT(_utf8mb4 x'f09f9492', 120), LPAD(n, 8, '0'))", 512);
	make_runs("CONCAT('k', CHAR(0 USING utf8mb4), LPAD(n, 8, '0'))", 256);
	make_runs("CONCAT(n, ''' OR ''''=''')", 30);
	expect_count(b, NULL, NULL, 798);
	expect_count(b, "other", NULL, 170 + 85 + 10);
	expect_count(b, "test", "4' OR ''='", 1);
	expect_count(b, "test", "3' OR ''='", 0);
	expect(OK, b, bizlock_each_run(b, NULL, NULL, see, &s));
	cr_assert_eq(s.count, 300);
}

Test(runs, rows_out_of_order_are_told)
{
	bizlock *b = client(NULL);
	struct seen s = {.count = 0};

	db_run(world.admin, "ALTER TABLE biz_run MODIFY biz_id VARCHAR(128) CHARACTER SET utf8mb4 "
	                    "COLLATE utf8mb4_general_ci NOT NULL");
	make_runs("CONCAT(IF(n % 2, 'a', 'A'), LPAD(n, 8, '0'))", 300);
	expect(DB, b, bizlock_each_run(b, NULL, NULL, see, &s));
	expect_message(b, "order");
}

/* What a later library, or somebody by hand, has written. */
Test(runs, values_that_were_not_written_by_this_library)
{
	bizlock *b = client(NULL);
	bizlock_run now;

	db_run(world.admin, "INSERT INTO biz_run VALUES ('k', 'test', 18446744073709551615, '', 0, "
	                    "'sublime', -7, 4294967295, '1000-01-01', '9999-12-31', NULL, 0, "
	                    "18446744073709551615, 0)");
	now = look(b);
	cr_assert_eq(now.outcome, BIZLOCK_RUN_FAILED);
	cr_assert(now.failures == 0 && now.failures_in_row == 0 && now.exit_code >= -1);
}

Test(runs, the_callback_may_call_the_library)
{
	bizlock *b = client(OPTIONS("max_connections", "1"));
	struct seen s = {.count = 0};
	int rc;

	run(b, BIZLOCK_RUN_DONE);
	rc = bizlock_each_run(b, NULL, NULL, see, &s);
	cr_assert_eq(rc, BIZLOCK_OK);
	works(b);
}

Test(runs, a_prefix_has_runs_of_its_own)
{
	bizlock *b = client_new(&world, OPTIONS("table_prefix", "x_")), *plain = client(NULL);

	expect(OK, b, bizlock_migrate(b));
	expect(OK, b, bizlock_open(b));
	run(b, BIZLOCK_RUN_DONE);
	expect_count(b, NULL, NULL, 1);
	expect_count(plain, NULL, NULL, 0);
	bizlock_close(b);
}

/* ---- what cannot be recorded ------------------------------------------------------------------
 */

Test(runs, without_the_table)
{
	bizlock_run_result done = result(BIZLOCK_RUN_DONE, 0, 0);
	bizlock *b = client(NULL);
	struct seen s = {.count = 0};

	db_run(world.admin, "DROP TABLE biz_run");
	expect(OK, b, acquire_as(b, "k", "job"));
	expect(SCHEMA, b, bizlock_run_begin(b, KEY("k"), "job"));
	expect_message(b, "bizlock migrate");
	expect(SCHEMA, b, bizlock_run_end(b, KEY("k"), "job", &done));
	expect(SCHEMA, b, bizlock_each_run(b, NULL, NULL, see, &s));
	expect(OK, b, bizlock_release(b, KEY("k"), "job", NULL));
}

Test(runs, an_end_without_a_beginning_changes_nothing)
{
	bizlock *b = client(NULL);

	run(b, BIZLOCK_RUN_DONE);
	expect(OK, b, acquire_as(b, "k", "job"));
	end(b, "job", result(BIZLOCK_RUN_FAILED, 1, 0));
	expect_outcome(b, BIZLOCK_RUN_DONE);
	cr_assert_eq(look(b).runs, 1);
}

Test(runs, bad_calls)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts share = OPTS(.flags = BIZLOCK_SHARED, .owner = "sharer");
	bizlock_run_result how = result(BIZLOCK_RUN_DONE, 0, 0);
	struct seen s = {.count = 0};

	expect(NOT_OWNER, b, bizlock_run_begin(b, KEY("k"), "job"));
	expect(NOT_OWNER, b, bizlock_run_end(b, KEY("k"), "job", &how));
	expect(INVALID, b, bizlock_run_end(b, KEY("k"), "job", NULL));
	expect(OK, b, bizlock_acquire(b, KEY("k"), &share, NULL));
	expect(INVALID, b, bizlock_run_begin(b, KEY("k"), "sharer"));
	expect_message(b, "shared");
	expect(INVALID, b, bizlock_run_end(b, KEY("k"), "sharer", &how));
	how.outcome = BIZLOCK_RUN_RUNNING;
	expect(INVALID, b, bizlock_run_end(b, KEY("k"), "job", &how));
	expect_message(b, "outcome");
	how.outcome = BIZLOCK_RUN_DIED;
	expect(INVALID, b, bizlock_run_end(b, KEY("k"), "job", &how));
	how = result(BIZLOCK_RUN_DONE, -2, 0);
	expect(INVALID, b, bizlock_run_end(b, KEY("k"), "job", &how));
	expect_message(b, "exit_code");
	how = result(BIZLOCK_RUN_DONE, 0, 0);
	how.reserved = 1;
	expect(INVALID, b, bizlock_run_end(b, KEY("k"), "job", &how));
	how = result(BIZLOCK_RUN_DONE, 0, 0);
	how.size = 4;
	expect(INVALID, b, bizlock_run_end(b, KEY("k"), "job", &how));
	expect_message(b, "sizeof(bizlock_run_result)");
	expect(INVALID, b, bizlock_each_run(b, NULL, NULL, NULL, NULL));
	expect(INVALID, b, bizlock_each_run(b, NULL, "k", see, &s));
	expect_message(b, "biz_type");
	expect(INVALID, b, bizlock_each_run(b, "", NULL, see, &s));
	cr_assert_eq(bizlock_run_begin(NULL, KEY("k"), "job"), BIZLOCK_INVALID);
}
