#include <criterion/criterion.h>
#include <limits.h>

#include "base/clock.h"
#include "base/rnd.h"
#include "core/backoff.h"

static int64_t whole_ns(unsigned attempt)
{
	static const int64_t ms[] = {2, 4, 8, 16, 32, 64, 128};

	return ms[attempt < 6 ? attempt : 6] * BL_NS_PER_MS;
}

Test(backoff, stays_between_one_half_and_the_whole)
{
	static const unsigned attempts[] = {0,  1,  2,  3,  4,  5,  6,    7,       8,
	                                    15, 16, 31, 32, 63, 64, 1000, UINT_MAX};
	uint64_t state = 42;

	for (size_t i = 0; i < sizeof(attempts) / sizeof(*attempts); i++) {
		int64_t whole = whole_ns(attempts[i]);

		for (int n = 0; n < 1000; n++) {
			int64_t ns = bl_backoff_ns(attempts[i], bl_rnd_next(&state));

			cr_assert_geq(ns, whole / 2, "attempt %u", attempts[i]);
			cr_assert_leq(ns, whole, "attempt %u", attempts[i]);
		}
	}
}

/* Both ends can be reached, and every value of `random` is good. */
Test(backoff, jitter_uses_the_whole_range)
{
	for (unsigned attempt = 0; attempt < 10; attempt++) {
		int64_t half = whole_ns(attempt) / 2;

		cr_expect_eq(bl_backoff_ns(attempt, 0), half);
		cr_expect_eq(bl_backoff_ns(attempt, (uint64_t)half), 2 * half);
		cr_expect_eq(bl_backoff_ns(attempt, (uint64_t)half + 1), half);
		cr_expect_geq(bl_backoff_ns(attempt, UINT64_MAX), half);
		cr_expect_leq(bl_backoff_ns(attempt, UINT64_MAX), 2 * half);
	}
}

/* Contenders that collided once must not collide for ever. */
Test(backoff, jitter_spreads_contenders)
{
	unsigned quarter[4] = {0};
	uint64_t state = 7;
	int64_t half = whole_ns(6) / 2;

	for (int n = 0; n < 4000; n++)
		quarter[(bl_backoff_ns(6, bl_rnd_next(&state)) - half) * 4 / (half + 1)]++;
	for (int i = 0; i < 4; i++)
		cr_expect(quarter[i] > 800 && quarter[i] < 1200, "quarter %d: %u of 4000", i,
		          quarter[i]);
}

Test(backoff, bounds_never_shrink)
{
	for (unsigned attempt = 0; attempt < 100; attempt++) {
		cr_expect_leq(bl_backoff_ns(attempt, 0), bl_backoff_ns(attempt + 1, 0));
		cr_expect_leq(bl_backoff_ns(attempt, 0), (int64_t)BL_BACKOFF_CAP_MS * BL_NS_PER_MS);
	}
}
