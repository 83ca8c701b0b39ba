/* Requests that travel in one batch stall together. What other threads, and other clients, notice
 * of that. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_crew.h"

TestSuite(combining_stalls, .init = world_begin, .fini = world_end, .timeout = 240);

#define LEASE_MS 60000

/* ---- a client that stops --------------------------------------------------- */

#define SHORT_MS "6000" /* mostly longer than the threads take to line up */

static void half_of_them_release(struct crew *c)
{
	for (int i = 0; i < CREW; i += 2) {
		c->release[i] = true;
		call_start(&c->calls[i], c->b, c->ids[i], .wait_ms = CREW_WAIT_MS,
		           .owner = c->owners[i]);
		cr_assert_eq(call_join(&c->calls[i]), BIZLOCK_OK, "%s", c->calls[i].errmsg);
	}
}

/* To the server and to other clients, a client whose batch does not arrive looks like one
 * that was stopped: its connection is open and silent. */
Test(combining_stalls, a_client_stopped_within_a_batch_keeps_nothing_beyond_its_leases)
{
	struct fault fault = {.what = FAULT_SWALLOW, .side = FAULT_REQUESTS, .packet = 1};
	struct crew c;

	crew_begin_with(&c, OPTIONS("max_connections", "1", "combine", "on", "lease_ms", SHORT_MS,
	                            "renew", "off", "io_timeout_ms", "90000"));
	half_of_them_release(&c);
	crew_line_up(&c);
	proxy_arm(c.proxy, &fault);
	proxy_hold_replies(c.proxy, false);
	eventually(proxy_fired(c.proxy) > 0);
	for (int i = 0; i < CREW; i++)
		expect(OK, c.stranger,
		       acquire(c.stranger, c.ids[i], .wait_ms = 15000, .lease_ms = LEASE_MS));
	for (int i = 0; i < CREW; i++)
		cr_assert(!atomic_load(&c.calls[i].done), "%d came to an end", i);
	for (int i = 0; i < CREW; i++)
		expect(OK, c.stranger, bizlock_release(c.stranger, KEY(c.ids[i]), NULL, NULL));
	proxy_arm(c.proxy, NULL);
	proxy_cut(c.proxy);
	for (int i = 0; i < CREW; i++)
		cr_assert_eq(call_join(&c.calls[i]), c.release[i] ? BIZLOCK_LOST : BIZLOCK_OK,
		             "%d: %s: %s", i, bizlock_err_name(c.calls[i].rc), c.calls[i].errmsg);
	call_join(&c.occupant);
	bizlock_release(c.b, KEY("occupant"), "o", NULL); /* its lease may be over */
	for (int i = 1; i < CREW; i += 2)
		bizlock_release(c.b, KEY(c.ids[i]), c.owners[i], NULL);
	eventually(rows() == 0);
	proxy_stop(c.proxy);
}

/* ---- in line --------------------------------------------------------------------------- */

/* Two connections. From here on, the first one gets no answer to the occupant's request, until it
 * is cut. */
static void begin_with_a_stalled_connection(struct crew *c, bool release)
{
	struct fault fault = {.what = FAULT_SWALLOW, .side = FAULT_REPLIES};
	struct call second;

	crew_begin_with(c,
	                OPTIONS("max_connections", "2", "combine", "on", "io_timeout_ms", "90000"));
	proxy_hold_replies(c->proxy, true);
	call_start(&c->occupant, c->b, "occupant", .wait_ms = CREW_WAIT_MS, .owner = "o");
	call_blocks(&c->occupant);
	call_start(&second, c->b, "second", .wait_ms = CREW_WAIT_MS, .owner = "o");
	call_blocks(&second);
	proxy_hold_replies(c->proxy, false);
	cr_assert_eq(call_join(&second), BIZLOCK_OK, "%s", second.errmsg);
	crew_occupant_leaves(c);
	expect(OK, c->b, bizlock_release(c->b, KEY("second"), "o", NULL));
	for (int i = 0; i < CREW && release; i++) {
		call_start(&c->calls[i], c->b, c->ids[i], .wait_ms = CREW_WAIT_MS,
		           .owner = c->owners[i]);
		call_join(&c->calls[i]);
	}
	crew_releases(c, release);
	proxy_arm(c->proxy, &fault);
	call_start(&c->occupant, c->b, "occupant", .wait_ms = CREW_WAIT_MS, .owner = "o");
	eventually(proxy_fired(c->proxy) > 0);
	proxy_arm(c->proxy, NULL);
}

