/* Requests for a shared lock. */
#include "cr_ask.h"

TestSuite(asking_shared, .init = world_begin, .fini = world_end, .timeout = 240);

#define S BIZLOCK_SHARED
#define X 0

static int try_as(bizlock *b, const char *owner, uint32_t flags, uint32_t limit)
{
	return bizlock_acquire(b, KEY("k"),
	                       &OPTS(.wait_ms = 0, .owner = owner, .flags = flags, .limit = limit,
	                             .lease_ms = 20 * PATIENCE_MS),
	                       NULL);
}

static void release_as(bizlock *b, const char *owner)
{
	expect(OK, b, bizlock_release(b, KEY("k"), owner, NULL));
}

static long long rows_where(const char *where)
{
	return db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE %s", where);
}

Test(asking_shared, several_have_it_up_to_the_limit)
{
	bizlock *b = client(NULL);
	struct ask a[3];

	for (int i = 0; i < 3; i++) {
		char owner[8] = {'t', (char)('0' + i), '\0'};

		ask_for(&a[i], b, "k", owner, .wait_ms = -1, .flags = S, .limit = 2);
	}
	ask_ends(OK, &a[0]);
	ask_ends(OK, &a[1]);
	cr_assert_eq(a[0].grant.slot + a[1].grant.slot, 1 + 2);
	steadily(a[2].calls == 0, 500);
	ask_release(&a[0]);
	ask_ends(OK, &a[0]);
	ask_ends(OK, &a[2]);
	cr_assert_eq(a[2].grant.flags, 0);
	for (int i = 1; i < 3; i++) {
		ask_release(&a[i]);
		ask_ends(OK, &a[i]);
	}
	cr_assert_eq(rows_where("owner <> ''"), 0);
}

Test(asking_shared, any_number_has_it_without_a_limit)
{
	bizlock *b = client(NULL);
	struct ask a[8];

	for (int i = 0; i < 8; i++) {
		char owner[8] = {'t', (char)('0' + i), '\0'};

		ask_for(&a[i], b, "k", owner, .wait_ms = 0, .flags = S);
	}
	for (int i = 0; i < 8; i++)
		ask_ends(OK, &a[i]);
	cr_assert_eq(rows_where("owner <> ''"), 8);
}

/* Sharers that come later do not pass it, and those that came earlier are waited for. */
Test(asking_shared, who_wants_it_alone_waits_for_those_that_share_it)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct ask alone, late;

	expect(OK, other, try_as(other, "sharer", S, 0));
	expect(OK, other,
	       bizlock_acquire(other, KEY("k"),
	                       &OPTS(.owner = "last", .flags = S, .lease_ms = 20 * PATIENCE_MS),
	                       &grant));
	ask_for(&alone, b, "k", "alone", .wait_ms = -1, .flags = X);
	dispatch_until(b, rows_where("slot = 0 AND owner <> ''") == 1);
	expect(BUSY, other, try_as(other, "late", S, 0));
	ask_for(&late, b, "k", "late", .wait_ms = -1, .flags = S);
	release_as(other, "sharer");
	steadily((dispatch_once(b), alone.calls == 0 && late.calls == 0), 500);
	release_as(other, "last");
	ask_ends(OK, &alone);
	cr_assert(alone.grant.slot == 0 && alone.grant.flags == 0);
	cr_assert_gt(alone.grant.fence, grant.fence);
	steadily((dispatch_once(b), late.calls == 0), 500);
	ask_release(&alone);
	ask_ends(OK, &alone);
	ask_ends(OK, &late);
	cr_assert_gt(late.grant.fence, grant.fence);
}

Test(asking_shared, another_client_gives_it_free)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct ask a[2];

	expect(OK, other, try_as(other, "alone", X, 0));
	ask_for(&a[0], b, "k", "t0", .wait_ms = -1, .flags = S);
	ask_for(&a[1], b, "k", "t1", .wait_ms = -1, .flags = S);
	steadily((dispatch_once(b), a[0].calls + a[1].calls == 0), 500);
	release_as(other, "alone");
	ask_ends(OK, &a[0]);
	ask_ends(OK, &a[1]);
}

Test(asking_shared, the_end_of_a_lease_ends_the_wait)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct ask a;

	expect(OK, other,
	       bizlock_acquire(
	               other, KEY("k"),
	               &OPTS(.owner = "sharer", .flags = S | BIZLOCK_NO_RENEW, .lease_ms = 1500),
	               NULL));
	ask_for(&a, b, "k", "alone", .wait_ms = -1, .flags = X);
	ask_ends(OK, &a);
	cr_assert_eq(a.grant.flags, BIZLOCK_TOOK_OVER);
}

/* What kept newcomers out is gone at once. */
Test(asking_shared, one_that_is_cancelled_lets_others_in)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct ask a;

	expect(OK, other, try_as(other, "sharer", S, 0));
	ask_for(&a, b, "k", "alone", .wait_ms = -1, .flags = X);
	dispatch_until(b, rows_where("slot = 0 AND owner <> ''") == 1);
	ask_cancel(&a);
	ask_ends(CANCELLED, &a);
	expect(OK, other, try_as(other, "late", S, 0));
	ask_for(&a, b, "k", "alone", .wait_ms = 300, .flags = X);
	ask_ends(TIMEOUT, &a);
	cr_assert(strstr(a.errmsg, "held by"), "%s", a.errmsg);
	expect(OK, other, try_as(other, "later", S, 0));
}

Test(asking_shared, a_close_leaves_nothing_behind)
{
	bizlock *b = client_open(&world, NULL), *other = client(NULL);
	struct ask a[2];

	expect(OK, other, try_as(other, "sharer", S, 0));
	ask_for(&a[0], b, "k", "alone", .wait_ms = -1, .flags = X);
	ask_for(&a[1], b, "k", "late", .wait_ms = -1, .flags = S);
	dispatch_until(b, rows_where("slot = 0 AND owner <> ''") == 1);
	bizlock_close(b);
	cr_assert(a[0].rc == BIZLOCK_CANCELLED && a[1].rc == BIZLOCK_CANCELLED);
	expect(OK, other, try_as(other, "late", S, 0));
	cr_assert_eq(rows_where("owner <> ''"), 2);
}

/* The place of one that waits for longer than its lease is renewed. */
Test(asking_shared, a_long_wait_keeps_its_place)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct ask a;

	expect(OK, other, try_as(other, "sharer", S, 0));
	ask_for(&a, b, "k", "alone", .wait_ms = -1, .flags = X, .lease_ms = 1200);
	dispatch_until(b, rows_where("slot = 0 AND owner <> ''") == 1);
	steadily((dispatch_once(b), try_as(other, "late", S, 0) == BIZLOCK_BUSY), 3000);
	release_as(other, "sharer");
	ask_ends(OK, &a);
	cr_assert_eq(a.grant.flags, 0);
}

Test(asking_shared, a_key_is_had_in_one_way_at_a_time)
{
	bizlock *b = client(NULL);
	struct ask a;

	ask_for(&a, b, "k", "t", .wait_ms = -1, .flags = S);
	ask_ends(OK, &a);
	ask_for(&a, b, "k", "t", .wait_ms = -1, .flags = X);
	ask_ends(MISUSE, &a);
	ask_for(&a, b, "k", "t", .wait_ms = -1);
	ask_ends(MISUSE, &a);
	ask_for(&a, b, "k", "t", .wait_ms = -1, .flags = S);
	ask_ends(OK, &a);
	cr_assert_eq(a.grant.depth, 2);
}
