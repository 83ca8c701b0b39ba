/* A lock that is handed over while connections break: it has one holder in the
 * end, or the text that makes one. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_test.h"

TestSuite(handover_cuts, .init = world_begin, .fini = world_end, .timeout = 240);

#define WAIT_MS 15000
#define FIELDS(f) (f)->side == FAULT_REQUESTS ? "request" : "reply", (f)->packet, (f)->byte

struct pair {
	struct proxy *proxy;
	bizlock *suffers, *well;
	bizlock_grant grant;
	uint32_t mode; /* 0: alone; BIZLOCK_SHARED */
	char text[BIZLOCK_EXPORT_MAX];
};

static struct pair pair_begin(uint32_t mode)
{
	struct pair p = {.proxy = proxy_start(&world.at, "127.0.0.1"), .mode = mode};

	p.suffers = client_through(p.proxy, NULL);
	p.well = client(NULL);
	return p;
}

static void hold(struct pair *p, bizlock *b)
{
	p->grant = (bizlock_grant)BIZLOCK_GRANT_INIT;
	for (int i = 0; i < 2; i++)
		expect(OK, b,
		       bizlock_acquire(b, KEY("k"),
		                       &OPTS(.wait_ms = WAIT_MS, .lease_ms = 60000,
		                             .flags = BIZLOCK_NO_RENEW | p->mode),
		                       &p->grant));
}

static void give(struct pair *p, bizlock *b)
{
	expect(OK, b, bizlock_export(b, KEY("k"), NULL, p->text, sizeof(p->text)));
}

static void get(struct pair *p, bizlock *b)
{
	bizlock_grant got = BIZLOCK_GRANT_INIT;

	expect(OK, b, bizlock_import(b, p->text, NULL, &got));
	cr_assert(got.fence == p->grant.fence && got.depth == 2 && got.flags == 0,
	          "fence %llu, depth %u, flags %u", (unsigned long long)got.fence, got.depth,
	          got.flags);
}

static struct row row_now(const struct pair *p)
{
	return (p->mode ? shared_row_of : row_of)(&world, KEY("k"));
}

static void end(const struct pair *p, bizlock *b)
{
	cr_assert_eq(row_now(p).depth, 2);
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	cr_assert(!row_now(p).there);
}

static void export_suffers(struct pair *p, const struct fault *fault)
{
	hold(p, p->suffers);
	proxy_arm(p->proxy, fault);
	give(p, p->suffers);
}

static void then_import(struct pair *p)
{
	expect(NOT_OWNER, p->suffers, bizlock_verify(p->suffers, KEY("k"), NULL));
	get(p, p->well);
	end(p, p->well);
}

static void import_suffers(struct pair *p, const struct fault *fault)
{
	hold(p, p->well);
	give(p, p->well);
	proxy_arm(p->proxy, fault);
	get(p, p->suffers);
}

static void then_use(struct pair *p)
{
	expect(LOST, p->well, bizlock_import(p->well, p->text, NULL, NULL));
	end(p, p->suffers);
}

/* Cuts at the front, in the middle and at the end of each packet. Returns how many cuts were
 * made. */
static unsigned cut_everywhere(struct pair *p, void (*act)(struct pair *, const struct fault *),
                               void (*check)(struct pair *))
{
	unsigned packets[2] = {0, 0}, cuts = 0;
	struct fault_trace trace = {.count = 0};

	for (int warm = 0; warm < 3; warm++) {
		act(p, NULL);
		trace = proxy_trace(p->proxy);
		check(p);
	}
	for (unsigned i = 0; i < trace.count; i++) {
		size_t size = trace.packets[i].size, bytes[] = {0, 4, size / 2, size};
		struct fault fault = {.what = FAULT_CUT, .side = trace.packets[i].side};

		fault.packet = packets[fault.side]++;
		for (int at = 0; at < 4; at++) {
			fault.byte = bytes[at];
			printf("cut at %s %u, byte %zu\n", FIELDS(&fault));
			act(p, &fault);
			cuts += proxy_fired(p->proxy) > 0;
			proxy_arm(p->proxy, NULL);
			check(p);
		}
	}
	return cuts;
}

/* How many packets an export sends is not tested; it may be none. */
static void cut_export(uint32_t mode)
{
	struct pair p = pair_begin(mode);

	cut_everywhere(&p, export_suffers, then_import);
	proxy_stop(p.proxy);
}

static void cut_import(uint32_t mode)
{
	struct pair p = pair_begin(mode);

	cr_assert_gt(cut_everywhere(&p, import_suffers, then_use), 0);
	proxy_stop(p.proxy);
}

Test(handover_cuts, while_it_is_exported)
{
	cut_export(0);
}

Test(handover_cuts, while_it_is_imported)
{
	cut_import(0);
}

Test(handover_cuts, while_one_that_is_shared_is_exported)
{
	cut_export(BIZLOCK_SHARED);
}

Test(handover_cuts, while_one_that_is_shared_is_imported)
{
	cut_import(BIZLOCK_SHARED);
}

/* After a lost reply, a client looks for rows of its own. A row that it has exported is none of
 * them, whatever name is in it. */
