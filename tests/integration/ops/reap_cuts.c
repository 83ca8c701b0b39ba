/* bizlock_reap() while connections break, and when the server dies after it. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_reap.h"

TestSuite(reap_cuts, .init = world_begin, .fini = world_end, .timeout = 480);

#define N 12
#define RESTS 6 /* in two batches. Each of them waits for 100 ms */

struct cutter {
	struct proxy *proxy;
	bizlock *b;
	unsigned cuts;
	char where[64];
};

/* Stale rows of all kinds, in one page. */
static void litter(void)
{
	stale_leases(world.admin, "old", .rows = N, .ago_ms = OLD_MS);
	stale_rests(world.admin, "old-rest", .rows = RESTS, .ago_ms = OLD_MS);
	stale_row_locks(world.admin, "old", .rows = N, .ago_ms = OLD_MS);
}

static void arm(struct cutter *c, enum fault_side side, unsigned packet, size_t byte)
{
	struct fault fault = {.what = FAULT_CUT, .side = side, .packet = packet, .byte = byte};

	snprintf(c->where, sizeof(c->where), "%s %u, byte %zu",
	         side == FAULT_REQUESTS ? "request" : "reply", packet, byte);
	proxy_arm(c->proxy, &fault);
}

/* Whatever was lost, in the end all stale rows are purged, no other row is, and the result counts
 * no more than that. */
static void reap_once(struct cutter *c)
{
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	bizlock_reap_result r = BIZLOCK_REAP_RESULT_INIT;
	int rc;

	opts.batch = 5;
	rc = bizlock_reap(c->b, &opts, &r);
	cr_assert_eq(rc, BIZLOCK_OK, "%s: %s", c->where, bizlock_errmsg(c->b));
	cr_assert_eq(left_of("biz_lock", "old") + left_of("biz_row_lock", "old"), 0, "%s",
	             c->where);
	cr_assert_eq(left_of("biz_lock", "live"), 3, "%s", c->where);
	cr_assert(r.leases <= N && r.rests <= RESTS && r.row_locks <= N, "%s", c->where);
	cr_assert_geq(r.leases + r.rests + r.row_locks, 2 * N + RESTS - 5, "%s: %llu, %llu, %llu",
	              c->where, (unsigned long long)r.leases, (unsigned long long)r.rests,
	              (unsigned long long)r.row_locks);
	cr_assert_eq(r.passed_over, 0, "%s", c->where);
	eventually(!row_of(&world, REAPER).there);
}

static struct fault_trace traced(struct cutter *c)
{
	struct fault_trace trace = {.count = 0};

	for (int warm = 0; warm < 3; warm++) {
		litter();
		proxy_arm(c->proxy, NULL);
		reap_once(c);
		trace = proxy_trace(c->proxy);
	}
	return trace;
}

enum place { FRONT, HEADER, MIDDLE, END };

/* Cuts each packet of one side at that place, each in a reaping of its own. */
static void cut_each(enum fault_side side, enum place place)
{
	struct cutter c = {.proxy = proxy_start(&world.at, "127.0.0.1")};
	struct fault_trace trace;
	unsigned packets = 0;

	c.b = client_through(c.proxy, NULL);
	stale_leases(world.admin, "live", .rows = 3, .ago_ms = -600000);
	trace = traced(&c);
	for (unsigned i = 0; i < trace.count; i++) {
		size_t size = trace.packets[i].size;
		size_t bytes[] = {[FRONT] = 0, [HEADER] = 4, [MIDDLE] = size / 2, [END] = size};

		if (trace.packets[i].side != side)
			continue;
		litter();
		arm(&c, side, packets++, bytes[place]);
		reap_once(&c);
		c.cuts += proxy_fired(c.proxy) > 0;
	}
	cr_assert_gt(c.cuts, 5, "%u cuts of %u packets", c.cuts, packets);
	proxy_stop(c.proxy);
}