static void end_with_a_stalled_connection(struct crew *c)
{
	proxy_cut(c->proxy);
	crew_occupant_leaves(c);
	eventually(rows() == 0);
	crew_end(c);
}

static void nobody_waits_for_the_occupant(struct crew *c)
{
	for (int i = 0; i < CREW; i++)
		if (c->release[i])
			call_start_release(&c->calls[i]);
		else
			call_start(&c->calls[i], c->b, c->ids[i], .wait_ms = CREW_WAIT_MS,
			           .owner = c->owners[i]);
	for (int i = 0; i < CREW; i++)
		call_join(&c->calls[i]);
	crew_all_are(c, BIZLOCK_OK);
	cr_assert(!atomic_load(&c->occupant.done));
}

Test(combining_stalls, acquisitions_leave_a_connection_that_does_not_move)
{
	struct call more[2];
	struct crew c;

	begin_with_a_stalled_connection(&c, false);
	/* Both connections are in use, so the other threads line up. */
	proxy_hold_replies(c.proxy, true);
	call_start(&more[0], c.b, "more", .wait_ms = CREW_WAIT_MS, .owner = "o");
	call_blocks(&more[0]);
	crew_start(&c);
	proxy_hold_replies(c.proxy, false);
	for (int i = 0; i < CREW; i++)
		call_join(&c.calls[i]);
	crew_all_are(&c, BIZLOCK_OK);
	cr_assert_eq(call_join(&more[0]), BIZLOCK_OK, "%s", more[0].errmsg);
	cr_assert(!atomic_load(&c.occupant.done));
	crew_release_held(&c);
	expect(OK, c.b, bizlock_release(c.b, KEY("more"), "o", NULL));
	end_with_a_stalled_connection(&c);
}

/* Their doorbells are on that connection, and stay there. Others go past them. */
Test(combining_stalls, releases_leave_a_connection_that_does_not_move)
{
	struct crew c;

	begin_with_a_stalled_connection(&c, true);
	nobody_waits_for_the_occupant(&c);
	cr_assert_eq(
	        db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE biz_id LIKE 'k-%%'"),
	        0);
	for (int i = 0; i < CREW; i++)
		expect(OK, c.stranger,
		       acquire(c.stranger, c.ids[i], .wait_ms = 15000, .lease_ms = LEASE_MS));
	for (int i = 0; i < CREW; i++)
		expect(OK, c.stranger, bizlock_release(c.stranger, KEY(c.ids[i]), NULL, NULL));
	end_with_a_stalled_connection(&c);
}

#define LATE_MS 4000
#define RENEWED_MS 3000

static bool has_its_bell(bizlock *b, const char *id)
{
	bool rung;

	expect(OK, b, acquire(b, id, .wait_ms = 15000, .lease_ms = LEASE_MS));
	rung = db_number(world.admin, "SELECT bell <> 0 FROM biz_lock WHERE %s",
	                 row_where(KEY(id))) != 0;
	expect(OK, b, bizlock_release(b, KEY(id), NULL, NULL));
	return rung;
}

/* All of the crew release while the connection that has their doorbells does not move. */
static void leave_doorbells_behind(struct crew *c, unsigned late_ms)
{
	struct fault fault = {.what = FAULT_DELAY, .side = FAULT_REPLIES, .delay_ms = late_ms};

	for (int i = 0; i < CREW; i++) {
		call_start(&c->calls[i], c->b, c->ids[i], .wait_ms = CREW_WAIT_MS,
		           .owner = c->owners[i]);
		cr_assert_eq(call_join(&c->calls[i]), BIZLOCK_OK, "%s", c->calls[i].errmsg);
	}
	crew_releases(c, true);
	proxy_arm(c->proxy, &fault);
	call_start(&c->occupant, c->b, "occupant", .wait_ms = CREW_WAIT_MS, .owner = "o");
	eventually(proxy_fired(c->proxy) > 0);
	for (int i = 0; i < CREW; i++)
		call_start_release(&c->calls[i]);
	for (int i = 0; i < CREW; i++)
		call_join(&c->calls[i]);
	crew_all_are(c, BIZLOCK_OK);
}

