/* The minimum holds from the beginning, whatever becomes of the holder. What the holder itself may
 * rely on is the lease. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <unistd.h>

#include "cr_test.h"

TestSuite(resting_held, .init = world_begin, .fini = world_end, .timeout = 240);

#define LONG_MS 600000 /* nobody here waits for its end */
#define LEASE_MS 1500

static bool rests(const char *id)
{
	struct row row = row_of(&world, KEY(id));

	return row.there && !row.owner[0] && row.depth == 0;
}

Test(resting_held, it_is_renewed_while_it_is_held)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_acquire_opts opts = OPTS(.lease_ms = LEASE_MS, .min_hold_ms = LONG_MS);
	long long end;

	expect(OK, a, bizlock_acquire(a, KEY("job"), &opts, NULL));
	end = row_of(&world, KEY("job")).timeout_us;
	cr_assert_geq(end, began_us("job") + LONG_MS * 1000LL);
	eventually(modified_us("job") > began_us("job") + 3 * LEASE_MS * 1000);
	/* Each renewal is for one lease, and shortens nothing. */
	cr_assert_eq(row_of(&world, KEY("job")).timeout_us, end);
	cr_assert_leq(bizlock_left_ms(a, KEY("job"), NULL), LEASE_MS);
	expect(BUSY, b, acquire(b, "job"));
	expect_message(b, row_of(&world, KEY("job")).owner);
	expect(OK, a, bizlock_verify(a, KEY("job"), NULL));
	expect(OK, a, bizlock_release(a, KEY("job"), NULL, NULL));
	cr_assert(rests("job"));
}

Test(resting_held, a_minimum_longer_than_the_lease_is_kept)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_acquire_opts opts = OPTS(.lease_ms = LEASE_MS, .min_hold_ms = 3 * LEASE_MS);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	long long began, end;

	expect(OK, a, bizlock_acquire(a, KEY("job"), &opts, NULL));
	began = began_us("job");
	expect(OK, a, bizlock_release(a, KEY("job"), NULL, NULL));
	end = row_of(&world, KEY("job")).timeout_us;
	cr_assert_geq(end, began + 3 * LEASE_MS * 1000 - 1000, "%lld us", end - began);
	expect(OK, b, acquire(b, "job", .wait_ms = -1, .lease_ms = 60000, .grant = &grant));
	cr_assert_eq(grant.flags, 0);
	cr_assert_geq(row_of(&world, KEY("job")).timeout_us - 60000 * 1000ll, end);
}

/* The lease may be longer: the job is done, and the period is over. */
Test(resting_held, a_minimum_shorter_than_the_lease_ends_before_it)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_acquire_opts opts = OPTS(.lease_ms = LONG_MS, .min_hold_ms = LEASE_MS);
	int64_t start = now_ms();

	expect(OK, a, bizlock_acquire(a, KEY("job"), &opts, NULL));
	expect(OK, a, bizlock_release(a, KEY("job"), NULL, NULL));
	cr_assert(rests("job"));
	cr_assert_leq(row_of(&world, KEY("job")).left_us, LEASE_MS * 1000);
	expect(OK, b, acquire(b, "job", .wait_ms = -1));
	cr_assert_lt(now_ms() - start, PATIENCE_MS);
}

Test(resting_held, a_holder_that_dies_is_succeeded_after_the_minimum)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_acquire_opts opts = OPTS(.lease_ms = 300, .min_hold_ms = 3 * LEASE_MS,
	                                 .flags = BIZLOCK_NO_RENEW); /* as if it were dead */
	bizlock_grant first = BIZLOCK_GRANT_INIT, grant = BIZLOCK_GRANT_INIT;
	long long began;
	int64_t start = now_ms();

	expect(OK, a, bizlock_acquire(a, KEY("job"), &opts, &first));
	began = began_us("job");
	eventually(bizlock_left_ms(a, KEY("job"), NULL) <= 0);
	expect(BUSY, b, acquire(b, "job"));
	opts = OPTS(.wait_ms = -1, .lease_ms = 60000);
	expect(OK, b, bizlock_acquire(b, KEY("job"), &opts, &grant));
	cr_assert_geq(now_ms() - start, 3 * LEASE_MS);
	cr_assert_geq(began_us("job"), began + 3 * LEASE_MS * 1000LL);
	cr_assert_eq(grant.flags, BIZLOCK_TOOK_OVER);
	cr_assert_gt(grant.fence, first.fence);
	expect(LOST, a, bizlock_release(a, KEY("job"), NULL, NULL));
	expect(OK, b, bizlock_release(b, KEY("job"), NULL, NULL));
	cr_assert(no_row(&world, KEY("job")), "the minimum of another");
}

