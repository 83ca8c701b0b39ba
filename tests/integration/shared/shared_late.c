/* A renewal that was sent in time, and took effect when the lease was over: somebody may have seen
 * by then that it was. In a cluster that stands still for a while this is common. */
#define _GNU_SOURCE 1
#include "cr_shared.h"
#include "stale.h"

TestSuite(shared_late, .init = world_begin, .fini = world_end, .timeout = 240);

/* Of a packet. If it is too short, the test is weaker, never wrong. */
#define DELAY_MS 300
/* From the last look that finds the row alive until the lock is had, however long that takes. */
#define PACKETS 10

#define GONE "owner LIKE '%@gone'"

struct late {
	struct proxy *proxy;
	bizlock *b; /* by way of it */
	unsigned slot;
	uint32_t flags, limit;
};

static void lease_ends(int64_t ms)
{
	db_run(world.admin,
	       "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6) + INTERVAL %lld MICROSECOND"
	       " WHERE owner LIKE '%%@gone'",
	       (long long)ms * 1000);
}

/* It waits for one that has the lock. */
static void start(const struct late *x, struct call *call)
{
	stale_shared_lease(world.admin, "k", x->slot, -(long long)LEASE_MS);
	call_prepare(call, x->b, "k", .wait_ms = -1, .owner = "comes");
	call->opts.flags = x->flags;
	call->opts.limit = x->limit;
	call->opts.lease_ms = LEASE_MS;
	call_go(call);
	call_blocks(call);
}

/* The lease of that one is over, and the nth packet from then on comes behind its renewal. */
static void renewed_before(const struct late *x, unsigned n)
{
	const struct fault fault = {
	        .what = FAULT_DELAY, .side = FAULT_REQUESTS, .packet = n, .delay_ms = DELAY_MS};
	struct call call;

	start(x, &call);
	proxy_arm(x->proxy, &fault);
	lease_ends(-1000);
	eventually(proxy_fired(x->proxy) || atomic_load(&call.done));
	lease_ends(LEASE_MS);
	if (rows_where(GONE)) {
		eventually(!proxy_is_late(x->proxy));
		cr_assert(call_blocks_or_ends(&call), "renewed before packet %u", n);
		cr_assert_eq(rows_where(LIVE " AND " GONE), 1);
		db_run(world.admin, "DELETE FROM biz_lock WHERE owner LIKE '%%@gone'");
	}
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_eq(rows_where(LIVE), 1);
	expect(OK, x->b, release_as(x->b, "comes"));
	proxy_arm(x->proxy, NULL);
}

static void renewed_before_each(unsigned slot, uint32_t flags, uint32_t limit)
{
	struct late x = {proxy_start(&world.at, "127.0.0.1"), NULL, slot, flags, limit};

	x.b = client_through(x.proxy, NULL);
	for (unsigned n = 1; n <= PACKETS; n++)
		renewed_before(&x, n);
}

Test(shared_late, one_that_wants_it_alone_waits_for_one_that_shares_it)
{
	renewed_before_each(1, X, 0);
}

Test(shared_late, one_that_shares_it_waits_for_one_that_has_it_alone)
{
	renewed_before_each(0, S, 0);
}

Test(shared_late, one_waits_for_a_slot)
{
	renewed_before_each(1, S, 1);
}
