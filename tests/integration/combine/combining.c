/* The wishes of several threads, in one transaction: each gets the answer that it would have had
 * alone. */
#include "bizlock_tx.h"
#include "cr_crew.h"

TestSuite(combining, .init = world_begin, .fini = world_end, .timeout = 400);

#define N CREW
#define LEASE_MS 60000
#define PACKETS 1

/* ---- together ------------------------------------------------------------------ */

Test(combining, what_lines_up_travels_together)
{
	struct crew c;
	unsigned before;

	crew_begin(&c, "on");
	crew_line_up(&c);
	before = proxy_packets(c.proxy);
	crew_go(&c);
	crew_all_are(&c, BIZLOCK_OK);
	crew_sent(&c, before, PACKETS);
	cr_assert_eq(rows(), N);
	for (int i = 0; i < N; i++) {
		struct row row = row_of(&world, KEY(c.ids[i]));

		cr_assert_eq(row.fence, c.calls[i].grant.fence);
		cr_assert_eq(c.calls[i].grant.depth, 1);
		cr_assert(strncmp(row.owner, c.owners[i], 3) == 0, "%s", row.owner);
		for (int j = 0; j < i; j++)
			cr_assert_neq(c.calls[i].grant.fence, c.calls[j].grant.fence);
	}
	crew_releases(&c, true);
	crew_line_up(&c);
	before = proxy_packets(c.proxy);
	crew_go(&c);
	crew_all_are(&c, BIZLOCK_OK);
	crew_sent(&c, before, PACKETS);
	crew_end(&c);
}

/* A proxy that does not know them. */
Test(combining, batches_do_without_compound_statements)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	unsigned before;
	struct crew c;

	not_here_unless(!server_is_mysql(world.admin), "compound statements are MariaDB's");
	proxy_replace(p, "BEGIN NOT ATOMIC", "BEGIN NOT ATOMIX");
	crew_begin_by(&c, p, OPTIONS("max_connections", "1", "combine", "on"));
	cr_assert_eq(proxy_replaced(p), 1);
	for (int i = 0; i < 2; i++) {
		crew_releases(&c, i == 1);
		crew_line_up(&c);
		before = proxy_packets(p);
		crew_go(&c);
		crew_all_are(&c, BIZLOCK_OK);
		crew_sent(&c, before, PACKETS);
	}
	cr_assert_eq(proxy_replaced(p), 1);
	crew_end(&c);
}

Test(combining, acquisitions_and_releases_mix)
{
	struct crew c;

	crew_begin(&c, "on");
	crew_all_together(&c);
	crew_all_are(&c, BIZLOCK_OK);
	for (int i = 1; i < N; i += 2)
		expect(OK, c.b, bizlock_release(c.b, KEY(c.ids[i]), c.owners[i], NULL));
	for (int i = 0; i < N; i += 2)
		c.release[i] = true;
	crew_all_together(&c);
	crew_all_are(&c, BIZLOCK_OK);
	cr_assert_eq(rows(), N / 2);
	for (int i = 0; i < N; i++)
		c.release[i] = !c.release[i];
	crew_all_together(&c);
	crew_all_are(&c, BIZLOCK_OK);
	crew_releases(&c, true);
	for (int i = 1; i < N; i += 2)
		expect(OK, c.b, acquire_as(c.b, c.ids[i], c.owners[i]));
	crew_all_together(&c);
	crew_all_are(&c, BIZLOCK_OK);
	crew_end(&c);
}

Test(combining, off_each_goes_alone)
{
	struct crew c;
	unsigned before;

	crew_begin(&c, "off");
	crew_line_up(&c);
	before = proxy_packets(c.proxy);
	crew_go(&c);
	crew_all_are(&c, BIZLOCK_OK);
	crew_sent(&c, before, N);
	crew_releases(&c, true);
	crew_line_up(&c);
	before = proxy_packets(c.proxy);
	crew_go(&c);
	crew_all_are(&c, BIZLOCK_OK);
	crew_sent(&c, before, N);
	crew_end(&c);
}

/* Somebody who wants the lock of the first two alone is about to commit. A batch that waited for
 * that, or was refused because of it, would take more packets. */
Test(combining, sharers_wait_for_no_row_that_is_on_its_way)
{
	MYSQL *tx = db_open(&world.at, world.schema);
	unsigned before;
	struct crew c;

	crew_begin(&c, "on");
	for (int i = 0; i < N; i++)
		c.wants[i] = c.ids[i / 2];
	crew_shares(&c);
	db_run(tx, "START TRANSACTION");
	db_run(tx,
	       "UPDATE biz_lock SET owner = 'alone', reentrant = 1, timeout = UTC_TIMESTAMP(6) + "
	       "INTERVAL 60 SECOND WHERE biz_id = '%s' AND biz_type = '%s' AND slot = 0",
	       c.ids[0], KEY("").biz_type);
	crew_line_up(&c);
	before = proxy_packets(c.proxy);
	crew_go(&c);
	db_run(tx, "ROLLBACK");
	mysql_close(tx);
	crew_all_are(&c, BIZLOCK_OK);
	crew_sent(&c, before, PACKETS);
	crew_release_held(&c);
	crew_end(&c);
}