Test(resting_held, a_lease_that_is_asked_for_shortens_no_minimum)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = OPTS(.lease_ms = 60000, .min_hold_ms = LONG_MS);

	expect(OK, b, bizlock_acquire(b, KEY("job"), &opts, NULL));
	expect(OK, b, bizlock_renew(b, KEY("job"), NULL, 1000));
	cr_assert_leq(bizlock_left_ms(b, KEY("job"), NULL), 1000);
	cr_assert_geq(row_of(&world, KEY("job")).timeout_us, began_us("job") + LONG_MS * 1000LL);
	expect(OK, b, acquire(b, "other", .lease_ms = 60000));
	expect(OK, b, bizlock_acquire(b, KEY("other"), &OPTS(.min_hold_ms = LONG_MS), NULL));
	cr_assert_geq(row_of(&world, KEY("other")).left_us, (LONG_MS - 60000) * 1000LL);
}

Test(resting_held, a_minimum_ends_with_the_hold_it_was_asked_for)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = OPTS(.lease_ms = 60000, .min_hold_ms = 300);

	expect(OK, b, bizlock_acquire(b, KEY("job"), &opts, NULL));
	expect(OK, b, bizlock_release(b, KEY("job"), NULL, NULL));
	expect(OK, b, acquire(b, "job", .wait_ms = -1));
	expect(OK, b, bizlock_release(b, KEY("job"), NULL, NULL));
	cr_assert(no_row(&world, KEY("job")));
}

Test(resting_held, the_next_hold_may_rest_as_well)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_acquire_opts opts = OPTS(.lease_ms = 60000, .min_hold_ms = 300);

	opts.wait_ms = -1;
	for (int i = 0; i < 4; i++) {
		bizlock *who = i % 2 ? a : b;
		bizlock_grant grant = BIZLOCK_GRANT_INIT;

		expect(OK, who, bizlock_acquire(who, KEY("job"), &opts, &grant));
		cr_assert_eq(grant.flags, 0);
		expect(OK, who, bizlock_release(who, KEY("job"), NULL, NULL));
	}
}

/* ---- a fleet of crons --------------------------------------------------------- */

struct cron {
	bizlock *b;
	unsigned late_ms; /* by its clock */
	atomic_uint *runs;
	int rc;
	pthread_t thread;
};

/* The job takes no time. With a lock alone, machines whose clocks are late would run it again. */
static void *at_midnight(void *arg)
{
	struct cron *c = arg;
	bizlock_acquire_opts opts = OPTS(.lease_ms = 60000, .min_hold_ms = LONG_MS);
	char owner[16];

	snprintf(owner, sizeof(owner), "cron-%u", c->late_ms);
	opts.owner = owner;
	pause_ms(c->late_ms);
	c->rc = bizlock_acquire(c->b, KEY("nightly"), &opts, NULL);
	if (c->rc == BIZLOCK_OK) {
		atomic_fetch_add(c->runs, 1);
		c->rc = bizlock_release(c->b, KEY("nightly"), owner, NULL);
	}
	return NULL;
}

Test(resting_held, a_fleet_of_crons_runs_its_job_once)
{
	enum { FLEET = 12 };
	static struct cron crons[FLEET];
	bizlock *clients[3] = {client(NULL), client(NULL), client(NULL)};
	atomic_uint runs = 0;

	for (unsigned i = 0; i < FLEET; i++) {
		crons[i] = (struct cron){
		        .b = clients[i % 3], .late_ms = 40 * (i / 2) + i, .runs = &runs};
		if (pthread_create(&crons[i].thread, NULL, at_midnight, &crons[i]) != 0)
			die("no thread");
	}
	for (unsigned i = 0; i < FLEET; i++) {
		pthread_join(crons[i].thread, NULL);
		cr_assert(crons[i].rc == BIZLOCK_OK || crons[i].rc == BIZLOCK_BUSY, "%s",
		          bizlock_err_name(crons[i].rc));
	}
	cr_assert_eq(atomic_load(&runs), 1, "it ran %u times", atomic_load(&runs));
}

/* ---- over a line that breaks ----------------------------------------------------- */

/* Whether the server had done the release or not: the lock rests, until the same time. */
Test(resting_held, a_release_that_is_cut_lets_it_rest)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	bizlock_acquire_opts opts = OPTS(.lease_ms = 60000, .min_hold_ms = LONG_MS);
	char id[16];

	for (unsigned i = 0; i < 8; i++) {
		struct fault fault = {.what = FAULT_CUT,
		                      .side = i % 2 ? FAULT_REPLIES : FAULT_REQUESTS,
		                      .byte = i / 2 * 3};

		snprintf(id, sizeof(id), "job-%u", i);
		expect(OK, b, bizlock_acquire(b, KEY(id), &opts, NULL));
		proxy_arm(p, &fault);
		expect(OK, b, bizlock_release(b, KEY(id), NULL, NULL));
		cr_assert_gt(proxy_fired(p), 0);
		proxy_arm(p, NULL);
		cr_assert(rests(id), "%s", row_text(id));
		cr_assert_gt(row_of(&world, KEY(id)).left_us, LONG_MS / 2 * 1000ll);
		expect(BUSY, b, acquire(b, id));
	}
	proxy_stop(p);
}
