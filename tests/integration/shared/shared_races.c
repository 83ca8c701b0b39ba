/* Statements that meet: each test keeps one of them back in the server, by a lock on the gap into
 * which its row goes. A test that is late is weaker, never wrong. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_test.h"

TestSuite(shared_races, .init = world_begin, .fini = world_end, .timeout = 240);

#define LEASE_MS (20u * PATIENCE_MS)

static int take(bizlock *b, const char *owner, uint32_t flags, bizlock_grant *ret)
{
	return bizlock_acquire(b, KEY("k"),
	                       &OPTS(.flags = flags, .owner = owner, .lease_ms = LEASE_MS), ret);
}

static int give(bizlock *b, const char *owner)
{
	return bizlock_release(b, KEY("k"), owner, NULL);
}

static void start(struct call *call, bizlock *b, const char *id, const char *owner, uint32_t flags)
{
	call_prepare(call, b, id, .wait_ms = -1, .owner = owner);
	call->opts.flags = flags;
	call->opts.lease_ms = LEASE_MS;
	call_go(call);
}

/* What sharers leave; but a slot of one, though it is deleted, would end the gap. */
static void was_shared(const char *id)
{
	db_run(world.admin,
	       "INSERT INTO biz_lock (biz_id, biz_type, slot, owner, reentrant, timeout,"
	       " gmt_create, gmt_modified) VALUES ('%s', 'test', 0, '', 0, '2020-01-01',"
	       " '2020-01-01', '2020-01-01')",
	       id);
}

/* Rows cannot be made between those that are around slot 1, which is not there. */
static void keep_back(MYSQL *tx, const char *id)
{
	db_run(tx, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
	db_run(tx, "START TRANSACTION");
	db_run(tx,
	       "SELECT slot FROM biz_lock WHERE biz_id = '%s' AND biz_type = 'test' AND"
	       " slot = 1 FOR UPDATE",
	       id);
}

static void is_kept_back(void)
{
	eventually(db_number(world.admin,
	                     "SELECT COUNT(*) FROM information_schema.processlist WHERE INFO LIKE"
	                     " 'INSERT INTO `biz_lock`%%' AND DB = DATABASE()") > 0);
}

/* A sharer's row is kept back, and somebody gets the lock alone meanwhile. */
static void comes_late(struct call *call, bizlock *b, bizlock *other, bizlock_grant *ret)
{
	was_shared("k");
	keep_back(world.admin, "k");
	start(call, b, "k", "r", BIZLOCK_SHARED);
	is_kept_back();
	expect(OK, other, take(other, "w", 0, ret));
}

/* It has looked before its row was there, and somebody has the lock alone when it is. */
Test(shared_races, a_sharer_that_comes_too_late_goes_back)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_grant x = BIZLOCK_GRANT_INIT;
	struct call call;

	comes_late(&call, b, other, &x);
	db_run(world.admin, "COMMIT");
	call_blocks(&call);
	cr_assert_not(atomic_load(&call.done));
	expect(OK, other, bizlock_verify(other, KEY("k"), "w"));
	expect(OK, other, give(other, "w"));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_gt(call.grant.fence, x.fence);
}

/* Somebody has had it alone since its fence was drawn. */
Test(shared_races, a_sharer_that_comes_late_gets_a_newer_fence)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_grant x = BIZLOCK_GRANT_INIT;
	struct call call;

	comes_late(&call, b, other, &x);
	expect(OK, other, give(other, "w"));
	db_run(world.admin, "COMMIT");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_gt(call.grant.fence, x.fence);
	cr_assert_eq(db_number(world.admin, "SELECT fence FROM biz_lock WHERE slot > 0"),
	             (long long)call.grant.fence);
}

/* A header that is older than all, and came late, tells nothing of who has had the lock since. */
Test(shared_races, a_header_that_comes_late_is_no_proof)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_grant x = BIZLOCK_GRANT_INIT;
	struct call call;

	works(other); /* by fence 1 */
	comes_late(&call, b, other, &x);
	expect(OK, other, give(other, "w"));
	db_run(world.admin,
	       "INSERT INTO biz_lock (biz_id, biz_type, slot, fence, owner, reentrant, timeout,"
	       " gmt_create, gmt_modified) VALUES ('k', 'test', 0, 1, '', 0, '2020-01-01',"
	       " '2020-01-01', '2020-01-01')");
	db_run(world.admin, "COMMIT");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_gt(call.grant.fence, x.fence);
}

static void reap(bizlock *b)
{
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;

	opts.older_than_ms = 0;
	expect(OK, b, bizlock_reap(b, &opts, NULL));
}

