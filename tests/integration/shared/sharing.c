/* Shared locks: who holds one beside whom, and who is refused. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_shared.h"
#include "stale.h"

TestSuite(sharing, .init = world_begin, .fini = world_end, .timeout = 240);

Test(sharing, many_share_and_one_has_it_alone)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	uint64_t fence;

	expect(OK, b, try_as(b, "r1", S, 0, &grant));
	cr_assert_gt(grant.slot, 0);
	fence = grant.fence;
	expect(OK, b, try_as(b, "r2", S, 0, NULL));
	expect(OK, other, try_as(other, "r3", S, 0, NULL));
	cr_assert_eq(rows_where("slot > 0 AND " LIVE), 3);
	expect(BUSY, other, try_as(other, "w", X, 0, NULL));
	expect_message(other, "held by r");
	expect(OK, b, release_as(b, "r1"));
	expect(OK, b, release_as(b, "r2"));
	expect(BUSY, b, try_as(b, "w", X, 0, NULL));
	expect(OK, other, release_as(other, "r3"));
	cr_assert_eq(rows_where("owner <> ''"), 0);

	expect(OK, other, try_as(other, "w", X, 0, &grant));
	cr_assert_eq(grant.slot, 0);
	cr_assert_eq(grant.flags, 0);
	cr_assert_gt(grant.fence, fence);
	expect(BUSY, b, try_as(b, "r1", S, 0, NULL));
	expect_message(b, "held by w@");
	expect(BUSY, b, try_as(b, "w2", X, 0, NULL));
	expect(OK, other, release_as(other, "w"));
	cr_assert_eq(rows_where(LIVE), 0);
	fence = grant.fence;
	expect(OK, b, try_as(b, "r1", S, 0, &grant));
	cr_assert_gt(grant.fence, fence);
	expect(OK, b, release_as(b, "r1"));
	expect(NOT_OWNER, b, release_as(b, "r1"));
}

Test(sharing, no_more_than_the_limit)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	for (uint32_t i = 1; i <= 3; i++) {
		char owner[8];

		snprintf(owner, sizeof(owner), "r%u", i);
		expect(OK, b, try_as(b, owner, S, 3, &grant));
		cr_assert_eq(grant.slot, i);
	}
	expect(BUSY, other, try_as(other, "r4", S, 3, NULL));
	expect(BUSY, other, try_as(other, "w", X, 0, NULL));
	expect(OK, b, release_as(b, "r2"));
	expect(OK, other, try_as(other, "r4", S, 3, &grant));
	cr_assert_eq(grant.slot, 2);
	/* A smaller limit puts nobody out; slots above it count. */
	expect(BUSY, b, try_as(b, "r2", S, 2, NULL));
	expect(OK, b, release_as(b, "r1"));
	expect(BUSY, b, try_as(b, "r2", S, 2, NULL));
	expect(OK, b, release_as(b, "r3"));
	expect(OK, b, try_as(b, "r2", S, 2, &grant));
	cr_assert_eq(grant.slot, 1);
	expect(OK, b, release_as(b, "r2"));
	expect(OK, other, release_as(other, "r4"));
	expect(OK, b, try_as(b, "w", X, 0, NULL));
	expect(BUSY, other, try_as(other, "r4", S, 3, NULL));
	expect(OK, b, release_as(b, "w"));
}

/* Whoever asks without a flag, or for several keys, wants them alone. */
Test(sharing, they_keep_out_whoever_wants_it_alone)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_key keys[] = {KEY("j"), KEY("k")};
	bizlock_acquire_opts once = OPTS(.wait_ms = 0);

	expect(OK, b, try_as(b, "a", S, 0, NULL));
	expect(BUSY, other, acquire_as(other, "k", "b"));
	expect_message(other, "held by a");
	expect(BUSY, other, bizlock_acquire_all(other, keys, 2, &once, NULL));
	expect_message(other, "held by a");
	cr_assert_eq(rows_where("biz_id = 'j' AND " LIVE), 0);
	expect(OK, b, release_as(b, "a"));
	expect(OK, other, bizlock_acquire_all(other, keys, 2, &once, NULL));
	expect(BUSY, b, try_as(b, "a", S, 0, NULL));
	expect(OK, other, bizlock_release_all(other, keys, 2, NULL));
	expect(OK, other, acquire_as(other, "k", "b"));
	expect(BUSY, b, try_as(b, "a", S, 0, NULL));
	expect(OK, other, release_as(other, "b"));
	expect(OK, b, try_as(b, "a", S, 0, NULL));
}