/* Tests of their own, which run beside each other. */
#define CUTS_OF(packets, side)                                                                     \
	Test(reap_cuts, at_the_front_of_each_##packets)                                            \
	{                                                                                          \
		cut_each(side, FRONT);                                                             \
	}                                                                                          \
	Test(reap_cuts, behind_the_header_of_each_##packets)                                       \
	{                                                                                          \
		cut_each(side, HEADER);                                                            \
	}                                                                                          \
	Test(reap_cuts, in_the_middle_of_each_##packets)                                           \
	{                                                                                          \
		cut_each(side, MIDDLE);                                                            \
	}                                                                                          \
	Test(reap_cuts, at_the_end_of_each_##packets)                                              \
	{                                                                                          \
		cut_each(side, END);                                                               \
	}

CUTS_OF(request, FAULT_REQUESTS)
CUTS_OF(reply, FAULT_REPLIES)

static void cut_always(void *arg)
{
	struct fault fault = {.what = FAULT_CUT, .side = FAULT_REPLIES, .for_ever = true};

	proxy_arm(arg, &fault);
}

/* A batch whose reply was lost may have been done. */
Test(reap_cuts, a_server_that_stays_away_ends_it)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("io_timeout_ms", "1000"));
	struct at_progress progress = {.at = 2, .act = cut_always, .arg = p};
	bizlock_reap_opts opts = with_progress(&progress, 5);

	stale_leases(world.admin, "old", .rows = 20, .ago_ms = OLD_MS);
	expect(UNKNOWN, b, bizlock_reap(b, &opts, NULL));
	cr_assert_eq(progress.calls, 2);
	cr_assert(left_of("biz_lock", "old") <= 10 && left_of("biz_lock", "old") >= 5, "%lld",
	          left_of("biz_lock", "old"));
	proxy_arm(p, NULL);
	eventually(!reaper_is_at_work());
	reaped(b, NULL);
	cr_assert_eq(left_of("biz_lock", "old"), 0);
	proxy_stop(p);
}

static void kill_all(void *arg)
{
	(void)arg;
	kill_connections();
}

Test(reap_cuts, killed_connections_are_replaced)
{
	bizlock *b = client(NULL);
	struct at_progress p = {.at = 2, .act = kill_all};
	bizlock_reap_opts opts = with_progress(&p, 5);

	stale_leases(world.admin, "old", .rows = 20, .ago_ms = OLD_MS);
	cr_assert_eq(reaped(b, &opts).leases, 20);
	eventually(!row_of(&world, REAPER).there);
}

static unsigned replies(struct proxy *p)
{
	struct fault_trace trace = proxy_trace(p);
	unsigned n = 0;

	for (unsigned i = 0; i < trace.count; i++)
		n += trace.packets[i].side == FAULT_REPLIES;
	return n;
}

/* Where the number of rows is limited, rows that may have been purged count against the limit. */
Test(reap_cuts, a_lost_reply_does_not_make_it_purge_more_than_is_wanted)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	struct fault fault = {.what = FAULT_CUT, .side = FAULT_REPLIES};
	unsigned n = 1, unsure = 0;

	opts.batch = 5;
	opts.max = 10;
	reaped(b, NULL);
	for (unsigned reply = 0; reply <= n; reply++) {
		long long left;

		stale_leases(world.admin, "old", .rows = 20, .ago_ms = OLD_MS);
		fault.packet = reply - 1;
		proxy_arm(p, reply ? &fault : NULL);
		unsure += reaped(b, &opts).leases < 10;
		n = reply ? n : replies(p);
		left = left_of("biz_lock", "old");
		cr_assert(left == 10 || (reply && left == 15), "reply %u: %lld", reply, left);
		db_run(world.admin, "DELETE FROM biz_lock");
	}
	cr_assert_gt(unsure, 0);
	proxy_stop(p);
}

/* ---- the fence, across the death of the server ---------------------------------------- */

static struct own_server server;

static void end_own_world(void)
{
	if (world.admin)
		world_end();
	own_server_end(&server);
}

TestSuite(own_reap, .fini = end_own_world, .timeout = 480);

static uint64_t take_and_lose(bizlock *b, uint64_t last)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b, acquire(b, "k", .lease_ms = 100, .wait_ms = -1, .grant = &grant));
	cr_assert_gt(grant.fence, last);
	lease_is_over("k");
	return grant.fence;
}

/* All rows are purged: only the counter keeps the last fence. */
static uint64_t reap_and_restart(const char *how, uint64_t fence)
{
	bizlock *b = client_open(&world, NULL);
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;

	opts.older_than_ms = 0;
	fence = take_and_lose(b, fence);
	cr_assert_eq(reaped(b, &opts).leases, 1);
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_lock"), 0);
	own_server_do(&server, how);
	own_server_do(&server, "restart");
	mysql_close(world.admin);
	world.admin = db_open(&world.at, world.schema);
	bizlock_close(b);
	b = client_open(&world, NULL);
	fence = take_and_lose(b, fence);
	bizlock_close(b);
	return fence;
}

Test(own_reap, fences_grow_on_when_all_was_purged_and_the_server_restarted)
{
	uint64_t fence = 0;

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	own_server_start(&server, "--innodb-flush-log-at-trx-commit=1");
	world_make(&world, &server.at);
	world_migrate(&world);
	for (int i = 0; i < 2; i++) {
		fence = reap_and_restart("kill", fence);
		fence = reap_and_restart("stop", fence);
	}
}