/* What is broken leaves a header with its fence, and the reaper removes that. */
static void break_and_reap(bizlock *b, uint64_t fence)
{
	MYSQL *look = db_open(&world.at, world.schema);

	expect(OK, b, bizlock_break(b, KEY("k"), fence));
	cr_assert_eq(db_number(look, "SELECT fence FROM biz_lock WHERE %s AND owner = ''",
	                       slot_0_where(KEY("k"))),
	             (long long)fence);
	reap(b);
	cr_assert_eq(db_number(look, "SELECT COUNT(*) FROM biz_lock WHERE %s", row_where(KEY("k"))),
	             0);
	mysql_close(look);
}

/* A call that has it alone, and ends before it hears of that; what is cleaned up behind it. */
static void end_unknown(struct proxy *p, bizlock *b)
{
	MYSQL *look = db_open(&world.at, world.schema);
	struct call call;

	proxy_hold_replies(p, true);
	start(&call, b, "k", "u", 0);
	eventually(db_number(look, "SELECT COUNT(*) FROM biz_lock WHERE owner LIKE 'u@%%'") == 1);
	bizlock_interrupt(b);
	proxy_cut(p);
	proxy_hold_replies(p, false);
	cr_assert_eq(call_join(&call), BIZLOCK_CANCELLED, "%s", call.errmsg);
	eventually(db_number(look, "SELECT COUNT(*) FROM biz_lock WHERE owner LIKE 'u@%%'") == 0);
	mysql_close(look);
}

/* Whatever was cleaned up meanwhile: a sharer that finds no header makes one, and draws another
 * fence. */
static void trace_outlasts(bool is_reaper)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock *u = client_through(p, OPTIONS("max_connections", "1"));
	bizlock_grant x = BIZLOCK_GRANT_INIT;
	struct call call;
	MYSQL *view;

	works(u);
	works(u); /* the next acquisition is one packet */
	/* The gap ends here: the reaper's own lock is behind it. */
	db_run(world.admin,
	       "INSERT INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout, gmt_create,"
	       " gmt_modified) VALUES ('kk', 'test', '', 0, '2037-01-01', '2020-01-01',"
	       " '2020-01-01')");
	comes_late(&call, b, other, &x);
	if (is_reaper) {
		break_and_reap(other, x.fence);
	} else {
		/* Purged, the row of slot 0 would be part of the gap, and u be kept back, too. */
		view = db_open(&world.at, world.schema);
		db_run(view, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
		expect(OK, other, give(other, "w"));
		end_unknown(p, u);
		mysql_close(view);
	}
	db_run(world.admin, "COMMIT");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_gt(call.grant.fence, x.fence);
	proxy_stop(p);
}

Test(shared_races, a_trace_outlasts_a_reaper)
{
	trace_outlasts(true);
}

Test(shared_races, a_trace_outlasts_what_is_not_known)
{
	trace_outlasts(false);
}

static void lock_header(void)
{
	db_run(world.admin, "START TRANSACTION");
	db_run(world.admin, "SELECT fence FROM biz_lock WHERE %s FOR UPDATE",
	       slot_0_where(KEY("k")));
}

/* Somebody has shared it since the fence of one that wants it alone was drawn. The first INSERT
 * finds the header, and changes nothing. The one that takes the header has drawn a fence, and waits
 * for the row. */
Test(shared_races, one_that_has_it_alone_gets_a_newer_fence)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("queue", "off", "max_connections", "1"));
	bizlock *other = client(OPTIONS("queue", "off"));
	bizlock_grant r = BIZLOCK_GRANT_INIT;
	struct call call;

	works(b); /* it has a connection */
	was_shared("k");
	lock_header();
	start(&call, b, "k", "w", 0);
	is_kept_back();
	proxy_hold_replies(p, true);
	db_run(world.admin, "COMMIT");
	lock_header(); /* the INSERT is over */
	proxy_hold_replies(p, false);
	is_kept_back();
	expect(OK, other, take(other, "r", BIZLOCK_SHARED, &r));
	expect(OK, other, give(other, "r"));
	db_run(world.admin, "COMMIT");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_gt(call.grant.fence, r.fence);
	proxy_stop(p);
}

/* ---- those that travel together ------------------------------------------------------------ */

enum { CROWD = 8 }; /* enough for a batch */

struct crowd {
	bizlock *b, *other;
	struct call occupant, calls[CROWD];
	char owners[CROWD][8];
};

/* They line up behind an earlier one, which is kept back for as long as that takes. Their own
 * batch is kept back then. */
