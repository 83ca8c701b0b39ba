/* A lock that rests (min_hold_ms) keeps out those who want it alone, and those who want to share
 * it. */
#define _GNU_SOURCE 1
#include "cr_shared.h"

TestSuite(mixed_rests, .init = world_begin, .fini = world_end, .timeout = 240);

#define LONG_MS 600000 /* nobody here waits for its end */
#define SHORT_MS 2500
#define A_WHILE_MS 300

static void let_rest(bizlock *b, uint32_t flags, uint32_t limit, uint32_t min_hold_ms)
{
	expect(OK, b,
	       bizlock_acquire(b, KEY("k"),
	                       &OPTS(.owner = "job", .flags = flags, .limit = limit,
	                             .lease_ms = LEASE_MS, .min_hold_ms = min_hold_ms),
	                       NULL));
	expect(OK, b, release_as(b, "job"));
}

static int wait_a_while(bizlock *b, uint32_t flags, uint32_t limit)
{
	return bizlock_acquire(
	        b, KEY("k"),
	        &OPTS(.owner = "next", .flags = flags, .limit = limit, .wait_ms = A_WHILE_MS),
	        NULL);
}

static void keeps_out(bizlock *b, uint32_t flags, uint32_t limit)
{
	expect(BUSY, b, try_as(b, "next", flags, limit, NULL));
	expect_message(b, "resting");
	expect(TIMEOUT, b, wait_a_while(b, flags, limit));
	expect_message(b, "resting");
	cr_assert_eq(rows_where("owner <> ''"), 0);
}

Test(mixed_rests, one_that_had_it_alone_keeps_out_both)
{
	bizlock *b = client(NULL), *other = client(NULL);

	let_rest(b, X, 0, LONG_MS);
	for (int i = 0; i < 2; i++) {
		bizlock *next = i ? b : other;

		keeps_out(next, X, 0);
		keeps_out(next, S, 0);
		keeps_out(next, S, 7);
	}
}

/* Whoever names a larger limit finds a slot that does not rest. */
Test(mixed_rests, a_slot_keeps_out_who_wants_it_alone)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	let_rest(b, S, 1, LONG_MS);
	for (int i = 0; i < 2; i++) {
		keeps_out(i ? b : other, X, 0);
		keeps_out(i ? b : other, S, 1);
	}
	expect(OK, other, try_as(other, "next", S, 2, &grant));
	cr_assert_eq(grant.slot, 2);
	expect(OK, other, release_as(other, "next"));
	keeps_out(other, X, 0);
}

Test(mixed_rests, so_does_one_of_any_number)
{
	bizlock *b = client(NULL), *other = client(NULL);

	let_rest(b, S, 0, LONG_MS);
	keeps_out(b, X, 0);
	keeps_out(other, X, 0);
}

/* ---- to its end ---------------------------------------------------------------------------- */

#define SINCE_1970 "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', "

/* The next one, of another client, begins no earlier than the rest ends. */
static void is_waited_for(uint32_t rested, uint32_t limit, uint32_t wanted)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct call call;
	long long end;

	let_rest(b, rested, limit, SHORT_MS);
	end = db_number(world.admin,
	                "SELECT MAX(" SINCE_1970 "timeout)) FROM biz_lock WHERE owner = ''");
	cr_assert_gt(end, server_us(), "the machine is too slow for this test");
	wait_as(&call, other, "next", wanted, wanted == X ? 0 : limit);
	expect_got(&call);
	cr_assert_eq(call.grant.flags, 0);
	cr_assert_geq(server_us(), end);
	cr_assert_geq(db_number(world.admin, "SELECT MAX(" SINCE_1970 "timeout)) FROM biz_lock"),
	              end + LEASE_MS * 1000LL);
	expect(OK, other, release_as(other, "next"));
	cr_assert_eq(rows_where(LIVE), 0, "the rest of another");
}

Test(mixed_rests, a_sharer_waits_for_one_that_had_it_alone)
{
	is_waited_for(X, 0, S);
}

Test(mixed_rests, one_that_wants_it_alone_waits_for_a_slot)
{
	is_waited_for(S, 1, X);
}

Test(mixed_rests, one_that_wants_it_alone_waits_for_a_sharer)
{
	is_waited_for(S, 0, X);
}

/* ---- without a release --------------------------------------------------------------------- */

/* As if the holder were dead. */
static void dies(uint32_t held, uint32_t wanted)
{
	bizlock *b = client(NULL), *other = client(NULL);

	expect(OK, b,
	       bizlock_acquire(b, KEY("k"),
	                       &OPTS(.owner = "job", .flags = held, .limit = held == X ? 0 : 1,
	                             .lease_ms = busy_lease_ms(b, 1000), .min_hold_ms = LONG_MS),
	                       NULL));
	eventually(bizlock_left_ms(b, KEY("k"), "job") <= 0);
	expect(BUSY, other, try_as(other, "next", wanted, 0, NULL));
	expect(TIMEOUT, other, wait_a_while(other, wanted, 0));
	db_run(world.admin, "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6) WHERE owner <> ''");
	expect(OK, other, try_as(other, "next", wanted, 0, NULL));
}

Test(mixed_rests, a_holder_that_dies_keeps_sharers_out)
{
	dies(X, S);
}

Test(mixed_rests, a_sharer_that_dies_keeps_out_who_wants_it_alone)
{
	dies(S, X);
}

/* The answer comes later than the lease of a sharer, whose row lasts to the end of min_hold_ms. */
Test(mixed_rests, a_sharer_that_is_to_rest_may_be_answered_late)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("max_connections", "1"));
	struct call call;

	works(b);
	call_prepare(&call, b, "k", .owner = "job");
	call.opts.flags = S;
	call.opts.limit = 1;
	call.opts.lease_ms = 1000;
	call.opts.min_hold_ms = 600000;
	proxy_hold_replies(p, true);
	call_go(&call);
	eventually(rows_where("slot > 0") == 1);
	pause_ms(1300);
	proxy_hold_replies(p, false);
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	proxy_stop(p);
}
