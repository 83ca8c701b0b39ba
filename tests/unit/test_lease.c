#include <criterion/criterion.h>

#include "core/lease.h"

Test(lease, ends_earlier_than_the_server_says_by_a_tick_and_the_drift)
{
	cr_assert_eq(bl_lease_end(7, 30000000), 7 + (30000000LL - 10000 - 30000) * 1000);
	cr_assert_eq(bl_lease_end(0, 100000), (100000LL - 10000 - 100) * 1000);
}

/* The longest lease stays far from overflow. A lease with no time left is over. */
Test(lease, holds_at_both_ends)
{
	cr_assert_gt(bl_lease_end(1000000000, 86400000000LL), 86000000000000LL);
	cr_assert_lt(bl_lease_end(5, 0), 5);
}

Test(lease, lets_a_holder_believe_for_as_long_as_was_asked_for)
{
	static const int64_t ms[] = {0, 1, 99, 1000, 86400000};

	for (size_t i = 0; i < sizeof(ms) / sizeof(ms[0]); i++) {
		bl_time most = ms[i] * BL_NS_PER_MS;
		bl_time end = bl_lease_end(7, bl_lease_for(most) * 1000LL);

		cr_assert_geq(end, 7 + most);
		cr_assert_leq(end, 7 + most + 3 * BL_NS_PER_MS);
	}
	cr_assert_eq(bl_lease_for(-5), bl_lease_for(0));
	cr_assert_eq(bl_lease_for(BL_NEVER), UINT32_MAX);
}

/* A connection that does not answer is given up when a third of the lease is left; later than that,
 * after half of the time that is left. */
Test(lease, is_given_another_connection_in_time)
{
	const bl_time third = 1000 * BL_NS_PER_MS;

	cr_assert_eq(bl_lease_give_up(0, 3 * third, 3000), 2 * third);
	cr_assert_eq(bl_lease_give_up(third, 3 * third, 3000), 2 * third);
	cr_assert_eq(bl_lease_give_up(2 * third, 3 * third, 3000), 2 * third + third / 2);
	for (bl_time now = 0; now < 3 * third; now += third / 7) {
		cr_assert_gt(bl_lease_give_up(now, 3 * third, 3000), now);
		cr_assert_lt(bl_lease_give_up(now, 3 * third, 3000), 3 * third);
	}
}