static void crowd_is_kept_back(struct crowd *c)
{
	MYSQL *before = db_open(&world.at, world.schema);

	c->b = client(OPTIONS("max_connections", "1"));
	c->other = client(NULL);
	was_shared("k");
	keep_back(world.admin, "k");
	keep_back(before, "a");
	start(&c->occupant, c->b, "a", "o", BIZLOCK_SHARED);
	is_kept_back();
	for (int i = 0; i < CROWD; i++) {
		snprintf(c->owners[i], sizeof(c->owners[i]), "r-%d", i);
		start(&c->calls[i], c->b, "k", c->owners[i], BIZLOCK_SHARED);
		call_blocks(&c->calls[i]);
	}
	db_run(before, "COMMIT");
	mysql_close(before);
	cr_assert_eq(call_join(&c->occupant), BIZLOCK_OK, "%s", c->occupant.errmsg);
	is_kept_back();
}

/* All get the lock, with larger fences than this one, and give it back. */
static void crowd_gets_it_after(struct crowd *c, uint64_t fence)
{
	for (int i = 0; i < CROWD; i++) {
		cr_assert_eq(call_join(&c->calls[i]), BIZLOCK_OK, "%s", c->calls[i].errmsg);
		cr_assert_gt(c->calls[i].grant.fence, fence);
	}
	cr_assert_eq(db_number(world.admin,
	                       "SELECT COUNT(*) FROM biz_lock WHERE biz_id = 'k' AND slot > 0"),
	             CROWD);
	for (int i = 0; i < CROWD; i++)
		expect(OK, c->b, give(c->b, c->owners[i]));
}

Test(shared_races, those_that_come_too_late_together_go_back)
{
	struct crowd c;
	bizlock_grant x = BIZLOCK_GRANT_INIT;

	crowd_is_kept_back(&c);
	expect(OK, c.other, take(c.other, "w", 0, &x));
	db_run(world.admin, "COMMIT");
	for (int i = 0; i < CROWD; i++) {
		call_blocks(&c.calls[i]);
		cr_assert_not(atomic_load(&c.calls[i].done));
	}
	expect(OK, c.other, bizlock_verify(c.other, KEY("k"), "w"));
	expect(OK, c.other, give(c.other, "w"));
	crowd_gets_it_after(&c, x.fence);
}

Test(shared_races, those_that_come_late_together_get_newer_fences)
{
	struct crowd c;
	bizlock_grant x = BIZLOCK_GRANT_INIT;

	crowd_is_kept_back(&c);
	expect(OK, c.other, take(c.other, "w", 0, &x));
	expect(OK, c.other, give(c.other, "w"));
	db_run(world.admin, "COMMIT");
	crowd_gets_it_after(&c, x.fence);
}

/* ---- what a lost statement has left ---------------------------------------------------------- */

static bool is_beside(bizlock *other, uint32_t flags)
{
	int rc = take(other, "r", flags, NULL);

	if (rc == BIZLOCK_OK)
		give(other, "r");
	return rc == BIZLOCK_OK;
}

/* The owner's own row is there, of the other kind, and its lease is not over. Nobody may be let in
 * beside it: neither the owner by the other kind, nor, once that has happened, others. */
static void leftover_is_not_taken(uint32_t left, uint32_t wanted, const char *slot)
{
	bizlock *b = client(OPTIONS("queue", "off")), *other = client(NULL);

	expect(OK, b, take(b, "w", left, NULL));
	db_run(world.admin,
	       "CREATE TEMPORARY TABLE kept SELECT biz_id, biz_type, %s AS slot, owner, reentrant,"
	       " timeout, gmt_create, gmt_modified FROM biz_lock WHERE owner <> ''",
	       slot);
	expect(OK, b, give(b, "w"));
	db_run(world.admin, "REPLACE INTO biz_lock (biz_id, biz_type, slot, owner, reentrant,"
	                    " timeout, gmt_create, gmt_modified) SELECT * FROM kept");
	if (take(b, "w", wanted, NULL) == BIZLOCK_OK)
		cr_assert_not(is_beside(other, left), "two kinds at one time");
	db_run(world.admin, "DELETE FROM biz_lock WHERE owner <> ''");
	expect(OK, other, take(other, "r", left, NULL));
}

Test(shared_races, a_row_of_ones_own_that_shares_is_not_had_alone)
{
	leftover_is_not_taken(BIZLOCK_SHARED, 0, "slot");
}

Test(shared_races, a_row_of_ones_own_that_has_it_alone_is_not_shared)
{
	leftover_is_not_taken(0, BIZLOCK_SHARED, "0");
}