/* If not, no waiter could ever use these doorbells again. */
Test(combining_stalls, doorbells_left_behind_are_given_back)
{
	struct crew c;

	crew_begin_with(&c, OPTIONS("max_connections", "2", "combine", "on"));
	leave_doorbells_behind(&c, LATE_MS);
	crew_occupant_leaves(&c);
	for (int i = 0; i < CREW; i++)
		eventually(has_its_bell(c.stranger, c.ids[i]));
	crew_end(&c);
}

/* Attempts to give the doorbells back that fail must not cost other holds their leases. */
Test(combining_stalls, doorbells_left_behind_hold_no_renewal_up)
{
	struct crew c;

	crew_begin_with(&c, OPTIONS("max_connections", "2", "combine", "on"));
	expect(OK, c.b, acquire_renewed(c.b, "renewed", .owner = "r", .lease_ms = RENEWED_MS));
	leave_doorbells_behind(&c, 2 * RENEWED_MS);
	steadily(bizlock_left_ms(c.b, KEY("renewed"), "r") > 0, RENEWED_MS + RENEWED_MS / 2);
	crew_occupant_leaves(&c);
	expect(OK, c.b, bizlock_release(c.b, KEY("renewed"), "r", NULL));
	crew_end(&c);
}

/* ---- refused ---------------------------------------------------------------------------- */

static long long bell_of(const char *id)
{
	return db_number(world.admin, "SELECT bell FROM biz_lock WHERE %s", row_where(KEY(id)));
}

/* The doorbells are still on the connection that had some before. */
static void keeps_its_connection(const struct crew *c, long long before)
{
	cr_assert_neq(before, 0);
	cr_assert_eq(bell_of("kept"), before);
	for (int i = 0; i < CREW; i++)
		if (!c->release[i])
			cr_assert_eq(bell_of(c->ids[i]), before);
}

static void refuse(struct crew *c, const char *from, const char *to)
{
	crew_line_up(c);
	proxy_replace(c->proxy, from, to);
}

Test(combining_stalls, acquisitions_that_are_refused_together_go_alone)
{
	struct crew c;
	long long kept;
	unsigned before;

	crew_begin(&c, "on");
	expect(OK, c.b, acquire_as(c.b, "kept", "o"));
	kept = bell_of("kept");
	refuse(&c, "reentrant = NULL", "reentrant = NULX");
	before = proxy_packets(c.proxy);
	crew_go(&c);
	crew_all_are(&c, BIZLOCK_OK);
	/* The batch, a question on MariaDB, ROLLBACK, the batch in two packets, ROLLBACK, and one
	 * packet for each request. */
	crew_sent(&c, before, (server_is_mysql(world.admin) ? 5 : 6) + CREW);
	cr_assert_gt(proxy_replaced(c.proxy), 0);
	keeps_its_connection(&c, kept);
	crew_release_held(&c);
	expect(OK, c.b, bizlock_release(c.b, KEY("kept"), "o", NULL));
	crew_end(&c);
}

/* A batch that was rolled back has not run: so the lock that was broken meanwhile is told LOST. */
Test(combining_stalls, releases_that_are_refused_together_go_alone)
{
	struct crew c;
	long long kept;

	crew_begin(&c, "on");
	expect(OK, c.b, acquire_as(c.b, "kept", "o"));
	kept = bell_of("kept");
	crew_all_together(&c);
	crew_all_are(&c, BIZLOCK_OK);
	crew_breaks(&c, 2);
	crew_releases(&c, true);
	refuse(&c, "fence + 0 IN", "fenze + 0 IN");
	crew_go(&c);
	for (int i = 0; i < CREW; i++)
		cr_assert_eq(c.calls[i].rc, i == 2 ? BIZLOCK_LOST : BIZLOCK_OK, "%d: %s: %s", i,
		             bizlock_err_name(c.calls[i].rc), c.calls[i].errmsg);
	cr_assert_gt(proxy_replaced(c.proxy), 0);
	/* On the connection that had the doorbells before. */
	expect(OK, c.b, acquire_as(c.b, c.ids[0], "o"));
	cr_assert_eq(bell_of(c.ids[0]), kept);
	expect(OK, c.b, bizlock_release(c.b, KEY(c.ids[0]), "o", NULL));
	expect(OK, c.b, bizlock_release(c.b, KEY("kept"), "o", NULL));
	crew_end(&c);
}

