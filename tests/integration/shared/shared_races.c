/* Statements that meet: each test keeps one of them back in the server, by a lock on the gap into
 * which its row goes. A test that is late is weaker, never wrong. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_test.h"

TestSuite(shared_races, .init = world_begin, .fini = world_end, .timeout = 120);

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

static void start(struct call *call, bizlock *b, const char *owner, uint32_t flags)
{
	call_prepare(call, b, "k", .wait_ms = -1, .owner = owner);
	call->opts.flags = flags;
	call->opts.lease_ms = LEASE_MS;
	call_go(call);
}

/* Rows cannot be made between those that are around slot 1, which is not there. */
static void keep_back(void)
{
	db_run(world.admin, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
	db_run(world.admin, "START TRANSACTION");
	db_run(world.admin, "SELECT slot FROM biz_shared_lock WHERE biz_id = 'k' AND"
	                    " biz_type = 'test' AND slot = 1 FOR UPDATE");
}

static void is_kept_back(void)
{
	eventually(db_number(world.admin,
	                     "SELECT COUNT(*) FROM information_schema.processlist WHERE INFO LIKE"
	                     " 'INSERT INTO `biz_shared_lock`%%' AND DB = DATABASE()") > 0);
}

/* It has looked before its row was there, and somebody has the lock alone when it is. */
Test(shared_races, a_sharer_that_comes_too_late_goes_back)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_grant x = BIZLOCK_GRANT_INIT;
	struct call call;

	expect(OK, other, take(other, "w", BIZLOCK_EXCLUSIVE, NULL));
	expect(OK, other, give(other, "w"));
	keep_back();
	start(&call, b, "r", BIZLOCK_SHARED);
	is_kept_back();
	expect(OK, other, take(other, "w", BIZLOCK_EXCLUSIVE, &x));
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

	expect(OK, other, take(other, "w", BIZLOCK_EXCLUSIVE, NULL));
	expect(OK, other, give(other, "w"));
	keep_back();
	start(&call, b, "r", BIZLOCK_SHARED);
	is_kept_back();
	expect(OK, other, take(other, "w", BIZLOCK_EXCLUSIVE, &x));
	expect(OK, other, give(other, "w"));
	db_run(world.admin, "COMMIT");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_gt(call.grant.fence, x.fence);
	cr_assert_eq(db_number(world.admin, "SELECT fence FROM biz_shared_lock WHERE slot > 0"),
	             (long long)call.grant.fence);
}

/* Somebody has shared it since the fence of one that wants it alone was drawn. */
Test(shared_races, one_that_has_it_alone_gets_a_newer_fence)
{
	bizlock *b = client(OPTIONS("queue", "off")), *other = client(OPTIONS("queue", "off"));
	bizlock_grant r = BIZLOCK_GRANT_INIT;
	struct call call;

	db_run(world.admin,
	       "INSERT INTO biz_shared_lock (biz_id, biz_type, slot, owner, reentrant, timeout,"
	       " gmt_create, gmt_modified) VALUES ('k', 'test', 5, '', 0, '2020-01-01',"
	       " '2020-01-01', '2020-01-01')");
	keep_back();
	start(&call, b, "w", BIZLOCK_EXCLUSIVE);
	is_kept_back();
	expect(OK, other, take(other, "r", BIZLOCK_SHARED, &r));
	expect(OK, other, give(other, "r"));
	db_run(world.admin, "COMMIT");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_gt(call.grant.fence, r.fence);
}
