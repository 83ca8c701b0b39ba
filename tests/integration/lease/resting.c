/* A lock that rests after its release, so that a job runs at most once in a
 * period. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_keyset.h"
#include "cr_numbers.h"
#include "cr_test.h"

TestSuite(resting, .init = world_begin, .fini = world_end, .timeout = 240);

#define LONG_MS 600000 /* nobody here waits for its end */
#define SHORT_MS 1500
#define SOON_MS 5000

static bizlock_acquire_opts resting(uint32_t min_hold_ms, const char *owner)
{
	return OPTS(.lease_ms = 60000, .min_hold_ms = min_hold_ms, .owner = owner);
}

/* Acquires the lock and gives it back at once. Returns its fence. */
static uint64_t run_job(bizlock *b, const char *id, uint32_t min_hold_ms)
{
	bizlock_acquire_opts opts = resting(min_hold_ms, NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	uint32_t left = 99;

	expect(OK, b, bizlock_acquire(b, KEY(id), &opts, &grant));
	expect(OK, b, bizlock_release(b, KEY(id), NULL, &left));
	cr_assert_eq(left, 0);
	return grant.fence;
}

static bool there(const char *id)
{
	return row_of(&world, KEY(id)).there;
}

static bool rests(const char *id)
{
	struct row row = row_of(&world, KEY(id));

	return row.there && !row.owner[0] && row.depth == 0;
}

/* ---- what is left of it ------------------------------------------------------- */

struct seen {
	unsigned rows;
	bizlock_info info;
	char owner[192], note[256];
};

static int see(void *arg, const bizlock_info *info)
{
	struct seen *seen = arg;

	seen->rows++;
	seen->info = *info;
	snprintf(seen->owner, sizeof(seen->owner), "%s", info->owner);
	snprintf(seen->note, sizeof(seen->note), "%s", info->note);
	return 0;
}

Test(resting, its_row_stays_without_an_owner)
{
	bizlock *b = client(NULL);
	uint64_t fence = run_job(b, "job", LONG_MS);
	struct seen seen = {.rows = 0};

	cr_assert(rests("job"));
	expect(OK, b, bizlock_each(b, NULL, see, &seen));
	cr_assert_eq(seen.rows, 1);
	cr_assert_str_eq(seen.owner, "");
	cr_assert_eq(seen.info.depth, 0);
	cr_assert_eq(seen.info.fence, fence);
	cr_assert(seen.info.left_ms > LONG_MS / 2 && seen.info.left_ms <= LONG_MS, "%lld ms",
	          (long long)seen.info.left_ms);
}

Test(resting, the_minimum_counts_from_the_acquisition)
{
	bizlock *b = client(NULL);

	run_job(b, "job", LONG_MS);
	cr_assert_eq(db_number(world.admin, "SELECT ABS(TIMESTAMPDIFF(MICROSECOND, gmt_create,"
	                                    " timeout) - 600000000) < 1000000 FROM biz_lock"),
	             1);
}

Test(resting, the_longest_minimum_is_kept)
{
	bizlock *b = client(NULL);
	struct seen seen = {.rows = 0};

	run_job(b, "job", UINT32_MAX);
	expect(OK, b, bizlock_each(b, NULL, see, &seen));
	cr_assert_eq(seen.rows, 1);
	cr_assert(seen.info.left_ms > UINT32_MAX - 600000ll && seen.info.left_ms <= UINT32_MAX,
	          "%lld ms", (long long)seen.info.left_ms);
}

/* By the server's clock, and with some time to spare. */
Test(resting, a_minimum_that_is_over_leaves_nothing)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = resting(200, NULL);

	expect(OK, b, bizlock_acquire(b, KEY("job"), &opts, NULL));
	eventually(db_number(world.admin, "SELECT UTC_TIMESTAMP(6) > gmt_create + INTERVAL"
	                                  " 2000000 MICROSECOND FROM biz_lock"));
	expect(OK, b, bizlock_release(b, KEY("job"), NULL, NULL));
	cr_assert(!there("job"));
}

Test(resting, without_a_minimum_nothing_rests)
{
	bizlock *b = client(NULL);

	run_job(b, "job", 0);
	cr_assert(!there("job"));
}

Test(resting, only_the_last_level_rests)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = resting(LONG_MS, NULL);

	expect(OK, b, bizlock_acquire(b, KEY("job"), &opts, NULL));
	expect(OK, b, acquire(b, "job")); /* no minimum of its own */
	expect(OK, b, bizlock_release(b, KEY("job"), NULL, NULL));
	expect(OK, b, bizlock_verify(b, KEY("job"), NULL));
	cr_assert_eq(row_of(&world, KEY("job")).depth, 1);
	expect(OK, b, bizlock_release(b, KEY("job"), NULL, NULL));
	cr_assert(rests("job"));
}

Test(resting, closing_the_client_lets_it_rest)
{
	bizlock *b = client_open(&world, NULL);
	bizlock_acquire_opts opts = resting(LONG_MS, NULL);

	expect(OK, b, bizlock_acquire(b, KEY("job"), &opts, NULL));
	bizlock_close(b);
	cr_assert(rests("job"));
}

Test(resting, an_operator_may_end_it)
{
	bizlock *b = client(NULL);
	uint64_t fence = run_job(b, "job", LONG_MS);

	expect(BUSY, b, bizlock_break(b, KEY("job"), fence + 1));
	cr_assert(rests("job"));
	expect(OK, b, bizlock_break(b, KEY("job"), fence));
	cr_assert(!there("job"));
	expect(OK, b, acquire(b, "job"));
}