/* ---- among them some that are not simple ------------------------------------------ */

Test(combining, what_others_hold_is_busy)
{
	struct crew c;

	crew_begin(&c, "on");
	expect(OK, c.stranger, acquire(c.stranger, c.ids[1], .lease_ms = LEASE_MS));
	expect(OK, c.stranger, acquire(c.stranger, c.ids[5], .lease_ms = LEASE_MS));
	c.wait_ms = 0;
	crew_all_together(&c);
	for (int i = 0; i < N; i++)
		cr_assert_eq(c.calls[i].rc, i == 1 || i == 5 ? BIZLOCK_BUSY : BIZLOCK_OK, "%d: %s",
		             i, c.calls[i].errmsg);
	expect(OK, c.stranger, bizlock_release(c.stranger, KEY(c.ids[1]), NULL, NULL));
	expect(OK, c.stranger, bizlock_release(c.stranger, KEY(c.ids[5]), NULL, NULL));
	crew_release_held(&c);
	crew_end(&c);
}

Test(combining, what_is_stale_is_taken_over)
{
	struct crew c;

	crew_begin(&c, "on");
	expect(OK, c.stranger, acquire(c.stranger, c.ids[3], .lease_ms = 100, .wait_ms = -1));
	lease_is_over(c.ids[3]);
	crew_all_together(&c);
	crew_all_are(&c, BIZLOCK_OK);
	for (int i = 0; i < N; i++)
		cr_assert_eq(c.calls[i].grant.flags, i == 3 ? BIZLOCK_TOOK_OVER : 0);
	crew_releases(&c, true);
	crew_all_together(&c);
	crew_all_are(&c, BIZLOCK_OK);
	expect(LOST, c.stranger, bizlock_release(c.stranger, KEY(c.ids[3]), NULL, NULL));
	crew_end(&c);
}

Test(combining, two_owners_that_want_one_key_exclude_each_other)
{
	struct crew c;

	crew_begin(&c, "on");
	c.wants[4] = c.ids[6];
	c.wait_ms = 0;
	crew_all_together(&c);
	cr_assert_eq((c.calls[4].rc == BIZLOCK_OK) + (c.calls[6].rc == BIZLOCK_OK), 1);
	cr_assert_eq((c.calls[4].rc == BIZLOCK_BUSY) + (c.calls[6].rc == BIZLOCK_BUSY), 1);
	crew_release_held(&c);
	crew_end(&c);
}

Test(combining, what_was_broken_is_lost)
{
	struct crew c;

	crew_begin(&c, "on");
	crew_all_together(&c);
	crew_all_are(&c, BIZLOCK_OK);
	crew_breaks(&c, 2);
	crew_releases(&c, true);
	crew_all_together(&c);
	for (int i = 0; i < N; i++)
		cr_assert_eq(c.calls[i].rc, i == 2 ? BIZLOCK_LOST : BIZLOCK_OK, "%d: %s: %s", i,
		             bizlock_err_name(c.calls[i].rc), c.calls[i].errmsg);
	crew_end(&c);
}

/* Lines up releases of what all of them hold, and waits for all but the first. */
static void release_but_one(struct crew *c)
{
	crew_releases(c, true);
	crew_line_up(c);
	proxy_hold_replies(c->proxy, false);
	for (int i = 1; i < N; i++)
		call_join(&c->calls[i]);
}

/* A row that a transaction has fenced is left out: the others do not wait for it. */
Test(combining, what_is_fenced_delays_nobody_else)
{
	struct crew c;
	MYSQL *tx = db_open(&world.at, world.schema);

	crew_begin(&c, "on");
	crew_all_together(&c);
	crew_all_are(&c, BIZLOCK_OK);
	db_run(tx, "START TRANSACTION");
	expect(OK, c.b, bizlock_fence(c.b, KEY(c.ids[0]), c.owners[0], tx));
	release_but_one(&c);
	cr_assert(!atomic_load(&c.calls[0].done));
	db_run(tx, "ROLLBACK");
	call_join(&c.calls[0]);
	crew_occupant_leaves(&c);
	crew_all_are(&c, BIZLOCK_OK);
	mysql_close(tx);
	crew_end(&c);
}

/* By a statement that is not bizlock's, which nobody knows of. Then each goes alone. */
Test(combining, what_is_locked_delays_the_others_for_a_moment)
{
	struct crew c;
	MYSQL *tx = db_open(&world.at, world.schema);

	crew_begin(&c, "on");
	crew_all_together(&c);
	crew_all_are(&c, BIZLOCK_OK);
	db_run(tx, "START TRANSACTION");
	db_number(tx, "SELECT fence FROM biz_lock WHERE %s LOCK IN SHARE MODE",
	          slot_0_where(KEY(c.ids[0])));
	release_but_one(&c);
	cr_assert(!atomic_load(&c.calls[0].done));
	db_run(tx, "ROLLBACK");
	call_join(&c.calls[0]);
	crew_occupant_leaves(&c);
	crew_all_are(&c, BIZLOCK_OK);
	mysql_close(tx);
	crew_end(&c);
}

