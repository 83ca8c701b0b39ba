#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>

#include "base/clock.h"

#define A_MINUTE_MS 60000

Test(clock, never_runs_backwards)
{
	bl_time before = bl_now();

	cr_expect_gt(before, 0);
	for (int i = 0; i < 10000; i++) {
		bl_time now = bl_now();

		cr_assert_geq(now, before);
		before = now;
	}
}

Test(clock, deadlines_lie_between_the_clock_before_and_after)
{
	static const int64_t waits[] = {0, 1, 999, 1000, 86400000, 4000000000};

	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		bl_time before = bl_now(), d = bl_deadline_in_ms(waits[i]), after = bl_now();

		cr_expect_geq(d, before + waits[i] * BL_NS_PER_MS);
		cr_expect_leq(d, after + waits[i] * BL_NS_PER_MS);
	}
}

Test(clock, deadlines_saturate)
{
	cr_expect_eq(bl_deadline_in_ms(-1), BL_NEVER);
	cr_expect_eq(bl_deadline_in_ms(INT64_MAX), BL_NEVER);
	cr_expect_eq(bl_deadline_in_ms(INT64_MAX / BL_NS_PER_MS), BL_NEVER);
	cr_expect_eq(bl_deadline_in_ms(INT64_MAX / BL_NS_PER_MS + 1), BL_NEVER);
	cr_expect_lt(bl_deadline_in_ms((INT64_MAX - bl_now()) / BL_NS_PER_MS - A_MINUTE_MS),
	             BL_NEVER);
}

/* A negative time that is left is over, not endless. */
Test(clock, negative_waits_are_over_at_once)
{
	cr_expect(bl_passed(bl_deadline_in_ms(-2)));
	cr_expect(bl_passed(bl_deadline_in_ms(INT64_MIN)));
}

Test(clock, left_is_rounded_up_and_never_negative)
{
	bl_time now = bl_now();

	cr_expect_eq(bl_left_ms(BL_NEVER), INT64_MAX);
	cr_expect_eq(bl_left_ms(INT64_MIN), 0);
	cr_expect_eq(bl_left_ms(0), 0);
	cr_expect_eq(bl_left_ms(now), 0);
	cr_expect_leq(bl_left_ms(now + A_MINUTE_MS * BL_NS_PER_MS), A_MINUTE_MS);
	cr_expect_gt(bl_left_ms(now + A_MINUTE_MS * BL_NS_PER_MS), 0);
	cr_expect_gt(bl_left_ms(BL_NEVER - 1), INT64_MAX / BL_NS_PER_MS / 2);
}

/* Rounding down would let a wait that has half a millisecond left spin. */
Test(clock, a_moment_left_is_a_millisecond)
{
	int rounds = 0;

	while (rounds < 1000) {
		bl_time deadline = bl_now() + BL_NS_PER_MS / 2;
		int64_t left = bl_left_ms(deadline);

		if (bl_passed(deadline))
			continue; /* the test was not scheduled in time to ask */
		cr_assert_eq(left, 1);
		rounds++;
	}
}

Test(clock, passed_and_earlier)
{
	bl_time now = bl_now();

	cr_expect(bl_passed(now));
	cr_expect(bl_passed(INT64_MIN));
	cr_expect_not(bl_passed(BL_NEVER));
	cr_expect_not(bl_passed(now + A_MINUTE_MS * BL_NS_PER_MS));
	cr_expect_eq(bl_earlier(1, 2), 1);
	cr_expect_eq(bl_earlier(BL_NEVER, -2), -2);
}

struct gate {
	pthread_mutex_t mu;
	pthread_cond_t cond;
	bool waiting, open;
};

static void gate_init(struct gate *g)
{
	cr_assert_eq(pthread_mutex_init(&g->mu, NULL), 0);
	cr_assert_eq(bl_cond_init(&g->cond), 0);
	g->waiting = g->open = false;
}

static void gate_destroy(struct gate *g)
{
	pthread_cond_destroy(&g->cond);
	pthread_mutex_destroy(&g->mu);
}

/* The last deadline is later than the end of a slice, which must not be taken for the deadline. The
 * returns are few: a thread that waits must not spin. */
Test(clock, waits_end_at_the_deadline_not_before)
{
	static const int64_t waits[] = {0, 1, 30, 1200};
	struct gate g;

	gate_init(&g);
	pthread_mutex_lock(&g.mu);
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		bl_time deadline = bl_deadline_in_ms(waits[i]);
		int returns = 1;

		while (bl_cond_wait_until(&g.cond, &g.mu, deadline))
			returns++;
		cr_expect(bl_passed(deadline), "%lld ms", (long long)waits[i]);
		cr_expect_lt(returns, 50, "%lld ms", (long long)waits[i]);
	}
	cr_expect_eq(pthread_mutex_trylock(&g.mu), EBUSY, "the mutex is ours again");
	pthread_mutex_unlock(&g.mu);
	gate_destroy(&g);
}

/* The best of many attempts, because a single one may be late on a busy machine. */
Test(clock, short_waits_are_short)
{
	bl_time least_late = BL_NEVER;
	int told = 0;
	struct gate g;

	gate_init(&g);
	pthread_mutex_lock(&g.mu);
	for (int i = 0; i < 10; i++) {
		bl_time deadline = bl_deadline_in_ms(2);

		told += !bl_cond_wait_until(&g.cond, &g.mu, deadline);
		least_late = bl_earlier(least_late, bl_now() - deadline);
	}
	pthread_mutex_unlock(&g.mu);
	cr_expect_lt(least_late, 500 * BL_NS_PER_MS);
	cr_expect_gt(told, 0, "the wait that reaches the deadline says so");
	gate_destroy(&g);
}

static void *open_gate(void *arg)
{
	struct gate *g = arg;
	bool seen = false;

	while (!seen) { /* until the other thread waits: only then does it not hold mu */
		pthread_mutex_lock(&g->mu);
		seen = g->waiting;
		if (seen) {
			g->open = true;
			pthread_cond_signal(&g->cond);
		}
		pthread_mutex_unlock(&g->mu);
	}
	return NULL;
}

static void expect_woken(bl_time deadline)
{
	struct gate g;
	pthread_t opener;

	gate_init(&g);
	cr_assert_eq(pthread_create(&opener, NULL, open_gate, &g), 0);
	pthread_mutex_lock(&g.mu);
	g.waiting = true;
	while (!g.open)
		cr_assert(bl_cond_wait_until(&g.cond, &g.mu, deadline));
	pthread_mutex_unlock(&g.mu);
	pthread_join(opener, NULL);
	gate_destroy(&g);
}

Test(clock, a_signal_wakes_long_before_the_deadline, .timeout = 30)
{
	expect_woken(bl_deadline_in_ms(A_MINUTE_MS));
	expect_woken(BL_NEVER);
	expect_woken(BL_NEVER - 1);
}
