#include <criterion/criterion.h>

#include "core/standing.h"

#define S (1000 * BL_NS_PER_MS)
#define START (5 * S)

static void is_last_until(const struct bl_standing *s, bl_time end)
{
	cr_assert(bl_standing_is_last(s, end - 1));
	cr_assert(!bl_standing_is_last(s, end));
}

Test(standing, of_an_unknown_host_nothing_is_bad)
{
	struct bl_standing s = {0};

	cr_assert(!bl_standing_is_last(&s, START));
}

Test(standing, each_failure_in_a_row_counts_twice_as_long)
{
	static const bl_time lengths[] = {10 * S,  20 * S,  40 * S, 80 * S,
	                                  160 * S, 320 * S, 320 * S};
	struct bl_standing s = {0};
	bl_time now = START;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		bl_standing_failed(&s, now);
		is_last_until(&s, now + lengths[i]);
		now += lengths[i];
	}
}

Test(standing, a_failure_that_many_threads_meet_counts_once)
{
	struct bl_standing s = {0};

	for (int i = 0; i < 16; i++)
		bl_standing_failed(&s, START + i);
	is_last_until(&s, START + 15 + 10 * S);
}

Test(standing, a_host_that_is_reached_again_begins_anew)
{
	struct bl_standing s = {0};

	bl_standing_failed(&s, START);
	bl_standing_failed(&s, START + 10 * S);
	bl_standing_reached(&s);
	cr_assert(!bl_standing_is_last(&s, START));
	bl_standing_failed(&s, START);
	is_last_until(&s, START + 10 * S);
}

/* It takes connections, and does not answer on them. */
Test(standing, what_a_connection_tells_counts_whether_or_not_it_is_reached)
{
	struct bl_standing s = {.noted_at = START};

	bl_standing_reached(&s);
	is_last_until(&s, START + 10 * S);
}
