/* The same owner, deeper and back. */
#define _GNU_SOURCE 1
#include "client/lock/reentry.h"
#include "cr_test.h"

TestSuite(reentry, .init = world_begin, .fini = world_end, .timeout = 240);

Test(reentry, counts_in_the_row_and_keeps_the_fence)
{
	bizlock *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	uint64_t fence = 0;

	for (uint32_t depth = 1; depth <= 4; depth++) {
		expect(OK, b, acquire(b, "k", .grant = &grant));
		fence = fence ? fence : grant.fence;
		cr_assert_eq(grant.depth, depth);
		cr_assert_eq(grant.fence, fence);
		cr_assert_eq(grant.flags, 0);
		cr_assert_eq(row_of(&world, KEY("k")).depth, depth);
		cr_assert_eq(row_of(&world, KEY("k")).fence, fence);
	}
}

Test(reentry, release_counts_down_and_the_last_one_frees)
{
	bizlock *b = client(NULL), *stranger = client(NULL);
	uint32_t left;

	for (int i = 0; i < 3; i++)
		expect(OK, b, acquire(b, "k"));
	for (uint32_t depth = 2; depth > 0; depth--) {
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, &left));
		cr_assert_eq(left, depth);
		cr_assert_eq(row_of(&world, KEY("k")).depth, depth);
		expect(BUSY, stranger, acquire(stranger, "k"));
	}
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, &left));
	cr_assert_eq(left, 0);
	expect(OK, stranger, acquire(stranger, "k"));
	expect(NOT_OWNER, b, bizlock_release(b, KEY("k"), NULL, &left));
}

/* The row gets the depth that the owner knows, not "one more than before". So a repeated or lost
 * statement does no harm, whatever the row said. */
Test(reentry, the_depth_is_absolute)
{
	bizlock *b = client(NULL);

	expect(OK, b, acquire(b, "k"));
	db_run(world.admin, "UPDATE biz_lock SET reentrant = 77");
	expect(OK, b, acquire(b, "k"));
	cr_assert_eq(row_of(&world, KEY("k")).depth, 2);
	db_run(world.admin, "UPDATE biz_lock SET reentrant = 77");
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	cr_assert_eq(row_of(&world, KEY("k")).depth, 1);
}

Test(reentry, starts_the_lease_anew)
{
	bizlock *b = client(NULL);
	long long first, then;

	expect(OK, b, acquire(b, "k", .lease_ms = 10000));
	first = row_of(&world, KEY("k")).timeout_us;
	expect(OK, b, acquire(b, "k", .lease_ms = 20000));
	then = row_of(&world, KEY("k")).timeout_us;
	cr_assert_geq(then, first + 10000 * 1000);
}

Test(reentry, never_shortens_the_lease)
{
	bizlock *b = client(NULL);
	long long first;

	expect(OK, b, acquire(b, "k", .lease_ms = 60000));
	first = row_of(&world, KEY("k")).timeout_us;
	expect(OK, b, acquire(b, "k", .lease_ms = 1000));
	cr_assert_eq(row_of(&world, KEY("k")).timeout_us, first);
	cr_assert_gt(bizlock_left_ms(b, KEY("k"), NULL), 30000);
}

Test(reentry, local_reentry_stays_in_memory)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL), *stranger = client(NULL);
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	unsigned packets;
	uint32_t left;

	opts.flags = BIZLOCK_LOCAL_REENTRY;
	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	packets = proxy_packets(p);
	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, &grant));
	cr_assert_eq(grant.depth, 2);
	cr_assert_eq(grant.fence, row_of(&world, KEY("k")).fence);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, &left));
	cr_assert_eq(left, 1);
	cr_assert_eq(proxy_packets(p), packets);

	expect(BUSY, stranger, acquire(stranger, "k"));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	cr_assert(!row_of(&world, KEY("k")).there);
	proxy_stop(p);
}

/* Levels that the server knows, mixed with levels that it does not know. */
Test(reentry, local_and_stored_levels_mix)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts local = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	uint32_t left;

	local.flags = BIZLOCK_LOCAL_REENTRY;
	expect(OK, b, acquire(b, "k"));
	expect(OK, b, bizlock_acquire(b, KEY("k"), &local, NULL));
	expect(OK, b, acquire(b, "k", .grant = &grant));
	cr_assert_eq(grant.depth, 3);
	for (uint32_t depth = 3; depth-- > 0;) {
		cr_assert(row_of(&world, KEY("k")).there);
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, &left));
		cr_assert_eq(left, depth);
	}
	cr_assert(!row_of(&world, KEY("k")).there);
}

/* A process that stood still for longer than its lease may ask before its own threads have noticed.
 * So the clock decides, and it is told a time here. */
Test(reentry, levels_in_memory_end_with_the_lease)
{
	bizlock *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	bizlock_key key = KEY("k");
	bl_time end;
	uint32_t depth;

	expect(OK, b, acquire(b, "k", .lease_ms = 600000));
	end = bl_deadline_in_ms(600000);
	cr_assert_not(bl_client_deeper(b, key, NULL, 0, BIZLOCK_LOCAL_REENTRY, end, &grant));
	cr_assert(bl_client_deeper(b, key, NULL, 0, BIZLOCK_LOCAL_REENTRY, bl_now(), &grant));
	cr_assert_eq(grant.depth, 2);
	cr_assert_not(bl_client_shallower(b, key, NULL, end, &depth));
	cr_assert(bl_client_shallower(b, key, NULL, bl_now(), &depth));
	cr_assert_eq(depth, 1);
}
