#include <criterion/criterion.h>
#include <stdbool.h>

#include "core/pace.h"

Test(pace, one_that_took_too_long_is_halved)
{
	cr_assert_eq(bl_pace_next(1000, 1000, BL_PACE_SLOW_US + 1), 500);
	cr_assert_eq(bl_pace_next(1000, 3, INT64_MAX), 500);
}

Test(pace, it_never_falls_below_what_is_of_use)
{
	uint32_t rows = 10000;

	for (int i = 0; i < 100; i++)
		rows = bl_pace_next(rows, rows, INT64_MAX);
	cr_assert_eq(rows, BL_PACE_LEAST);
}

Test(pace, one_that_was_quick_and_full_grows)
{
	cr_assert_gt(bl_pace_next(100, 100, 0), 100);
	cr_assert_gt(bl_pace_next(1, 1, 0), 1);
	cr_assert_gt(bl_pace_next(100, 100, BL_PACE_SLOW_US / 2 - 1), 100);
}

Test(pace, one_that_was_not_full_tells_nothing)
{
	cr_assert_eq(bl_pace_next(100, 99, 0), 100);
	cr_assert_eq(bl_pace_next(100, 0, 0), 100);
}

Test(pace, in_between_it_stays)
{
	cr_assert_eq(bl_pace_next(100, 100, BL_PACE_SLOW_US / 2), 100);
	cr_assert_eq(bl_pace_next(100, 100, BL_PACE_SLOW_US), 100);
}

/* The clock was set back in between. */
Test(pace, no_time_at_all_is_quick)
{
	cr_assert_gt(bl_pace_next(100, 100, -5000000), 100);
}

/* Where each row costs the same, the pace finds a size that takes no longer than wanted, and keeps
 * it. */
Test(pace, it_settles)
{
	for (int64_t row_us = 1; row_us <= 1000; row_us *= 10) {
		uint32_t rows = BL_PACE_FIRST;

		for (int i = 0; i < 1000; i++) {
			bool slow = rows * row_us > BL_PACE_SLOW_US;

			cr_assert(!slow || i < 100 || rows <= BL_PACE_LEAST, "%u rows of %d us",
			          rows, (int)row_us);
			rows = bl_pace_next(rows, rows, rows * row_us);
			rows = rows < 10000 ? rows : 10000;
		}
	}
}

Test(pace, a_server_in_trouble_gets_as_long_to_recover)
{
	cr_assert_eq(bl_pace_rest_us(-1), 0);
	cr_assert_eq(bl_pace_rest_us(0), 0);
	cr_assert_eq(bl_pace_rest_us(BL_PACE_TROUBLE_US), 0);
	cr_assert_eq(bl_pace_rest_us(BL_PACE_TROUBLE_US + 1), BL_PACE_TROUBLE_US + 1);
	cr_assert_eq(bl_pace_rest_us(INT64_MAX), BL_PACE_REST_MAX_US);
}