Test(sharing, an_owner_has_a_key_in_one_way)
{
	bizlock *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b, try_as(b, "a", S, 0, &grant));
	expect(OK, b, try_as(b, "a", S, 0, &grant));
	cr_assert_eq(grant.depth, 2);
	cr_assert_gt(grant.slot, 0);
	expect(MISUSE, b, try_as(b, "a", X, 0, NULL));
	expect_message(b, "release");
	expect(OK, b, release_as(b, "a"));
	expect(OK, b, release_as(b, "a"));

	expect(OK, b, try_as(b, "a", X, 0, NULL));
	expect(OK, b, try_as(b, "a", S, 0, &grant));
	cr_assert_eq(grant.depth, 2);
	cr_assert_eq(grant.slot, 0);
	expect(OK, b, release_as(b, "a"));
	expect(BUSY, b, try_as(b, "r", S, 0, NULL));
	expect(OK, b, release_as(b, "a"));
}

Test(sharing, bad_arguments)
{
	bizlock *b = client(NULL);
	bizlock_key keys[] = {KEY("k"), KEY("l")};

	expect(INVALID, b, try_as(b, "a", 32, 0, NULL));
	expect(INVALID, b, try_as(b, "a", 0, 3, NULL));
	expect_message(b, "limit");
	expect(INVALID, b, try_as(b, "a", S, BIZLOCK_LIMIT_MAX + 1, NULL));
	expect(OK, b, try_as(b, "a", S, BIZLOCK_LIMIT_MAX, NULL));
	expect(OK, b, release_as(b, "a"));
	expect(INVALID, b, bizlock_acquire_all(b, keys, 2, &OPTS(.flags = BIZLOCK_SHARED), NULL));
}

Test(sharing, verified_renewed_and_left)
{
	bizlock *b = client(NULL);

	expect(OK, b, try_as(b, "a", S, 0, NULL));
	expect(OK, b, try_as(b, "b", S, 0, NULL));
	expect(OK, b, bizlock_verify(b, KEY("k"), "a"));
	expect(OK, b, bizlock_renew(b, KEY("k"), "a", 2 * LEASE_MS));
	cr_assert_gt(bizlock_left_ms(b, KEY("k"), "a"), LEASE_MS);
	cr_assert_leq(bizlock_left_ms(b, KEY("k"), "b"), LEASE_MS);
	expect(OK, b, release_as(b, "a"));
	expect(OK, b, bizlock_verify(b, KEY("k"), "b"));
	db_run(world.admin, "DELETE FROM biz_lock");
	expect(LOST, b, bizlock_verify(b, KEY("k"), "b"));
	expect(LOST, b, release_as(b, "b"));
}

/* Holds of locks that are shared and of locks that are not, with the same lease. */
Test(sharing, renewed_with_the_others)
{
	enum { LEASE = 3000 };
	bizlock *b = client(OPTIONS("lease_ms", "3000"));
	long long sum;

	expect(OK, b, acquire_renewed(b, "x", .owner = "a"));
	expect(OK, b,
	       bizlock_acquire(b, KEY("k"), &OPTS(.flags = BIZLOCK_SHARED, .owner = "a"), NULL));
	expect(OK, b,
	       bizlock_acquire(b, KEY("k"), &OPTS(.flags = BIZLOCK_SHARED, .owner = "b"), NULL));
	sum = db_number(world.admin, "SELECT SUM(UNIX_TIMESTAMP(timeout)) FROM biz_lock");
	eventually(db_number(world.admin, "SELECT SUM(UNIX_TIMESTAMP(timeout)) FROM biz_lock") >=
	           sum + 3 * LEASE / 1000);
	expect(OK, b, bizlock_verify(b, KEY("k"), "a"));
	expect(OK, b, bizlock_verify(b, KEY("k"), "b"));
	expect(OK, b, bizlock_verify(b, KEY("x"), "a"));
}