static int want_again(bizlock *b, bool set)
{
	static const bizlock_key keys[] = {{"test", "j"}, {"test", "k"}};
	bizlock_acquire_opts opts = OPTS(.wait_ms = 1500); /* time for a new connection */

	return set ? bizlock_acquire_all(b, keys, 2, &opts, NULL)
	           : bizlock_acquire(b, keys[1], &opts, NULL);
}

static void what_was_exported_is_not_ours(bool set)
{
	struct pair p = pair_begin(0);

	for (unsigned reply = 0; reply < 4; reply++) {
		struct fault fault = {.what = FAULT_CUT, .side = FAULT_REPLIES, .packet = reply};

		export_suffers(&p, NULL);
		proxy_arm(p.proxy, &fault);
		expect(TIMEOUT, p.suffers, want_again(p.suffers, set));
		cr_assert_gt(proxy_fired(p.proxy), 0);
		proxy_arm(p.proxy, NULL);
		then_import(&p);
	}
	proxy_stop(p.proxy);
}

Test(handover_cuts, what_was_exported_is_not_adopted_after_a_lost_reply)
{
	what_was_exported_is_not_ours(false);
}

Test(handover_cuts, what_was_exported_is_not_swept_away_with_a_set)
{
	what_was_exported_is_not_ours(true);
}

/* The row that the first import may have left is removed before the second import begins. Later, it
 * could not be told from the row of the second: the same owner, with the same fence. */
Test(handover_cuts, an_import_in_doubt_does_no_harm_to_the_next_one)
{
	struct fault fault = {.what = FAULT_SWALLOW, .side = FAULT_REQUESTS, .for_ever = true};
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	struct pair pair = {.proxy = p, .well = client(NULL)};
	int rc;

	pair.suffers =
	        client_through(p, OPTIONS("io_timeout_ms", "1000", "connect_timeout_ms", "1000"));
	works(pair.suffers);
	hold(&pair, pair.well);
	give(&pair, pair.well);
	proxy_arm(p, &fault);
	expect(UNKNOWN, pair.suffers, bizlock_import(pair.suffers, pair.text, NULL, NULL));
	proxy_arm(p, NULL);
	eventually((rc = bizlock_import(pair.suffers, pair.text, NULL, NULL)) != BIZLOCK_BUSY);
	cr_assert_eq(rc, BIZLOCK_OK, "%s", bizlock_errmsg(pair.suffers));
	steadily(row_of(&world, KEY("k")).there, 500);
	end(&pair, pair.suffers);
	proxy_stop(p);
}

/* ---- an export that stays in doubt -------------------------------------------- */

static struct pair doubtful_export(enum fault_side side, uint32_t min_hold_ms)
{
	struct fault fault = {.what = FAULT_SWALLOW, .side = side, .for_ever = true};
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	struct pair p = {.proxy = proxy_start(&world.at, "127.0.0.1"), .well = client(NULL)};

	p.suffers = client_through(p.proxy,
	                           OPTIONS("io_timeout_ms", "1000", "connect_timeout_ms", "1000"));
	p.grant = (bizlock_grant)BIZLOCK_GRANT_INIT;
	opts.lease_ms = 600000;
	opts.min_hold_ms = min_hold_ms;
	expect(OK, p.suffers, bizlock_acquire(p.suffers, KEY("k"), &opts, &p.grant));
	proxy_arm(p.proxy, &fault);
	expect(UNKNOWN, p.suffers,
	       bizlock_export(p.suffers, KEY("k"), NULL, p.text, sizeof(p.text)));
	return p;
}

/* No byte of the request has arrived, or none of the reply. In both cases the lock becomes free,
 * long before the lease ends. */
static void ends_with_nobody(enum fault_side side)
{
	struct pair p = doubtful_export(side, 0);

	expect(NOT_OWNER, p.suffers, bizlock_release(p.suffers, KEY("k"), NULL, NULL));
	cr_assert_eq(row_of(&world, KEY("k")).fence, p.grant.fence);
	proxy_arm(p.proxy, NULL);
	expect(OK, p.well, acquire(p.well, "k", .wait_ms = PATIENCE_MS, .grant = &p.grant));
	cr_assert_eq(p.grant.flags, 0);
	expect(OK, p.well, bizlock_release(p.well, KEY("k"), NULL, NULL));
	works(p.suffers);
	proxy_stop(p.proxy);
}

Test(handover_cuts, an_export_that_may_not_have_arrived_ends_with_nobody)
{
	ends_with_nobody(FAULT_REQUESTS);
}

Test(handover_cuts, an_export_that_was_not_answered_ends_with_nobody)
{
	ends_with_nobody(FAULT_REPLIES);
}

Test(handover_cuts, an_export_that_was_not_answered_rests_too)
{
	struct pair p = doubtful_export(FAULT_REPLIES, 60000);

	proxy_arm(p.proxy, NULL);
	eventually(!*row_of(&world, KEY("k")).owner);
	cr_assert(row_of(&world, KEY("k")).there);
	expect(BUSY, p.well, acquire(p.well, "k"));
	expect_message(p.well, "resting");
	proxy_stop(p.proxy);
}
