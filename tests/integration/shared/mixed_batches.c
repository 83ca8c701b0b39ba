/* The wishes of several threads for one lock, some to have it alone and some to share it, are on
 * their way together. */
#define _GNU_SOURCE 1
#include "cr_crew.h"
#include "cr_shared.h"

TestSuite(mixed_batches, .init = world_begin, .fini = world_end, .timeout = 400);

/* The calls that have their place in `mask` line up behind the occupant; all others have ended. */
static void all_go(struct crew *c, unsigned mask, const uint32_t flags[CREW])
{
	proxy_hold_replies(c->proxy, true);
	call_start(&c->occupant, c->b, "occupant", .wait_ms = CREW_WAIT_MS, .owner = "o");
	call_blocks(&c->occupant);
	for (int i = 0; i < CREW; i++) {
		if (!(mask & 1u << i))
			continue;
		if (c->release[i]) {
			call_start_release(&c->calls[i]);
		} else {
			call_prepare(&c->calls[i], c->b, c->wants[i], .wait_ms = c->wait_ms,
			             .owner = c->owners[i]);
			c->calls[i].opts.flags = flags[i];
			c->calls[i].opts.lease_ms = LEASE_MS;
			call_go(&c->calls[i]);
		}
		call_blocks(&c->calls[i]);
	}
	proxy_hold_replies(c->proxy, false);
	crew_occupant_leaves(c);
}

static void all_have_ended(struct crew *c, unsigned mask)
{
	for (int i = 0; i < CREW; i++)
		if (mask & 1u << i)
			cr_assert_eq(call_join(&c->calls[i]), BIZLOCK_OK, "%d: %s", i,
			             c->calls[i].errmsg);
}

/* ---- one lock for all ---------------------------------------------------------------------- */

/* Every other one wants it alone. */
static void begin_at_one_key(struct crew *c, uint32_t flags[CREW], int64_t wait_ms)
{
	crew_begin(c, "on");
	c->wait_ms = wait_ms;
	for (int i = 0; i < CREW; i++) {
		c->wants[i] = "k";
		flags[i] = i % 2 ? S : X;
	}
}

Test(mixed_batches, one_has_it_alone_or_others_share_it)
{
	uint32_t flags[CREW];
	struct crew c;

	begin_at_one_key(&c, flags, 0);
	for (int turn = 0; turn < 10; turn++) {
		int alone = 0, sharing = 0;

		all_go(&c, ~0u, flags);
		for (int i = 0; i < CREW; i++) {
			call_join(&c.calls[i]);
			cr_assert(c.calls[i].rc == BIZLOCK_OK || c.calls[i].rc == BIZLOCK_BUSY,
			          "%d: %s", i, c.calls[i].errmsg);
			*(flags[i] == X ? &alone : &sharing) += c.calls[i].rc == BIZLOCK_OK;
		}
		cr_assert(alone == 1 ? sharing == 0 : alone == 0 && sharing > 0,
		          "%d alone, %d share it", alone, sharing);
		cr_assert_eq(rows_where("owner <> ''"), alone + sharing);
		crew_release_held(&c);
	}
	crew_end(&c);
}

/* How many have it and have not given it back. */
struct inside {
	int alone, sharing;
	uint64_t alone_fence;
};

static void note(struct inside *in, const struct call *call)
{
	cr_assert_eq(call->rc, BIZLOCK_OK, "%s", call->errmsg);
	*(call->opts.flags == X ? &in->alone : &in->sharing) += 1;
	cr_assert(in->alone == 0 || (in->alone == 1 && in->sharing == 0), "%d alone, %d share it",
	          in->alone, in->sharing);
	cr_assert_gt(call->grant.fence, in->alone_fence);
	if (in->alone)
		in->alone_fence = call->grant.fence;
}

/* Those that have got it stay until none has come for a moment. */
static void have_their_turns(struct crew *c)
{
	struct inside in = {0};
	unsigned had = 0;

	for (int64_t end = now_ms() + PATIENCE_MS; had != (1u << CREW) - 1;) {
		unsigned now = 0;

		cr_assert(pause_before(end), "had by %x", had);
		for (int i = 0; i < CREW; i++)
			if (!(had & 1u << i) && atomic_load(&c->calls[i].done)) {
				call_join(&c->calls[i]);
				note(&in, &c->calls[i]);
				now |= 1u << i;
			}
		had |= now;
		for (int i = 0; i < CREW; i++)
			if (now & 1u << i)
				expect(OK, c->b, release_as(c->b, c->owners[i]));
		in.alone = in.sharing = 0;
	}
}

