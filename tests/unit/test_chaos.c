/* The checker of tests/chaos, on histories that are right and on such that are not. */
#include "../chaos/check.h"

#include <bizlock.h>
#include <criterion/criterion.h>
#include <string.h>

/* In ms. Calls begin at 0. */
static const struct chaos_bounds bounds = {
        .acquire_us = 1000000,
        .release_us = 2000000,
        .told_us = 500000,
        .stuck_us = 30000000,
        .away_us = 10000000,
};

#define MS 1000
#define LOST BIZLOCK_LOST

/* A hold that was granted and given back. Options that are not named: asked for 1 ms before it was
 * granted, believed in until it was given back, with OK. */
struct hold {
	unsigned process, key, rc;
	uint64_t fence;
	int64_t asked, from, until, ends, over, told, given, answered;
};

static struct chaos_hold hold_of(struct hold o)
{
	return (struct chaos_hold){
	        .process = (uint16_t)o.process,
	        .key = (uint16_t)o.key,
	        .rc = (uint8_t)o.rc,
	        .fence = o.fence,
	        .asked_us = (o.asked ? o.asked : o.from - 1) * MS,
	        .from_us = o.from * MS,
	        .until_us = (o.until ? o.until : o.given) * MS,
	        .ends_us = o.ends * MS,
	        .over_us = o.over * MS,
	        .told_us = o.told * MS,
	        .given_us = o.given * MS,
	        .answered_us = (o.answered ? o.answered : o.given) * MS,
	};
}

struct call {
	unsigned process, key, rc, wait;
	enum chaos_what what;
	int64_t begun, ended;
};

static struct chaos_call call_of(struct call o)
{
	return (struct chaos_call){
	        .process = (uint16_t)o.process,
	        .key = (uint16_t)o.key,
	        .rc = (uint8_t)o.rc,
	        .what = (uint8_t)o.what,
	        .wait_ms = o.wait,
	        .begun_us = o.begun * MS,
	        .ended_us = o.ended * MS,
	};
}

static struct chaos_verdict verdict_on(const struct hold *holds, size_t n_holds,
                                       const struct call *calls, size_t n_calls,
                                       const struct chaos_fault *fault, int64_t end)
{
	struct chaos_hold h[8];
	struct chaos_call c[8];

	for (size_t i = 0; i < n_holds; i++)
		h[i] = hold_of(holds[i]);
	for (size_t i = 0; i < n_calls; i++)
		c[i] = call_of(calls[i]);
	return chaos_check(&(struct chaos_history){.calls = c,
	                                           .n_calls = n_calls,
	                                           .holds = h,
	                                           .n_holds = n_holds,
	                                           .faults = fault,
	                                           .n_faults = fault != NULL,
	                                           .keys = 2,
	                                           .end_us = end * MS},
	                   &bounds);
}

#define HOLDS(...)                                                                                 \
	(const struct hold[]){__VA_ARGS__},                                                        \
	        sizeof((struct hold[]){__VA_ARGS__}) / sizeof(struct hold)
#define CALLS(...)                                                                                 \
	(const struct call[]){__VA_ARGS__},                                                        \
	        sizeof((struct call[]){__VA_ARGS__}) / sizeof(struct call)
#define NONE NULL, 0

/* Nothing but n violations of this rule. */
static void expect(struct chaos_verdict v, enum chaos_rule rule, unsigned long n)
{
	for (unsigned i = 0; i < CHAOS_RULE_COUNT; i++)
		cr_expect_eq(v.counts[i], i == (unsigned)rule ? n : 0, "rule %u: %lu", i,
		             v.counts[i]);
	cr_expect_eq(v.shown, n);
	for (unsigned i = 0; i < v.shown; i++)
		cr_expect_eq(v.violations[i].rule, rule);
}

static void expect_good(struct chaos_verdict v)
{
	expect(v, CHAOS_OVERLAP, 0);
}

Test(chaos, nothing_is_good)
{
	expect_good(verdict_on(NONE, NONE, NULL, 1000));
}

Test(chaos, turns_are_good)
{
	expect_good(verdict_on(HOLDS({.process = 1, .fence = 1, .from = 10, .given = 20},
	                             {.process = 2, .fence = 2, .from = 20, .given = 30},
	                             {.process = 1, .fence = 3, .from = 31, .given = 32}),
	                       NONE, NULL, 1000));
}

