/* The same owner, deeper and back. */
#define _GNU_SOURCE 1
#include <bizlock_tx.h>

#include "client/contest/reentry.h"
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

/* A short level within it does not put off its next renewal, however often one comes. */
Test(reentry, short_levels_do_not_keep_it_from_being_renewed)
{
	bizlock *b = client(NULL);
	uint32_t lease_ms = busy_lease_ms(b, 2400);

	expect(OK, b, acquire_renewed(b, "k", .lease_ms = lease_ms));
	for (int i = 0; i < 6; i++) {
		pause_ms(lease_ms / 4);
		expect(OK, b, acquire_renewed(b, "k", .lease_ms = lease_ms / 10));
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	}
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
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
	cr_assert(no_row(&world, KEY("k")));
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
	cr_assert(no_row(&world, KEY("k")));
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

/* ---- what a deeper level asks for -------------------------------------------------------- */

#define SHORT_MS 1500
#define LEASE_MS 6000 /* longer than a busy machine keeps a statement waiting */
#define LONG_MS 600000

static const uint32_t local_or_not[] = {0, BIZLOCK_LOCAL_REENTRY};

/* Renewed until both levels are given back. */
static void is_renewed(const char *const *options, uint32_t outer_flags, uint32_t inner_flags)
{
	bizlock *b = client(options);
	bizlock_acquire_opts outer = OPTS(.lease_ms = LEASE_MS, .flags = outer_flags);
	bizlock_acquire_opts inner = OPTS(.lease_ms = LEASE_MS, .flags = inner_flags);
	long long first;

	expect(OK, b, bizlock_acquire(b, KEY("k"), &outer, NULL));
	expect(OK, b, bizlock_acquire(b, KEY("k"), &inner, NULL));
	first = row_of(&world, KEY("k")).timeout_us;
	eventually(row_of(&world, KEY("k")).timeout_us > first + 1000LL * LEASE_MS);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	first = row_of(&world, KEY("k")).timeout_us;
	eventually(row_of(&world, KEY("k")).timeout_us > first + 1000LL);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	cr_assert(no_row(&world, KEY("k")));
}

Test(reentry, renewal_that_a_deeper_level_asks_for_begins)
{
	for (int i = 0; i < 2; i++)
		is_renewed(NULL, BIZLOCK_NO_RENEW, local_or_not[i]);
}

Test(reentry, renewal_goes_on_below_a_level_that_asks_for_none)
{
	for (int i = 0; i < 2; i++)
		is_renewed(NULL, 0, BIZLOCK_NO_RENEW | local_or_not[i]);
}

Test(reentry, a_level_is_renewed_although_its_client_renews_nothing)
{
	for (int i = 0; i < 2; i++) {
		is_renewed(OPTIONS("renew", "off"), BIZLOCK_RENEW, local_or_not[i]);
		is_renewed(OPTIONS("renew", "off"), 0, BIZLOCK_RENEW | local_or_not[i]);
		is_renewed(OPTIONS("renew", "off"), BIZLOCK_NO_RENEW,
		           BIZLOCK_RENEW | local_or_not[i]);
	}
}

static bool rests(const char *id)
{
	struct row row = row_of(&world, KEY(id));

	return row.there && !row.owner[0];
}

Test(reentry, the_later_end_of_a_minimum_counts)
{
	static const uint32_t minima[][2] = {{0, LONG_MS}, {LONG_MS, 0}, {300, LONG_MS}};

	for (int i = 0; i < 6; i++) {
		bizlock *b = client(NULL);
		const uint32_t *ms = minima[i / 2];
		bizlock_acquire_opts outer = OPTS(.min_hold_ms = ms[0]);
		bizlock_acquire_opts inner =
		        OPTS(.min_hold_ms = ms[1], .flags = local_or_not[i % 2]);
		long long deeper;

		expect(OK, b, bizlock_acquire(b, KEY("k"), &outer, NULL));
		deeper = server_us();
		expect(OK, b, bizlock_acquire(b, KEY("k"), &inner, NULL));
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
		cr_assert(rests("k"), "%d", i);
		if (ms[1])
			cr_assert_geq(row_of(&world, KEY("k")).timeout_us,
			              deeper + LONG_MS * 1000LL);
		db_run(world.admin, "DELETE FROM biz_lock");
	}
}

Test(reentry, the_longest_minimum_of_a_deeper_level_is_kept)
{
	bizlock *b = client(NULL);

	expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
	expect(OK, b, bizlock_acquire(b, KEY("k"), &OPTS(.min_hold_ms = UINT32_MAX), NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	cr_assert_gt(row_of(&world, KEY("k")).left_us, (UINT32_MAX - LONG_MS) * 1000LL);
}

static struct losses losses;

Test(reentry, the_earlier_end_of_a_maximum_counts)
{
	for (int i = 0; i < 4; i++) {
		bizlock *b = client(OPTIONS("max_hold_ms", i < 2 ? "0" : "600000"));
		bizlock_acquire_opts outer = OPTS(.lease_ms = LONG_MS / 2);
		bizlock_acquire_opts inner =
		        OPTS(.max_hold_ms = SHORT_MS, .flags = local_or_not[i % 2]);
		unsigned before = atomic_load(&losses.count);
		int64_t start;

		losses_watch(&losses, b);
		expect(OK, b, bizlock_acquire(b, KEY("k"), &outer, NULL));
		start = now_ms();
		expect(OK, b, bizlock_acquire(b, KEY("k"), &inner, NULL));
		eventually(atomic_load(&losses.count) == before + 1);
		cr_assert_geq(now_ms() - start, SHORT_MS);
		expect(LOST, b, bizlock_verify(b, KEY("k"), NULL));
		expect_message(b, "max_hold_ms");
		db_run(world.admin, "DELETE FROM biz_lock");
	}
}

/* The client's own maximum is for whoever says nothing, and not a wish of each level. */
Test(reentry, the_clients_maximum_is_no_wish_of_a_deeper_level)
{
	bizlock *b = client(OPTIONS("max_hold_ms", "200"));

	expect(OK, b, bizlock_acquire(b, KEY("k"), &OPTS(.max_hold_ms = LONG_MS), NULL));
	expect(OK, b, bizlock_acquire(b, KEY("k"), NULL, NULL));
	steadily(bizlock_left_ms(b, KEY("k"), NULL) > 0, 1000);
}

/* A set is granted or not; what it asked for does not stay behind with what was held before. */
Test(reentry, a_set_that_fails_leaves_no_wish_behind)
{
	const bizlock_key keys[] = {KEY("a"), KEY("k")};
	bizlock *b = client(NULL);
	MYSQL *tx = db_open(&world.at, world.schema);

	for (int i = 0; i < 2; i++)
		expect(OK, b, bizlock_acquire(b, keys[i], &OPTS(.lease_ms = LONG_MS), NULL));
	db_run(tx, "START TRANSACTION");
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	expect(BUSY, b, bizlock_acquire_all(b, keys, 2, &OPTS(.min_hold_ms = LONG_MS), NULL));
	mysql_close(tx);
	expect(OK, b, bizlock_release(b, KEY("a"), NULL, NULL));
	cr_assert(no_row(&world, KEY("a")));
}