/* ---- others, meanwhile ------------------------------------------------------------ */

static void a_try_is_refused(bizlock *b)
{
	expect(BUSY, b, acquire(b, "job"));
	expect_message(b, "rest");
	expect_message(b, "job");
	expect(TIMEOUT, b, acquire(b, "job", .wait_ms = 300));
	expect_message(b, "rest");
	cr_assert(rests("job"));
}

Test(resting, nobody_gets_it_and_is_told_why)
{
	bizlock *a = client(NULL), *b = client(NULL);

	run_job(a, "job", LONG_MS);
	a_try_is_refused(b);
}

Test(resting, nobody_gets_it_without_the_queue)
{
	bizlock *a = client(OPTIONS("queue", "off")), *b = client(OPTIONS("queue", "off"));

	deadlocks_may_happen();
	run_job(a, "job", LONG_MS);
	a_try_is_refused(b);
}

Test(resting, its_former_owner_is_nobody_special)
{
	bizlock *b = client(NULL);

	run_job(b, "job", LONG_MS);
	a_try_is_refused(b);
	expect(NOT_OWNER, b, bizlock_release(b, KEY("job"), NULL, NULL));
	expect(NOT_OWNER, b, bizlock_renew(b, KEY("job"), NULL, 60000));
	expect(NOT_OWNER, b, bizlock_verify(b, KEY("job"), NULL));
	cr_assert_leq(bizlock_left_ms(b, KEY("job"), NULL), 0);
	cr_assert(rests("job"));
}

Test(resting, a_set_with_it_is_refused)
{
	bizlock *a = client(NULL), *b = client(NULL);
	struct keyset s;

	keyset_make(&s, 4, "k");
	run_job(a, s.ids[2], LONG_MS);
	expect(BUSY, b, keyset_acquire(b, &s));
	expect_message(b, s.ids[2]);
	expect_message(b, "rest");
	cr_assert_eq(rows(), 1);
}

Test(resting, each_key_of_a_set_rests)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_acquire_opts opts = resting(LONG_MS, NULL);
	struct keyset s;

	keyset_make(&s, 4, "k");
	expect(OK, a, bizlock_acquire_all(a, s.keys, s.n, &opts, NULL));
	expect(OK, a, keyset_release(a, &s, NULL));
	for (size_t i = 0; i < s.n; i++) {
		cr_assert(rests(s.ids[i]), "%s", s.ids[i]);
		expect(BUSY, b, acquire(b, s.ids[i]));
	}
}

/* ---- others, afterwards ------------------------------------------------------------ */

/* By the server's clock, the new hold began when the minimum of the old one was over, and not much
 * later. */
static void not_before_its_time(const char *id, long long over_us)
{
	long long began = db_number(world.admin,
	                            "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', gmt_create)"
	                            " FROM biz_lock WHERE %s",
	                            row_where(KEY(id)));

	cr_assert_geq(began, over_us, "%lld us too early", over_us - began);
	cr_assert_lt(began, over_us + SOON_MS * 1000ll, "%lld us too late", began - over_us);
}

static void obtained_right_after(bizlock *a, bizlock *b)
{
	uint64_t fence = run_job(a, "job", SHORT_MS);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	long long over = row_of(&world, KEY("job")).timeout_us;

	cr_assert(rests("job"));
	expect(OK, b, acquire(b, "job", .wait_ms = -1, .lease_ms = 60000, .grant = &grant));
	not_before_its_time("job", over);
	cr_assert_eq(grant.flags, 0, "it had been released");
	cr_assert_eq(grant.depth, 1);
	cr_assert_gt(grant.fence, fence);
	cr_assert_eq(row_of(&world, KEY("job")).fence, grant.fence);
	expect(OK, b, bizlock_release(b, KEY("job"), NULL, NULL));
	cr_assert(!there("job"));
}

Test(resting, a_waiter_gets_it_right_after)
{
	bizlock *a = client(NULL), *b = client(NULL);

	obtained_right_after(a, b);
	cr_assert_eq(numbers_of(b).taken_over, 0);
	cr_assert_eq(numbers_of(a).lost, 0);
}

Test(resting, the_same_client_may_be_the_one_that_waits)
{
	bizlock *b = client(NULL);

	obtained_right_after(b, b);
}

Test(resting, a_poller_gets_it_right_after)
{
	deadlocks_may_happen();
	obtained_right_after(client(OPTIONS("queue", "off")), client(OPTIONS("queue", "off")));
}

/* The waiter is in line before the release, which wakes it too early. */
Test(resting, an_earlier_waiter_gets_it_right_after)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_acquire_opts opts = resting(2 * SHORT_MS, "holder");
	struct call call;
	long long over;

	expect(OK, a, bizlock_acquire(a, KEY("job"), &opts, NULL));
	call_start(&call, b, "job", .wait_ms = -1, .owner = "waiter");
	call_blocks(&call);
	expect(OK, a, bizlock_release(a, KEY("job"), "holder", NULL));
	cr_assert(rests("job"));
	over = row_of(&world, KEY("job")).timeout_us;
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	not_before_its_time("job", over);
	cr_assert_eq(call.grant.flags, 0);
}

Test(resting, a_later_try_gets_it)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	uint64_t fence = run_job(a, "job", 300);

	if (there("job"))
		lease_is_over("job");
	expect(OK, b, acquire(b, "job", .grant = &grant));
	cr_assert_eq(grant.flags, 0);
	cr_assert_gt(grant.fence, fence);
}