Test(sharing, closing_gives_them_back)
{
	bizlock *b = client_open(&world, NULL), *other = client(NULL);

	expect(OK, b, try_as(b, "a", S, 0, NULL));
	expect(OK, b, try_as(b, "b", S, 0, NULL));
	expect(OK, b, bizlock_acquire(b, KEY("x"), &OPTS(.flags = X, .owner = "a"), NULL));
	bizlock_close(b);
	cr_assert_eq(rows_where(LIVE), 0);
	expect(OK, other, try_as(other, "w", X, 0, NULL));
	expect(OK, other, release_as(other, "w"));
}

/* What nobody gave back: taken over, and told. */
Test(sharing, a_dead_holder_makes_way)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	static const char over[] =
	        "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND";

	expect(OK, b, try_as(b, "w", X, 0, &grant));
	db_run(world.admin, over);
	expect(OK, other, try_as(other, "r", S, 0, &grant));
	cr_assert_eq(grant.flags, BIZLOCK_TOOK_OVER);
	expect(LOST, b, release_as(b, "w"));
	expect(OK, other, try_as(other, "r2", S, 0, &grant));
	cr_assert_eq(grant.flags, 0);

	db_run(world.admin, over);
	expect(OK, b, try_as(b, "w", X, 0, &grant));
	cr_assert_eq(grant.flags, BIZLOCK_TOOK_OVER);
	expect(LOST, other, release_as(other, "r"));
	expect(LOST, other, release_as(other, "r2"));
	expect(OK, b, release_as(b, "w"));

	expect(OK, b, try_as(b, "r", S, 1, &grant));
	db_run(world.admin, "%s WHERE slot = 1", over);
	expect(OK, other, try_as(other, "r", S, 1, &grant));
	cr_assert_eq(grant.flags, BIZLOCK_TOOK_OVER);
	cr_assert_eq(grant.slot, 1);
	expect(OK, other, release_as(other, "r"));
	expect(LOST, b, release_as(b, "r"));
}

/* At most two starts in a period. */
Test(sharing, a_slot_that_rests_is_taken)
{
	bizlock *b = client(NULL);
	const bizlock_acquire_opts opts =
	        OPTS(.flags = S, .limit = 2, .min_hold_ms = 600000, .lease_ms = LEASE_MS);

	for (int i = 0; i < 2; i++) {
		expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	}
	expect(BUSY, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	expect_message(b, "resting");
	db_run(world.admin, "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6) WHERE slot = 2");
	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

/* ---- what is shown ------------------------------------------------------------------------- */

static int note_limit(void *arg, const bizlock_info *info)
{
	*(uint32_t *)arg = info->limit;
	return 0;
}

static uint32_t last_limit(bizlock *b)
{
	uint32_t ret = 99;

	expect(OK, b, bizlock_look(b, KEY("k"), note_limit, &ret));
	return ret;
}

/* Each is shown with the limit that its owner has, in a row that another one has left, too. */
Test(sharing, the_limit_is_shown)
{
	bizlock *b = client(NULL);

	expect(OK, b, try_as(b, "a", S, 8, NULL));
	cr_assert_eq(last_limit(b), 8);
	expect(OK, b, try_as(b, "b", S, 9, NULL));
	cr_assert_eq(last_limit(b), 9);
	expect(OK, b, release_as(b, "a"));
	expect(OK, b, release_as(b, "b"));
	stale_shared_lease(world.admin, "k", 1, 1000);
	expect(OK, b, try_as(b, "c", S, 7, NULL));
	cr_assert_eq(last_limit(b), 7);
	expect(OK, b, release_as(b, "c"));
	expect(OK, b, try_as(b, "d", X, 0, NULL));
	cr_assert_eq(last_limit(b), 0);
}
