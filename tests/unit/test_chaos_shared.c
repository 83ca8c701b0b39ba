/* The checker of tests/chaos, on histories of shared locks. */
#include "../chaos/check.h"

#include <bizlock.h>
#include <criterion/criterion.h>

#define ANY CHAOS_ANY
#define OK BIZLOCK_OK
#define LOST BIZLOCK_LOST

/* Each is believed in until it is given back. */
struct held {
	uint64_t fence;
	int64_t from, to;
	uint32_t limit; /* 0: alone */
	int rc;         /* of the release */
};

/* There are n violations of this rule, and no others. */
static void expect(enum chaos_rule rule, unsigned long n, const struct held *held, size_t count)
{
	static const struct chaos_bounds bounds = {1000000, 1000000, 1000000, 1000000, 1000000};
	struct chaos_hold holds[8];
	struct chaos_verdict v;

	for (size_t i = 0; i < count; i++)
		holds[i] = (struct chaos_hold){.process = (uint16_t)i,
		                               .fence = held[i].fence,
		                               .asked_us = held[i].from - 1,
		                               .from_us = held[i].from,
		                               .until_us = held[i].to,
		                               .given_us = held[i].to,
		                               .answered_us = held[i].to,
		                               .limit = held[i].limit,
		                               .rc = (uint8_t)held[i].rc};
	v = chaos_check(
	        &(struct chaos_history){
	                .holds = holds, .n_holds = count, .keys = 1, .end_us = 1000},
	        &bounds);
	for (unsigned i = 0; i < CHAOS_RULE_COUNT; i++)
		cr_expect_eq(v.counts[i], i == (unsigned)rule ? n : 0, "rule %u: %lu", i,
		             v.counts[i]);
}

#define HELD(...)                                                                                  \
	(const struct held[]){__VA_ARGS__},                                                        \
	        sizeof((struct held[]){__VA_ARGS__}) / sizeof(struct held)

Test(chaos_shared, sharers_are_good_in_any_order)
{
	expect(CHAOS_OVERLAP, 0,
	       HELD({3, 10, 50, ANY, OK}, {2, 20, 30, ANY, OK}, {1, 25, 60, ANY, OK},
	            {4, 60, 70, 0, OK}));
}

Test(chaos_shared, one_alone_beside_a_sharer)
{
	expect(CHAOS_OVERLAP, 1,
	       HELD({1, 10, 50, ANY, LOST}, {2, 11, 12, ANY, OK}, {3, 49, 51, 0, OK}));
}

Test(chaos_shared, a_sharer_beside_one_alone)
{
	expect(CHAOS_OVERLAP, 1,
	       HELD({1, 10, 50, 0, LOST}, {2, 20, 30, 2, OK}, {3, 50, 60, 2, OK}));
}

Test(chaos_shared, more_than_may_share)
{
	expect(CHAOS_CROWD, 1,
	       HELD({1, 10, 50, 2, OK}, {2, 20, 30, 2, OK}, {3, 30, 50, 2, OK},
	            {4, 49, 60, 2, OK}));
}

Test(chaos_shared, fences_grow_between_sharers_and_one_alone)
{
	expect(CHAOS_FENCE_BACK, 1, HELD({5, 10, 20, 0, OK}, {4, 30, 40, ANY, OK}));
	expect(CHAOS_FENCE_BACK, 1, HELD({5, 10, 20, ANY, OK}, {4, 30, 40, 0, OK}));
}

/* One had it alone meanwhile, and never believed in that. */
Test(chaos_shared, a_release_of_what_was_lost)
{
	expect(CHAOS_FALSE_RELEASE, 1, HELD({1, 10, 20, ANY, OK}, {2, 19, 19, 0, OK}));
	expect(CHAOS_FALSE_RELEASE, 0, HELD({1, 10, 20, ANY, OK}, {2, 19, 20, ANY, OK}));
}
