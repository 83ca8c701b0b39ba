/* A connection that is cut at each packet of a shared lock's life. The answer is true, fences grow,
 * and nothing is left behind. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_test.h"

TestSuite(shared_cuts, .init = world_begin, .fini = world_end, .timeout = 240);

#define LEASE_MS (20u * PATIENCE_MS)
#define PACKETS_MAX 14

struct cutter {
	struct proxy *proxy;
	bizlock *b, *other; /* through the proxy, and not */
	uint32_t flags, limit;
	bizlock_grant grant;
	uint64_t fence; /* the largest so far */
	unsigned cuts;
	char where[64];
};

typedef void step(struct cutter *c);

#define expect_here(want, by, call)                                                                \
	do {                                                                                       \
		int got_ = (call);                                                                 \
		cr_assert(got_ == BIZLOCK_##want, "%s: %s: %s, not BIZLOCK_%s: %s", c->where,      \
		          #call, bizlock_err_name(got_), #want, bizlock_errmsg(by));               \
	} while (0)

static int take_as(struct cutter *c, bizlock *b, const char *owner, uint32_t flags,
                   bizlock_grant *ret)
{
	return bizlock_acquire(b, KEY("k"),
	                       &OPTS(.flags = flags, .limit = c->limit, .owner = owner,
	                             .lease_ms = LEASE_MS, .wait_ms = PATIENCE_MS),
	                       ret);
}

static long long live(void)
{
	return db_number(world.admin, "SELECT COUNT(*) FROM biz_shared_lock"
	                              " WHERE timeout > UTC_TIMESTAMP(6)");
}

static void nothing(struct cutter *c)
{
	(void)c;
}

static void take(struct cutter *c)
{
	c->grant = (bizlock_grant)BIZLOCK_GRANT_INIT;
	expect_here(OK, c->b, take_as(c, c->b, "me", c->flags, &c->grant));
}

static void is_mine(struct cutter *c)
{
	cr_assert_eq(live(), 1, "%s: %lld rows", c->where, live());
	cr_assert_eq(db_number(world.admin,
	                       "SELECT COUNT(*) FROM biz_shared_lock WHERE fence = %llu AND"
	                       " slot = %u AND owner LIKE 'me@%%' AND reentrant = 1",
	                       (unsigned long long)c->grant.fence, c->grant.slot),
	             1, "%s: another row", c->where);
	cr_assert_gt(c->grant.fence, c->fence, "%s", c->where);
	cr_assert_eq(c->grant.depth, 1, "%s", c->where);
	cr_assert_eq(c->grant.flags, 0, "%s", c->where);
	expect_here(OK, c->b, bizlock_verify(c->b, KEY("k"), "me"));
}

static void give_back(struct cutter *c)
{
	expect_here(OK, c->b, bizlock_release(c->b, KEY("k"), "me", NULL));
	cr_assert_eq(live(), 0, "%s: %lld rows are left", c->where, live());
}

/* Everybody can have it alone: no row and no doorbell is in the way. */
static void is_free(struct cutter *c)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	int64_t began = now_ms();

	cr_assert_eq(live(), 0, "%s: %lld rows are left", c->where, live());
	expect_here(OK, c->other, take_as(c, c->other, "next", BIZLOCK_EXCLUSIVE, &grant));
	cr_assert_lt(now_ms() - began, LEASE_MS / 4, "%s", c->where);
	cr_assert_gt(grant.fence, c->grant.fence, "%s", c->where);
	c->fence = grant.fence;
	expect_here(OK, c->other, bizlock_release(c->other, KEY("k"), "next", NULL));
}

static void check_take(struct cutter *c)
{
	is_mine(c);
	give_back(c);
	is_free(c);
}

static void cut_once(struct cutter *c, const struct fault *fault, step *prepare, step *act,
                     step *check)
{
	prepare(c);
	proxy_arm(c->proxy, fault);
	act(c);
	c->cuts += proxy_fired(c->proxy) > 0;
	proxy_arm(c->proxy, NULL);
	check(c);
}

