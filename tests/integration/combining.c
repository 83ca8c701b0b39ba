/* What several threads want at once, in one transaction: the answers are those that each
 * would have had by itself. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_keyset.h"
#include "cr_test.h"
#include "proxy.h"

TestSuite(combining, .init = world_begin, .fini = world_end, .timeout = 120);

#define N 8 /* enough for a batch */
#define WAIT_MS 15000
#define LEASE_MS 60000
#define BATCH_PACKETS 2

/* Their requests go through one connection, by way of a proxy. */
struct crew {
	struct proxy *proxy;
	bizlock *b, *stranger;
	struct call occupant, calls[N];
	const char *wants[N]; /* mostly ids[i] */
	bool release[N];
	int64_t wait_ms;
	char ids[N][8], owners[N][8];
};

static void begin_crew(struct crew *c, const char *combine)
{
	memset(c, 0, sizeof(*c));
	c->proxy = proxy_start(&world.at, "127.0.0.1");
	c->b = client_through(c->proxy, OPTIONS("max_connections", "1", "combine", combine));
	c->stranger = client(NULL);
	c->wait_ms = WAIT_MS;
	/* So that the one connection is there, and its statements are prepared. */
	expect(OK, c->b, acquire_as(c->b, "warm", "o", 0));
	expect(OK, c->b, bizlock_release(c->b, KEY("warm"), "o", NULL));
	for (int i = 0; i < N; i++) {
		snprintf(c->ids[i], sizeof(c->ids[i]), "k-%d", i);
		snprintf(c->owners[i], sizeof(c->owners[i]), "o-%d", i);
		c->wants[i] = c->ids[i];
	}
}

static void release_them(struct crew *c, bool release)
{
	for (int i = 0; i < N; i++)
		c->release[i] = release;
}

/* One request has the connection, and its answer does not come: the others line up. */
static void line_up(struct crew *c)
{
	proxy_hold_replies(c->proxy, true);
	call_start(&c->occupant, c->b, "occupant", WAIT_MS, "o");
	call_blocks(&c->occupant);
	for (int i = 0; i < N; i++) {
		if (c->release[i])
			call_start_release(&c->calls[i]);
		else
			call_start(&c->calls[i], c->b, c->wants[i], c->wait_ms, c->owners[i]);
		call_blocks(&c->calls[i]);
	}
}

static void occupant_leaves(struct crew *c)
{
	cr_assert_eq(call_join(&c->occupant), BIZLOCK_OK, "%s", c->occupant.errmsg);
	expect(OK, c->b, bizlock_release(c->b, KEY("occupant"), "o", NULL));
}

static void go(struct crew *c)
{
	proxy_hold_replies(c->proxy, false);
	for (int i = 0; i < N; i++)
		call_join(&c->calls[i]);
	occupant_leaves(c);
}

static void all_together(struct crew *c)
{
	line_up(c);
	go(c);
}

static void all_are(const struct crew *c, int rc)
{
	for (int i = 0; i < N; i++)
		cr_assert_eq(c->calls[i].rc, rc, "%d: %s: %s", i, bizlock_err_name(c->calls[i].rc),
		             c->calls[i].errmsg);
}

static void release_what_is_held(struct crew *c)
{
	for (int i = 0; i < N; i++)
		if (c->calls[i].rc == BIZLOCK_OK)
			expect(OK, c->b,
			       bizlock_release(c->b, KEY(c->wants[i]), c->owners[i], NULL));
}

/* Nothing is left: no row, and no doorbell. */
static void end_crew(struct crew *c)
{
	struct keyset s;

	keyset_make(&s, N, "k");
	for (size_t i = 0; i < N; i++)
		s.keys[i].biz_id = c->ids[i];
	cr_assert_eq(rows(), 0);
	expect(OK, c->stranger, keyset_acquire(c->stranger, &s, 0, 0, NULL));
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE bell <> 0"), N);
	expect(OK, c->stranger, keyset_release(c->stranger, &s, NULL));
	proxy_stop(c->proxy);
}

/* And the release of the occupant. */
static void sent_since(const struct crew *c, unsigned before, unsigned packets)
{
	unsigned sent = proxy_packets(c->proxy) - before;

	cr_assert_eq(sent, packets + 1, "%u packets, not %u", sent, packets + 1);
}

/* ---- together ------------------------------------------------------------------ */