/* The answer to the occupant is lost, and with it the connection, before the batch is sent: so the
 * lock that was broken meanwhile is told LOST. */
Test(combining_stalls, what_was_not_sent_has_not_run)
{
	struct fault fault = {.what = FAULT_CUT, .side = FAULT_REPLIES};
	struct crew c;

	crew_begin(&c, "on");
	half_of_them_release(&c);
	crew_breaks(&c, 2);
	crew_line_up(&c);
	proxy_arm(c.proxy, &fault);
	crew_go(&c);
	for (int i = 0; i < CREW; i++)
		cr_assert_eq(c.calls[i].rc, i == 2 ? BIZLOCK_LOST : BIZLOCK_OK, "%d: %s: %s", i,
		             bizlock_err_name(c.calls[i].rc), c.calls[i].errmsg);
	crew_releases(&c, false);
	for (int i = 1; i < CREW; i += 2)
		expect(OK, c.b, bizlock_release(c.b, KEY(c.ids[i]), c.owners[i], NULL));
	crew_end(&c);
}

/* The answer to a compound is an error, or tells nothing; but it is committed. So acquisitions find
 * their rows, and releases that theirs are gone. */
static void goes_wrong_behind_the_commit(const char *from, const char *to)
{
	struct crew c;

	not_here_unless(!server_is_mysql(world.admin), "compound statements are MariaDB's");
	crew_begin(&c, "on");
	half_of_them_release(&c);
	refuse(&c, from, to);
	crew_go(&c);
	crew_all_are(&c, BIZLOCK_OK);
	cr_assert_gt(proxy_replaced(c.proxy), 0);
	for (int i = 1; i < CREW; i += 2)
		expect(OK, c.b, bizlock_release(c.b, KEY(c.ids[i]), c.owners[i], NULL));
	crew_end(&c);
}

Test(combining_stalls, an_error_behind_the_commit)
{
	goes_wrong_behind_the_commit("SELECT LAST_INSERT_ID(),IF(@@auto_increment_offset",
	                             "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO=1205;DO (1");
}

Test(combining_stalls, a_compound_that_does_not_tell_the_fences)
{
	goes_wrong_behind_the_commit("LAST_INSERT_ID()", "NULLIF(1, 1)    ");
}

/* A foreign transaction keeps a row from being inserted. */
Test(combining_stalls, one_that_waits_does_not_keep_the_others)
{
	MYSQL *tx = db_open(&world.at, world.schema);
	struct crew c;
	long long kept;

	crew_begin(&c, "on");
	expect(OK, c.b, acquire_as(c.b, "kept", "o"));
	kept = bell_of("kept");
	expect(OK, c.stranger, acquire(c.stranger, "k-2z", .lease_ms = LEASE_MS));
	expect(OK, c.stranger, acquire(c.stranger, "k-3z", .lease_ms = LEASE_MS));
	db_run(tx, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
	db_run(tx, "START TRANSACTION");
	free(db_text(tx, "SELECT fence FROM biz_lock WHERE %s FOR UPDATE",
	             slot_0_where(KEY(c.ids[3]))));
	crew_line_up(&c);
	proxy_hold_replies(c.proxy, false);
	for (int i = 0; i < CREW; i++)
		if (i != 3)
			cr_assert_eq(call_join(&c.calls[i]), BIZLOCK_OK, "%s", c.calls[i].errmsg);
	cr_assert(!atomic_load(&c.calls[3].done));
	db_run(tx, "ROLLBACK");
	call_join(&c.calls[3]);
	crew_occupant_leaves(&c);
	crew_all_are(&c, BIZLOCK_OK);
	keeps_its_connection(&c, kept);
	crew_release_held(&c);
	expect(OK, c.b, bizlock_release(c.b, KEY("kept"), "o", NULL));
	expect(OK, c.stranger, bizlock_release(c.stranger, KEY("k-2z"), NULL, NULL));
	expect(OK, c.stranger, bizlock_release(c.stranger, KEY("k-3z"), NULL, NULL));
	mysql_close(tx);
	crew_end(&c);
}