static void cut_everywhere(uint32_t flags, uint32_t limit, const char *queue, step *prepare,
                           step *act, step *check)
{
	struct cutter cutter = {.flags = flags,
	                        .limit = limit,
	                        .proxy = proxy_start(&world.at, "127.0.0.1")},
	              *c = &cutter;
	struct fault_trace trace;
	unsigned packets[2] = {0, 0};

	c->b = client_through(c->proxy, OPTIONS("queue", queue));
	c->other = client(OPTIONS("queue", queue));
	for (int warm = 0; warm < 2; warm++) {
		prepare(c);
		proxy_arm(c->proxy, NULL);
		act(c);
		trace = proxy_trace(c->proxy);
		check(c);
	}
	for (unsigned i = 0; i < trace.count && i < PACKETS_MAX; i++) {
		enum fault_side side = trace.packets[i].side;
		size_t size = trace.packets[i].size, bytes[] = {0, size / 2, size};

		for (int at = 0; at < 3; at++) {
			struct fault fault = {.what = FAULT_CUT,
			                      .side = side,
			                      .packet = packets[side],
			                      .byte = bytes[at]};

			snprintf(c->where, sizeof(c->where), "%s %u, byte %zu",
			         side == FAULT_REQUESTS ? "request" : "reply", fault.packet,
			         fault.byte);
			cut_once(c, &fault, prepare, act, check);
		}
		packets[side]++;
	}
	cr_assert_gt(c->cuts, 0, "nothing was cut");
	proxy_stop(c->proxy);
}

Test(shared_cuts, sharing)
{
	cut_everywhere(BIZLOCK_SHARED, 0, "auto", nothing, take, check_take);
}

Test(shared_cuts, sharing_one_of_two_slots)
{
	cut_everywhere(BIZLOCK_SHARED, 2, "auto", nothing, take, check_take);
}

Test(shared_cuts, having_it_alone)
{
	cut_everywhere(BIZLOCK_EXCLUSIVE, 0, "auto", nothing, take, check_take);
}

Test(shared_cuts, without_doorbells)
{
	cut_everywhere(BIZLOCK_SHARED, 2, "off", nothing, take, check_take);
	cut_everywhere(BIZLOCK_EXCLUSIVE, 2, "off", nothing, take, check_take);
}

/* ---- giving back ------------------------------------------------------------------------- */

static void check_release(struct cutter *c)
{
	is_free(c);
}

Test(shared_cuts, giving_a_slot_back)
{
	cut_everywhere(BIZLOCK_SHARED, 2, "auto", take, give_back, check_release);
}

Test(shared_cuts, giving_it_back_alone)
{
	cut_everywhere(BIZLOCK_EXCLUSIVE, 0, "auto", take, give_back, check_release);
}

/* ---- waiting ----------------------------------------------------------------------------- */

static void somebody_shares(struct cutter *c)
{
	expect_here(OK, c->other, take_as(c, c->other, "first", BIZLOCK_SHARED, NULL));
}

/* The other one leaves once the call waits, or has lost its connection. */
static void wait_and_take(struct cutter *c)
{
	struct call call;
	int64_t end = now_ms() + 3000;

	call_prepare(&call, c->b, "k", .wait_ms = PATIENCE_MS, .owner = "me");
	call.opts.flags = c->flags;
	call.opts.limit = c->limit;
	call.opts.lease_ms = LEASE_MS;
	call_go(&call);
	while (now_ms() < end && proxy_fired(c->proxy) == 0 &&
	       db_number(world.admin, "SELECT COUNT(*) FROM information_schema.processlist WHERE"
	                              " INFO LIKE 'SELECT IF(%%SLEEP%%' AND DB = DATABASE()"
	                              " AND ID <> CONNECTION_ID()") == 0)
		pause_ms(1);
	expect_here(OK, c->other, bizlock_release(c->other, KEY("k"), "first", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s: %s", c->where, call.errmsg);
	c->grant = call.grant;
}

Test(shared_cuts, waiting_to_have_it_alone)
{
	cut_everywhere(BIZLOCK_EXCLUSIVE, 0, "auto", somebody_shares, wait_and_take, check_take);
}

Test(shared_cuts, waiting_for_a_slot)
{
	cut_everywhere(BIZLOCK_SHARED, 1, "auto", somebody_shares, wait_and_take, check_take);
}