/* ---- mutual exclusion ------------------------------------------------------------ */

Test(chaos, two_at_a_time)
{
	struct chaos_verdict v =
	        verdict_on(HOLDS({.process = 1, .fence = 1, .from = 10, .given = 21, .rc = LOST},
	                         {.process = 2, .fence = 2, .from = 20, .given = 30}),
	                   NONE, NULL, 1000);

	expect(v, CHAOS_OVERLAP, 1);
	cr_expect_eq(v.violations[0].fence, 2);
	cr_expect_eq(v.violations[0].other, 1);
	cr_expect_eq(v.violations[0].at_us, 20 * MS);
}

Test(chaos, one_within_another_and_one_after)
{
	expect(verdict_on(HOLDS({.process = 1, .fence = 1, .from = 10, .given = 50, .rc = LOST},
	                        {.process = 2, .fence = 2, .from = 20, .given = 30},
	                        {.process = 3, .fence = 3, .from = 40, .given = 60}),
	                  NONE, NULL, 1000),
	       CHAOS_OVERLAP, 2);
}

Test(chaos, other_keys_do_not_overlap)
{
	expect_good(verdict_on(HOLDS({.process = 1, .fence = 1, .from = 10, .given = 50},
	                             {.process = 2, .key = 1, .fence = 2, .from = 20, .given = 30}),
	                       NONE, NULL, 1000));
}

/* It gives the lock back long after it has stopped to believe in it. */
Test(chaos, a_hold_ends_with_the_belief_in_it)
{
	struct hold over = {.process = 1, .fence = 1, .from = 10, .until = 19, .over = 22};
	struct hold next = {.process = 2, .fence = 2, .from = 20, .given = 30};

	over.told = 23;
	over.given = 40;
	over.rc = LOST;
	expect_good(verdict_on(HOLDS(over, next), NONE, NULL, 1000));
	over.until = 21;
	expect(verdict_on(HOLDS(over, next), NONE, NULL, 1000), CHAOS_OVERLAP, 1);
}

/* The last look was on its way when the release was called. */
Test(chaos, a_hold_ends_with_its_release)
{
	expect_good(
	        verdict_on(HOLDS({.process = 1, .fence = 1, .from = 10, .until = 25, .given = 20},
	                         {.process = 2, .fence = 2, .from = 21, .given = 30}),
	                   NONE, NULL, 1000));
}

/* Frozen while its lease ran out, a process finds no time left when it looks first. */
Test(chaos, a_hold_that_nobody_believed_in_overlaps_with_none)
{
	struct hold late = {.process = 1, .fence = 1, .from = 10, .until = -1, .over = 100};
	struct hold next = {.process = 2, .fence = 2, .from = 20, .given = 200};

	late.told = 100;
	late.given = 110;
	late.rc = LOST;
	expect_good(verdict_on(HOLDS(late, next), NONE, NULL, 1000));
	late.from = 90;
	late.asked = 5;
	expect_good(verdict_on(HOLDS(late, next), NONE, NULL, 1000));
}

/* ---- fences ----------------------------------------------------------------------- */

Test(chaos, fence_goes_back)
{
	expect(verdict_on(HOLDS({.process = 1, .fence = 5, .from = 10, .given = 20},
	                        {.process = 2, .fence = 4, .from = 30, .given = 40},
	                        {.process = 1, .fence = 6, .from = 50, .given = 60}),
	                  NONE, NULL, 1000),
	       CHAOS_FENCE_BACK, 1);
}

Test(chaos, fence_comes_twice)
{
	expect(verdict_on(HOLDS({.process = 1, .fence = 5, .from = 10, .given = 20},
	                        {.process = 2, .fence = 5, .from = 30, .given = 40}),
	                  NONE, NULL, 1000),
	       CHAOS_FENCE_BACK, 1);
}

/* Its answer came when it had lost the lock, and the next one had had it. */
Test(chaos, a_late_grant_may_have_a_smaller_fence_if_it_was_asked_for_early)
{
	struct hold late = {
	        .process = 1, .fence = 1, .asked = 5, .from = 50, .until = -1, .over = 51};

	late.told = 51;
	late.given = 52;
	late.rc = LOST;
	expect_good(verdict_on(HOLDS({.process = 2, .fence = 2, .from = 20, .given = 30}, late),
	                       NONE, NULL, 1000));
	late.asked = 25;
	expect(verdict_on(HOLDS({.process = 2, .fence = 2, .from = 20, .given = 30}, late), NONE,
	                  NULL, 1000),
	       CHAOS_FENCE_BACK, 1);
}