Test(combining, what_lines_up_travels_together)
{
	struct crew c;
	unsigned before;

	begin_crew(&c, "on");
	line_up(&c);
	before = proxy_packets(c.proxy);
	go(&c);
	all_are(&c, BIZLOCK_OK);
	sent_since(&c, before, BATCH_PACKETS);
	cr_assert_eq(rows(), N);
	for (int i = 0; i < N; i++) {
		struct row row = row_of(&world, KEY(c.ids[i]));

		cr_assert_eq(row.fence, c.calls[i].grant.fence);
		cr_assert_eq(c.calls[i].grant.depth, 1);
		cr_assert(strncmp(row.owner, c.owners[i], 3) == 0, "%s", row.owner);
		for (int j = 0; j < i; j++)
			cr_assert_neq(c.calls[i].grant.fence, c.calls[j].grant.fence);
	}
	release_them(&c, true);
	line_up(&c);
	before = proxy_packets(c.proxy);
	go(&c);
	all_are(&c, BIZLOCK_OK);
	sent_since(&c, before, BATCH_PACKETS);
	end_crew(&c);
}

Test(combining, acquisitions_and_releases_mix)
{
	struct crew c;

	begin_crew(&c, "on");
	all_together(&c);
	all_are(&c, BIZLOCK_OK);
	for (int i = 1; i < N; i += 2)
		expect(OK, c.b, bizlock_release(c.b, KEY(c.ids[i]), c.owners[i], NULL));
	for (int i = 0; i < N; i += 2)
		c.release[i] = true;
	all_together(&c);
	all_are(&c, BIZLOCK_OK);
	cr_assert_eq(rows(), N / 2);
	for (int i = 0; i < N; i++)
		c.release[i] = !c.release[i];
	all_together(&c);
	all_are(&c, BIZLOCK_OK);
	release_them(&c, true);
	for (int i = 1; i < N; i += 2)
		expect(OK, c.b, acquire_as(c.b, c.ids[i], c.owners[i], 0));
	all_together(&c);
	all_are(&c, BIZLOCK_OK);
	end_crew(&c);
}

Test(combining, off_each_goes_by_itself)
{
	struct crew c;
	unsigned before;

	begin_crew(&c, "off");
	line_up(&c);
	before = proxy_packets(c.proxy);
	go(&c);
	all_are(&c, BIZLOCK_OK);
	sent_since(&c, before, N);
	release_them(&c, true);
	all_together(&c);
	all_are(&c, BIZLOCK_OK);
	end_crew(&c);
}

/* ---- among them some that are not simple ------------------------------------------ */

Test(combining, what_others_hold_is_busy)
{
	struct crew c;

	begin_crew(&c, "on");
	expect(OK, c.stranger, acquire(c.stranger, c.ids[1], 0, LEASE_MS, NULL));
	expect(OK, c.stranger, acquire(c.stranger, c.ids[5], 0, LEASE_MS, NULL));
	c.wait_ms = 0;
	all_together(&c);
	for (int i = 0; i < N; i++)
		cr_assert_eq(c.calls[i].rc, i == 1 || i == 5 ? BIZLOCK_BUSY : BIZLOCK_OK, "%d: %s",
		             i, c.calls[i].errmsg);
	expect(OK, c.stranger, bizlock_release(c.stranger, KEY(c.ids[1]), NULL, NULL));
	expect(OK, c.stranger, bizlock_release(c.stranger, KEY(c.ids[5]), NULL, NULL));
	release_what_is_held(&c);
	end_crew(&c);
}

Test(combining, what_is_stale_is_taken_over)
{
	struct crew c;

	begin_crew(&c, "on");
	expect(OK, c.stranger, acquire(c.stranger, c.ids[3], 0, 100, NULL));
	lease_is_over(c.ids[3]);
	all_together(&c);
	all_are(&c, BIZLOCK_OK);
	for (int i = 0; i < N; i++)
		cr_assert_eq(c.calls[i].grant.flags, i == 3 ? BIZLOCK_TOOK_OVER : 0);
	release_them(&c, true);
	all_together(&c);
	all_are(&c, BIZLOCK_OK);
	expect(LOST, c.stranger, bizlock_release(c.stranger, KEY(c.ids[3]), NULL, NULL));
	end_crew(&c);
}

Test(combining, two_owners_that_want_one_key_exclude_each_other)
{
	struct crew c;

	begin_crew(&c, "on");
	c.wants[4] = c.ids[6];
	c.wait_ms = 0;
	all_together(&c);
	cr_assert_eq((c.calls[4].rc == BIZLOCK_OK) + (c.calls[6].rc == BIZLOCK_OK), 1);
	cr_assert_eq((c.calls[4].rc == BIZLOCK_BUSY) + (c.calls[6].rc == BIZLOCK_BUSY), 1);
	release_what_is_held(&c);
	end_crew(&c);
}

