/* The table at the head of core/wait.h, row by row, and what a contender remembers. */
#include <criterion/criterion.h>

#include "core/wait.h"

#define MS BL_NS_PER_MS
#define LEASE (30000 * MS)
#define DEADLINE (60000 * MS)
#define JITTER 7 /* of the random number below; less than BL_GRACE_JITTER_NS */

enum { ME = 1, HOLDER = 7, OTHER = 9 }; /* connections that have doorbells */

static enum bl_next next_at(struct bl_wait *w, struct bl_seen seen, bl_time now, bl_time *ret_until)
{
	return bl_wait_next(w, &seen, now, JITTER, ret_until);
}

/* ---- the table ------------------------------------------------------------------------ */

static const struct {
	const char *what;
	bool once, no_bells, several;
	struct bl_seen seen;
	enum bl_next next;
	bl_time until; /* of SLEEP and POLL */
} table[] = {
        {"held, doorbell with the holder",
         .seen = {.left_ns = LEASE, .by_holder = true, .bell_by = HOLDER}, .next = BL_NEXT_SLEEP,
         .until = LEASE},
        {"held for longer than we wait",
         .seen = {.left_ns = 2 * DEADLINE, .by_holder = true, .bell_by = HOLDER},
         .next = BL_NEXT_SLEEP, .until = DEADLINE},
        {"held, doorbell with another contender", .seen = {.left_ns = LEASE, .bell_by = OTHER},
         .next = BL_NEXT_SLEEP, .until = BL_GRACE_NS},
        {"held, and the lease ends before we would look up",
         .seen = {.left_ns = 5 * MS, .bell_by = OTHER}, .next = BL_NEXT_SLEEP, .until = 5 * MS},
        {"held, doorbell with nobody: we keep it", .seen = {.left_ns = LEASE},
         .next = BL_NEXT_SLEEP, .until = BL_GRACE_NS},
        {"the same for several keys: it would be had for nothing", .several = true,
         .seen = {.left_ns = LEASE}, .next = BL_NEXT_POLL, .until = LEASE},
        {"held, doorbell ours", .seen = {.left_ns = LEASE, .bell_by = ME, .bell_ours = true},
         .next = BL_NEXT_POLL, .until = LEASE},
        {"held, no doorbells", .no_bells = true, .seen = {.left_ns = LEASE}, .next = BL_NEXT_POLL,
         .until = LEASE},
        {"held, one answer wanted", .once = true,
         .seen = {.left_ns = 1, .by_holder = true, .bell_by = HOLDER}, .next = BL_NEXT_REFUSE},
        {"fenced", .seen = {.fenced = true}, .next = BL_NEXT_POLL, .until = DEADLINE},
        {"fenced, whoever has the doorbell", .seen = {.fenced = true, .bell_by = HOLDER},
         .next = BL_NEXT_POLL, .until = DEADLINE},
        {"fenced, one answer wanted", .once = true, .seen = {.fenced = true}, .next = BL_NEXT_POLL,
         .until = BL_MOMENT_NS},
        {"free", .next = BL_NEXT_TRY},
        {"free, one answer wanted", .once = true, .next = BL_NEXT_TRY},
        {"free, doorbell ours", .seen = {.bell_by = ME, .bell_ours = true}, .next = BL_NEXT_TRY},
        {"free, no doorbells", .no_bells = true, .next = BL_NEXT_TRY},
        {"the same, but asks who has it", .no_bells = true, .seen = {.bell_by = OTHER},
         .next = BL_NEXT_POLL, .until = BL_GRACE_NS + JITTER},
        {"free, doorbell with another contender", .seen = {.bell_by = OTHER}, .next = BL_NEXT_SLEEP,
         .until = BL_GRACE_NS + JITTER},
        {"the same, one answer wanted", .once = true, .seen = {.bell_by = OTHER},
         .next = BL_NEXT_POLL, .until = BL_GRACE_NS + JITTER},
};

Test(wait_rules, hold_for_each_row_of_the_table)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct bl_wait w = bl_wait_begin(table[i].once, DEADLINE, !table[i].no_bells,
		                                 table[i].several);
		bl_time until;
		enum bl_next next = next_at(&w, table[i].seen, 0, &until);

		cr_assert_eq(next, table[i].next, "%s: %d", table[i].what, (int)next);
		if (next == BL_NEXT_SLEEP || next == BL_NEXT_POLL)
			cr_assert_eq(until, table[i].until, "%s: until %lld", table[i].what,
			             (long long)until);
	}
}

/* ---- what it remembers ------------------------------------------------------------------ */

static const struct bl_seen blocked = {.bell_by = OTHER}, other_blocks = {.bell_by = HOLDER},
                            held = {.left_ns = LEASE, .by_holder = true, .bell_by = HOLDER},
                            free_row = {.left_ns = 0};

