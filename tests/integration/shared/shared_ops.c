/* Shared locks for those who look after locks: listed, broken, reaped. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_test.h"

TestSuite(shared_ops, .init = world_begin, .fini = world_end, .timeout = 240);

#define LEASE_MS (20u * PATIENCE_MS)

static bizlock_grant take(bizlock *b, const char *id, const char *owner, uint32_t flags,
                          uint32_t limit)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b,
	       bizlock_acquire(
	               b, KEY(id),
	               &OPTS(.flags = flags, .limit = limit, .owner = owner, .lease_ms = LEASE_MS),
	               &grant));
	return grant;
}

struct seen {
	unsigned count, shared, alone;
	uint64_t fences[600];
	uint32_t last_slot;
	bool in_order;
};

static int see(void *arg, const bizlock_info *info)
{
	struct seen *s = arg;

	s->in_order &= info->flags != BIZLOCK_SHARED || info->slot > s->last_slot;
	s->last_slot = info->slot;
	s->shared += info->flags == BIZLOCK_SHARED;
	s->alone += info->flags == 0;
	s->fences[s->count++] = info->fence;
	return 0;
}

static struct seen look(bizlock *b, const char *id)
{
	struct seen s = {.in_order = true};

	if (id)
		expect(OK, b, bizlock_look(b, KEY(id), see, &s));
	else
		expect(OK, b, bizlock_each(b, "test", see, &s));
	return s;
}

static long long live(void)
{
	return db_number(world.admin, "SELECT COUNT(*) FROM biz_lock"
	                              " WHERE timeout > UTC_TIMESTAMP(6)");
}

Test(shared_ops, they_are_listed)
{
	bizlock *b = client(NULL);
	struct seen s;

	take(b, "k", "r1", BIZLOCK_SHARED, 3);
	take(b, "k", "r2", BIZLOCK_SHARED, 3);
	take(b, "x", "w", 0, 0);
	s = look(b, "k");
	cr_assert_eq(s.shared, 2);
	cr_assert_eq(s.alone, 0);
	s = look(b, NULL);
	cr_assert_eq(s.count, 3);
	cr_assert_eq(s.alone, 1);
	s = (struct seen){.in_order = true};
	expect(OK, b, bizlock_each(b, NULL, see, &s));
	cr_assert_eq(s.count, 3);
	expect(OK, b, bizlock_release(b, KEY("x"), "w", NULL));
	cr_assert_eq(look(b, "x").count, 0);
}

/* More than two pages of one key. */
Test(shared_ops, a_crowd_is_listed)
{
	enum { SHARERS = 540 };
	bizlock *b = client(NULL);
	struct seen s;

	for (int i = 1; i <= SHARERS; i++)
		db_run(world.admin,
		       "INSERT INTO biz_lock (biz_id, biz_type, slot, owner, reentrant,"
		       " timeout, gmt_create, gmt_modified) VALUES ('k', 'test', %d, 'x', 1,"
		       " '2037-01-01', '2026-01-01', '2026-01-01')",
		       2 * i);
	s = look(b, "k");
	cr_assert_eq(s.shared, SHARERS);
	cr_assert(s.in_order);
	s = look(b, NULL);
	cr_assert_eq(s.shared, SHARERS);
	cr_assert(s.in_order);
	s = (struct seen){.in_order = true};
	expect(OK, b, bizlock_each(b, NULL, see, &s));
	cr_assert_eq(s.shared, SHARERS);
}

Test(shared_ops, one_of_those_that_share_it_is_broken)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_grant one = take(b, "k", "r1", BIZLOCK_SHARED, 0), x;
	struct call call;

	take(b, "k", "r2", BIZLOCK_SHARED, 0);
	expect(OK, other, bizlock_break(other, KEY("k"), one.fence));
	cr_assert_eq(live(), 1);
	expect(LOST, other, bizlock_break(other, KEY("k"), one.fence));
	expect(LOST, b, bizlock_release(b, KEY("k"), "r1", NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), "r2", NULL));

	x = take(b, "k", "w", 0, 0);
	call_prepare(&call, other, "k", .wait_ms = -1, .owner = "r3");
	call.opts.flags = BIZLOCK_SHARED;
	call_go(&call);
	call_blocks(&call);
	expect(OK, b, bizlock_break(b, KEY("k"), x.fence));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_gt(call.grant.fence, x.fence);
	expect(LOST, b, bizlock_release(b, KEY("k"), "w", NULL));
}

static bizlock_reap_result reaped(bizlock *b)
{
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	bizlock_reap_result result = BIZLOCK_REAP_RESULT_INIT;

	opts.older_than_ms = 0;
	opts.batch = 2;
	expect(OK, b, bizlock_reap(b, &opts, &result));
	return result;
}

/* What dead holders left. */
Test(shared_ops, they_are_reaped)
{
	bizlock *b = client(NULL);

	take(b, "k", "r1", BIZLOCK_SHARED, 0);
	for (int i = 1; i <= 7; i++)
		db_run(world.admin,
		       "INSERT INTO biz_lock (biz_id, biz_type, slot, owner, reentrant,"
		       " timeout, gmt_create, gmt_modified) VALUES ('k', 'test', %d, 'x', 1,"
		       " '2020-01-01', '2020-01-01', '2020-01-01')",
		       i);
	cr_assert_eq(reaped(b).leases, 7);
	expect(OK, b, bizlock_verify(b, KEY("k"), "r1"));
}

/* The row of slot 0 stays for as long as somebody shares the lock under it, and no longer. */
Test(shared_ops, what_a_sharer_needs_is_not_reaped)
{
	bizlock *b = client(NULL), *other = client(NULL);

	take(b, "k", "r1", BIZLOCK_SHARED, 0);
	take(b, "x", "r1", BIZLOCK_SHARED, 0);
	expect(OK, b, bizlock_release(b, KEY("x"), "r1", NULL));
	cr_assert_eq(reaped(other).rests, 1);
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE biz_id = 'x'"), 0);
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE slot = 0"), 1);
	expect(OK, b, bizlock_release(b, KEY("k"), "r1", NULL));
	cr_assert_eq(reaped(other).rests, 1);
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_lock"), 0);
}