Test(mixed_batches, those_that_wait_have_it_one_after_the_other)
{
	uint32_t flags[CREW];
	struct crew c;

	begin_at_one_key(&c, flags, PATIENCE_MS);
	for (int turn = 0; turn < 5; turn++) {
		all_go(&c, ~0u, flags);
		have_their_turns(&c);
	}
	crew_end(&c);
}

/* ---- what others have ---------------------------------------------------------------------- */

Test(mixed_batches, what_others_have_in_the_other_way_is_busy)
{
	uint32_t flags[CREW] = {X, X, S, S, S, S, X, X};
	static const bool is_busy[CREW] = {false, true, false, false, false, true, false, true};
	bizlock_acquire_opts opts = OPTS(.owner = "s", .flags = S, .lease_ms = LEASE_MS);
	struct crew c;

	crew_begin(&c, "on");
	c.wait_ms = 0;
	expect(OK, c.stranger, bizlock_acquire(c.stranger, KEY(c.ids[1]), &opts, NULL));
	expect(OK, c.stranger, bizlock_acquire(c.stranger, KEY(c.ids[2]), &opts, NULL));
	opts.flags = X;
	expect(OK, c.stranger, bizlock_acquire(c.stranger, KEY(c.ids[5]), &opts, NULL));
	expect(OK, c.stranger, bizlock_acquire(c.stranger, KEY(c.ids[7]), &opts, NULL));
	all_go(&c, ~0u, flags);
	for (int i = 0; i < CREW; i++) {
		call_join(&c.calls[i]);
		cr_assert_eq(c.calls[i].rc, is_busy[i] ? BIZLOCK_BUSY : BIZLOCK_OK, "%d: %s", i,
		             c.calls[i].errmsg);
		cr_assert(!is_busy[i] || strstr(c.calls[i].errmsg, "held by s@"), "%s",
		          c.calls[i].errmsg);
	}
	for (int i = 0; i < CREW; i++)
		if (is_busy[i] || i == 2)
			expect(OK, c.stranger,
			       bizlock_release(c.stranger, KEY(c.ids[i]), "s", NULL));
	crew_release_held(&c);
	crew_end(&c);
}

/* ---- released in one way, and acquired in the other ---------------------------------------- */

#define EVEN 0x55u
#define ODD 0xaau

/* Threads 2 * i and 2 * i + 1 want the same key. */
static void begin_in_pairs(struct crew *c)
{
	crew_begin(c, "on");
	for (int i = 0; i < CREW; i++)
		c->wants[i] = c->ids[i & ~1];
}

static void expect_larger_fences(const struct crew *c, unsigned mask)
{
	for (int i = 0; i < CREW; i++)
		if (mask & 1u << i)
			cr_assert_gt(c->calls[i].grant.fence, c->calls[i ^ 1].grant.fence, "%d", i);
}

/* Of the even ones, two have their keys alone and two share them; the odd ones want the opposite,
 * and so on. */
Test(mixed_batches, what_goes_back_in_one_way_is_had_in_the_other)
{
	const uint32_t flags[CREW] = {X, S, S, X, X, S, S, X};
	unsigned holders = EVEN;
	struct crew c;

	begin_in_pairs(&c);
	all_go(&c, holders, flags);
	all_have_ended(&c, holders);
	for (int turn = 0; turn < 6; turn++, holders = ~holders & (EVEN | ODD)) {
		for (int i = 0; i < CREW; i++)
			c.release[i] = holders & 1u << i;
		all_go(&c, EVEN | ODD, flags);
		all_have_ended(&c, EVEN | ODD);
		expect_larger_fences(&c, ~holders);
		cr_assert_eq(rows_where("owner <> ''"), CREW / 2);
	}
	for (int i = 0; i < CREW; i++)
		if (holders & 1u << i)
			expect(OK, c.b, bizlock_release(c.b, KEY(c.wants[i]), c.owners[i], NULL));
	crew_end(&c);
}
