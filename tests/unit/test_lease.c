#include <criterion/criterion.h>

#include "core/lease.h"

Test(lease, ends_earlier_than_the_server_says_by_a_tick_and_the_drift)
{
	cr_assert_eq(bl_lease_end(7, 30000000), 7 + (30000000LL - 10000 - 30000) * 1000);
	cr_assert_eq(bl_lease_end(0, 100000), (100000LL - 10000 - 100) * 1000);
}

/* The longest lease stays far from overflow; one with no time left is over. */
Test(lease, holds_at_both_ends)
{
	cr_assert_gt(bl_lease_end(1000000000, 86400000000LL), 86000000000000LL);
	cr_assert_lt(bl_lease_end(5, 0), 5);
}