Test(wait_rules, goes_past_a_doorbell_that_stands_still_and_waits_again)
{
	struct bl_wait w = bl_wait_begin(false, DEADLINE, true, false);
	bl_time until, again;

	cr_assert_eq(next_at(&w, blocked, 0, &until), BL_NEXT_SLEEP);
	cr_assert_eq(next_at(&w, blocked, until - 1, &again), BL_NEXT_SLEEP);
	cr_assert_eq(again, until, "the grace begins once");
	cr_assert_eq(next_at(&w, blocked, until, &again), BL_NEXT_TRY_PAST);
	cr_assert_eq(next_at(&w, blocked, until + 1, &again), BL_NEXT_SLEEP);
	cr_assert_eq(again, until + BL_GRACE_NS);
}

Test(wait_rules, gives_each_contender_a_grace_of_its_own)
{
	struct bl_wait w = bl_wait_begin(false, DEADLINE, true, false);
	bl_time until, now = BL_GRACE_NS;

	next_at(&w, blocked, 0, &until);
	cr_assert_eq(next_at(&w, other_blocks, now, &until), BL_NEXT_SLEEP);
	cr_assert_eq(until, now + BL_GRACE_NS + JITTER);
	cr_assert_eq(next_at(&w, held, now, &until), BL_NEXT_SLEEP);
	cr_assert_eq(next_at(&w, other_blocks, now, &until), BL_NEXT_SLEEP);
	cr_assert_eq(until, now + BL_GRACE_NS + JITTER, "a held row ends the grace");
}

Test(wait_rules, pauses_between_two_tries_of_a_free_row)
{
	struct bl_wait w = bl_wait_begin(false, DEADLINE, true, false);
	bl_time until;

	cr_assert_eq(next_at(&w, free_row, 0, &until), BL_NEXT_TRY);
	cr_assert_eq(next_at(&w, free_row, 1, &until), BL_NEXT_POLL);
	cr_assert_eq(next_at(&w, free_row, 2, &until), BL_NEXT_TRY);
	cr_assert_eq(next_at(&w, held, 3, &until), BL_NEXT_SLEEP);
	cr_assert_eq(next_at(&w, free_row, 4, &until), BL_NEXT_TRY, "it was held meanwhile");
}

Test(wait_rules, tries_once_more_at_the_end_and_then_refuses)
{
	struct bl_wait w = bl_wait_begin(false, DEADLINE, true, false);
	bl_time until;

	cr_assert_eq(next_at(&w, held, 0, &until), BL_NEXT_SLEEP);
	cr_assert_eq(next_at(&w, free_row, DEADLINE, &until), BL_NEXT_TRY);
	cr_assert_eq(next_at(&w, free_row, DEADLINE + 1, &until), BL_NEXT_REFUSE);
}

Test(wait_rules, refuses_at_the_end_whatever_is_in_the_way)
{
	const struct bl_seen in_the_way[] = {held, blocked, {.fenced = true}};

	for (size_t i = 0; i < sizeof(in_the_way) / sizeof(in_the_way[0]); i++) {
		struct bl_wait w = bl_wait_begin(false, DEADLINE, true, false);
		bl_time until;

		cr_assert_eq(next_at(&w, in_the_way[i], DEADLINE, &until), BL_NEXT_REFUSE, "%zu",
		             i);
	}
}

/* One answer comes in a bounded time, from the first look on. */
Test(wait_rules, one_answer_is_not_waited_for_without_end)
{
	const struct bl_seen any[] = {blocked, free_row, {.fenced = true}};
	const bl_time start = 12345 * MS;

	for (size_t i = 0; i < sizeof(any) / sizeof(any[0]); i++) {
		struct bl_wait w = bl_wait_begin(true, start, true, false);
		enum bl_next next = BL_NEXT_TRY;
		bl_time now = start, until;
		unsigned steps = 0;

		for (; next != BL_NEXT_REFUSE; steps++) {
			next = next_at(&w, any[i], now, &until);
			cr_assert_neq(next, BL_NEXT_SLEEP);
			now += next == BL_NEXT_POLL ? 10 * MS : MS;
			cr_assert_lt(steps, 1000u, "%zu", i);
		}
		cr_assert_gt(now, start + BL_MOMENT_NS / 2, "%zu: too soon", i);
		cr_assert_lt(now, start + 2 * BL_GRACE_NS, "%zu: too late", i);
	}
}

/* Whatever a server shows it, by turns. */
Test(wait_rules, one_answer_has_one_grace)
{
	struct bl_wait w = bl_wait_begin(true, 0, true, false);
	enum bl_next next = BL_NEXT_TRY;
	bl_time now = 0, until;

	for (unsigned i = 0; next != BL_NEXT_REFUSE; i++, now += MS) {
		next = next_at(&w,
		               i % 3 == 2 ? free_row
		               : i % 3    ? blocked
		                          : other_blocks,
		               now, &until);
		cr_assert_lt(now, 3 * BL_GRACE_NS);
	}
}