/* ---- releases and losses ------------------------------------------------------------ */

Test(chaos, release_of_what_another_has_got_is_not_ok)
{
	struct hold lost = {.process = 1, .fence = 1, .from = 10, .until = 15, .over = 16};

	lost.given = 30;
	expect(verdict_on(HOLDS(lost, {.process = 2, .fence = 2, .from = 20, .given = 25}), NONE,
	                  NULL, 1000),
	       CHAOS_FALSE_RELEASE, 1);
	lost.rc = LOST;
	expect_good(verdict_on(HOLDS(lost, {.process = 2, .fence = 2, .from = 20, .given = 25}),
	                       NONE, NULL, 1000));
}

Test(chaos, release_after_the_loss_was_told_is_not_ok)
{
	expect(verdict_on(HOLDS({.process = 1,
	                         .fence = 1,
	                         .from = 10,
	                         .until = 15,
	                         .over = 16,
	                         .told = 17,
	                         .given = 20}),
	                  NONE, NULL, 1000),
	       CHAOS_FALSE_RELEASE, 1);
}

Test(chaos, a_hold_lasts_as_long_as_its_lease)
{
	struct hold hold = {.process = 1, .fence = 1, .from = 10, .ends = 50, .given = 40};

	expect_good(verdict_on(HOLDS(hold), NONE, NULL, 1000));
	hold.rc = LOST;
	hold.answered = 49;
	expect(verdict_on(HOLDS(hold), NONE, NULL, 1000), CHAOS_EARLY_LOSS, 1);
	hold.answered = 50;
	expect_good(verdict_on(HOLDS(hold), NONE, NULL, 1000));
	hold.told = 49;
	expect(verdict_on(HOLDS(hold), NONE, NULL, 1000), CHAOS_EARLY_LOSS, 1);
}

Test(chaos, loss_is_told_in_time)
{
	struct hold lost = {.process = 1, .fence = 1, .from = 10, .until = 15, .over = 16};

	lost.rc = LOST;
	lost.told = 516;
	lost.given = 600;
	expect_good(verdict_on(HOLDS(lost), NONE, NULL, 1000));
	lost.told = 517;
	expect(verdict_on(HOLDS(lost), NONE, NULL, 1000), CHAOS_LATE_LOSS, 1);
	lost.told = 0;
	expect(verdict_on(HOLDS(lost), NONE, NULL, 1000), CHAOS_LATE_LOSS, 1);
	lost.given = 0;
	expect(verdict_on(HOLDS(lost), NONE, NULL, 1000), CHAOS_LATE_LOSS, 1);
	expect_good(verdict_on(HOLDS(lost), NONE, NULL, 516));
}

/* ---- calls -------------------------------------------------------------------------- */

Test(chaos, answers_come_in_time)
{
	struct call acquire = {.begun = 100, .wait = 3000, .ended = 4100, .rc = BIZLOCK_TIMEOUT};
	struct call release = {.what = CHAOS_RELEASE, .begun = 100, .ended = 2100};

	expect_good(verdict_on(NONE, CALLS(acquire, release), NULL, 9000));
	acquire.ended++;
	release.ended++;
	expect(verdict_on(NONE, CALLS(acquire, release), NULL, 9000), CHAOS_LATE_ANSWER, 2);
	acquire.ended = release.ended = 0;
	expect(verdict_on(NONE, CALLS(acquire, release), NULL, 9000), CHAOS_UNANSWERED, 2);
	expect_good(verdict_on(NONE, CALLS(acquire, release), NULL, 2100));
}

Test(chaos, errors_are_found)
{
	struct call db = {.begun = 1, .ended = 2, .rc = BIZLOCK_DB}, conn = db, lost = db,
	            given = db, unknown = db;

	conn.rc = BIZLOCK_CONN;
	lost.rc = given.rc = LOST;
	unknown.rc = BIZLOCK_UNKNOWN;
	given.what = unknown.what = CHAOS_RELEASE;
	expect(verdict_on(NONE, CALLS(db, conn, lost, given, unknown), NULL, 9000), CHAOS_ERROR, 4);
}