Test(combining, what_was_broken_is_lost)
{
	struct crew c;

	begin_crew(&c, "on");
	all_together(&c);
	all_are(&c, BIZLOCK_OK);
	expect(OK, c.stranger, bizlock_break(c.stranger, KEY(c.ids[2]), c.calls[2].grant.fence));
	release_them(&c, true);
	all_together(&c);
	for (int i = 0; i < N; i++)
		cr_assert_eq(c.calls[i].rc, i == 2 ? BIZLOCK_LOST : BIZLOCK_OK, "%d: %s: %s", i,
		             bizlock_err_name(c.calls[i].rc), c.calls[i].errmsg);
	end_crew(&c);
}

/* A row that a transaction has fenced is left out: the others do not wait for it. */
Test(combining, what_is_fenced_delays_nobody_else)
{
	struct crew c;
	MYSQL *tx = db_open(&world.at, world.schema);

	begin_crew(&c, "on");
	all_together(&c);
	all_are(&c, BIZLOCK_OK);
	db_run(tx, "START TRANSACTION");
	db_number(tx, "SELECT fence FROM biz_lock WHERE %s LOCK IN SHARE MODE",
	          row_where(KEY(c.ids[0])));
	release_them(&c, true);
	line_up(&c);
	proxy_hold_replies(c.proxy, false);
	for (int i = 1; i < N; i++)
		call_join(&c.calls[i]);
	cr_assert(!atomic_load(&c.calls[0].done));
	db_run(tx, "ROLLBACK");
	call_join(&c.calls[0]);
	occupant_leaves(&c);
	all_are(&c, BIZLOCK_OK);
	mysql_close(tx);
	end_crew(&c);
}

/* ---- interrupted ------------------------------------------------------------------- */

Test(combining, an_interrupt_ends_the_wait_in_line)
{
	struct crew c;

	begin_crew(&c, "on");
	line_up(&c);
	bizlock_interrupt(c.b);
	for (int i = 0; i < N; i++)
		eventually(atomic_load(&c.calls[i].done));
	go(&c);
	all_are(&c, BIZLOCK_CANCELLED);
	cr_assert_eq(rows(), 0);
	end_crew(&c);
}

/* ---- cut -------------------------------------------------------------------------- */

/* Cuts the connection at that byte of a packet of the batch. */
static void cut_at(struct crew *c, enum fault_side side, unsigned packet, size_t byte)
{
	struct fault fault = {.what = FAULT_CUT, .side = side, .packet = packet, .byte = byte};

	line_up(c);
	proxy_arm(c->proxy, &fault);
	go(c);
	proxy_arm(c->proxy, NULL);
	for (int i = 0; i < N; i++)
		cr_assert_eq(c->calls[i].rc, BIZLOCK_OK, "side %d, packet %u, byte %zu, %d: %s",
		             (int)side, packet, byte, i, c->calls[i].errmsg);
}

static void check_and_turn(struct crew *c, bool release)
{
	cr_assert_eq(rows(), release ? 0 : N);
	for (int i = 0; i < N && !release; i++)
		cr_assert_eq(row_of(&world, KEY(c->ids[i])).fence, c->calls[i].grant.fence);
	for (int i = 0; i < N; i++)
		if (release)
			expect(OK, c->b, acquire_as(c->b, c->ids[i], c->owners[i], WAIT_MS));
		else
			expect(OK, c->b, bizlock_release(c->b, KEY(c->ids[i]), c->owners[i], NULL));
}

/* Each has its answer, and it is true, wherever the connection is lost. */
static void cut_everywhere(bool release)
{
	struct fault_trace trace;
	unsigned packets[2] = {0, 0};
	struct crew c;

	begin_crew(&c, "on");
	all_together(&c);
	if (!release)
		release_what_is_held(&c);
	release_them(&c, release);
	line_up(&c);
	proxy_arm(c.proxy, NULL);
	go(&c);
	trace = proxy_trace(c.proxy);
	cr_assert_geq(trace.count, 2 * BATCH_PACKETS);
	for (unsigned i = 0; i < trace.count; i++) {
		enum fault_side side = trace.packets[i].side;
		size_t size = trace.packets[i].size, bytes[] = {0, size / 2, size};

		/* Of replies, which are many, one place each, now here and now there. */
		for (int at = 0; at < 3; at++)
			if (side == FAULT_REQUESTS || i % 3 == (unsigned)at) {
				check_and_turn(&c, release);
				cut_at(&c, side, packets[side], bytes[at]);
			}
		packets[side]++;
	}
	check_and_turn(&c, release);
	if (release)
		release_what_is_held(&c);
	end_crew(&c);
}

Test(combining, acquisitions_survive_a_lost_connection)
{
	cut_everywhere(false);
}

Test(combining, releases_survive_a_lost_connection)
{
	cut_everywhere(true);
}