/* ---- interrupted ------------------------------------------------------------------- */

Test(combining, an_interrupt_ends_the_wait_in_line)
{
	struct crew c;

	crew_begin(&c, "on");
	crew_line_up(&c);
	bizlock_interrupt(c.b);
	for (int i = 0; i < N; i++)
		eventually(atomic_load(&c.calls[i].done));
	crew_go(&c);
	crew_all_are(&c, BIZLOCK_CANCELLED);
	cr_assert_eq(all_rows(&world), 0);
	crew_end(&c);
}

/* ---- cut -------------------------------------------------------------------------- */

/* Cuts the connection at this byte of a packet of the batch. */
static void cut_at(struct crew *c, enum fault_side side, unsigned packet, size_t byte)
{
	struct fault fault = {.what = FAULT_CUT, .side = side, .packet = packet, .byte = byte};

	crew_line_up(c);
	proxy_arm(c->proxy, &fault);
	crew_go(c);
	proxy_arm(c->proxy, NULL);
	for (int i = 0; i < N; i++)
		cr_assert_eq(c->calls[i].rc, BIZLOCK_OK, "side %d, packet %u, byte %zu, %d: %s",
		             (int)side, packet, byte, i, c->calls[i].errmsg);
}

static long long rows_with(const char *what, unsigned long long value)
{
	return db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE %s = %llu", what, value);
}

/* What begins: one hold of each; or several, where slot 0 is there, or where it is not. */
enum begin { ALONE, SHARED, SHARED_FIRST };

static void check_and_turn(struct crew *c, bool release, enum begin how)
{
	cr_assert_eq(rows_with("owner <> ''", 1), release ? 0 : N);
	for (int i = 0; i < N && !release; i++)
		cr_assert_eq(rows_with("fence", c->calls[i].grant.fence), 1);
	for (int i = 0; i < N; i++)
		if (release)
			expect(OK, c->b,
			       bizlock_acquire(c->b, KEY(c->wants[i]),
			                       &OPTS(.owner = c->owners[i], .flags = c->flags,
			                             .wait_ms = CREW_WAIT_MS),
			                       NULL));
		else
			expect(OK, c->b,
			       bizlock_release(c->b, KEY(c->wants[i]), c->owners[i], NULL));
	if (how == SHARED_FIRST)
		db_run(world.admin, "DELETE FROM biz_lock WHERE " FREE_ROWS);
}

/* Wherever the connection is lost, each thread gets an answer, and the answer is true. */
static void cut_everywhere(bool release, enum begin how)
{
	struct fault_trace trace;
	unsigned packets[2] = {0, 0};
	struct crew c;

	crew_begin(&c, "on");
	c.flags = how == ALONE ? 0 : BIZLOCK_SHARED;
	for (int i = 0; how != ALONE && i < N; i++)
		c.wants[i] = c.ids[i / 2];
	crew_all_together(&c);
	if (!release)
		crew_release_held(&c);
	if (how == SHARED_FIRST)
		db_run(world.admin, "DELETE FROM biz_lock WHERE " FREE_ROWS);
	crew_releases(&c, release);
	crew_line_up(&c);
	proxy_arm(c.proxy, NULL);
	crew_go(&c);
	trace = proxy_trace(c.proxy);
	cr_assert_geq(trace.count, 2 * PACKETS);
	for (unsigned i = 0; i < trace.count; i++) {
		enum fault_side side = trace.packets[i].side;
		size_t size = trace.packets[i].size, bytes[] = {0, size / 2, size};

		/* There are many replies, so each is cut at one place only, at each of the three in
		 * turn. */
		for (int at = 0; at < 3; at++)
			if (side == FAULT_REQUESTS || i % 3 == (unsigned)at) {
				check_and_turn(&c, release, how);
				cut_at(&c, side, packets[side], bytes[at]);
			}
		packets[side]++;
	}
	check_and_turn(&c, release, how);
	if (release)
		crew_release_held(&c);
	crew_end(&c);
}

Test(combining, acquisitions_survive_a_lost_connection)
{
	cut_everywhere(false, ALONE);
}

Test(combining, releases_survive_a_lost_connection)
{
	cut_everywhere(true, ALONE);
}

/* Two of them share each key. */
Test(combining, those_that_begin_to_share_survive_it)
{
	cut_everywhere(false, SHARED);
}

/* They make the rows of slot 0 as well. */
Test(combining, those_that_are_the_first_to_share_survive_it)
{
	cut_everywhere(false, SHARED_FIRST);
}

Test(combining, those_that_shared_survive_it)
{
	cut_everywhere(true, SHARED);
}