Test(chaos, nobody_can_answer_while_the_cluster_is_away)
{
	struct call call = {.begun = 100, .wait = 10000, .ended = 10102, .rc = BIZLOCK_UNKNOWN};

	expect_good(verdict_on(HOLDS({.fence = 1, .from = 101, .given = 102}), CALLS(call), NULL,
	                       12000));
	expect(verdict_on(HOLDS({.fence = 1, .from = 102, .given = 103}), CALLS(call), NULL, 12000),
	       CHAOS_ERROR, 1);
}

Test(chaos, a_full_disk_keeps_rows)
{
	struct chaos_fault full = {.begun_us = 500 * MS, .mended_us = 900 * MS, .excused_ms = 5000};
	struct call call = {.what = CHAOS_RELEASE, .begun = 100, .ended = 600, .rc = BIZLOCK_BUSY};

	expect_good(verdict_on(NONE, CALLS(call), &full, 9000));
	full.begun_us = 601 * MS;
	expect(verdict_on(NONE, CALLS(call), &full, 9000), CHAOS_ERROR, 1);
}

/* ---- keys that nobody gets -------------------------------------------------------------- */

static const struct call waits[] = {
        {.begun = 1, .wait = 20000, .ended = 20001, .rc = BIZLOCK_TIMEOUT},
        {.begun = 20002, .wait = 20000, .ended = 40002, .rc = BIZLOCK_TIMEOUT},
};

Test(chaos, a_key_is_stuck)
{
	expect(verdict_on(NONE, waits, 2, NULL, 50000), CHAOS_STUCK, 1);
	expect(verdict_on(HOLDS({.fence = 1, .from = 40001, .given = 40002}), waits, 2, NULL,
	                  50000),
	       CHAOS_STUCK, 1);
	expect_good(verdict_on(HOLDS({.fence = 1, .from = 28000, .given = 28001}), waits, 2, NULL,
	                       50000));
	expect_good(
	        verdict_on(HOLDS({.fence = 1, .from = 28000, .until = -1}), waits, 2, NULL, 50000));
}

Test(chaos, a_key_that_is_held_or_not_wanted_is_not_stuck)
{
	expect_good(
	        verdict_on(HOLDS({.fence = 1, .from = 10, .given = 39000}), waits, 2, NULL, 50000));
	expect_good(verdict_on(NONE, waits, 1, NULL, 50000));
	expect_good(verdict_on(NONE, CALLS(waits[0], waits[0]), NULL, 50000)); /* at one time */
}

/* Its process has lost it, and does not give it back. */
Test(chaos, a_key_that_a_lost_hold_keeps_is_stuck)
{
	struct hold lost = {.fence = 1, .from = 10, .until = 15, .over = 16, .told = 17};

	lost.given = 39000;
	lost.rc = LOST;
	expect(verdict_on(HOLDS(lost), waits, 2, NULL, 50000), CHAOS_STUCK, 1);
}

Test(chaos, a_whole_cluster_may_be_kept_up_by_a_full_disk)
{
	struct chaos_fault fault = {.begun_us = 9000 * MS, .mended_us = 15000 * MS};

	expect(verdict_on(NONE, waits, 2, &fault, 50000), CHAOS_STUCK, 1);
	fault.excused_ms = 5000;
	expect_good(verdict_on(NONE, waits, 2, &fault, 50000));
}

/* ---- what is shown ------------------------------------------------------------------------ */

Test(chaos, many_violations_of_one_rule_do_not_hide_another)
{
	struct call calls[8];
	struct chaos_verdict v;

	for (size_t i = 0; i < 8; i++)
		calls[i] = (struct call){.begun = 1, .ended = 2, .rc = BIZLOCK_DB};
	v = verdict_on(
	        HOLDS({.fence = 5, .from = 10, .given = 20}, {.fence = 4, .from = 30, .given = 40}),
	        calls, 8, NULL, 9000);
	cr_expect_eq(v.counts[CHAOS_ERROR], 8);
	cr_expect_eq(v.counts[CHAOS_FENCE_BACK], 1);
	cr_expect_eq(v.shown, CHAOS_SHOWN_EACH + 1);
	cr_expect_eq(v.violations[v.shown - 1].rule, CHAOS_FENCE_BACK);
}
