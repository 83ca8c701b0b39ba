/* Sets of keys of which some are held already; and giving keys back. */
#define _GNU_SOURCE 1
#include "cr_keyset.h"
#include "cr_test.h"

TestSuite(sets_levels, .init = world_begin, .fini = world_end, .timeout = 240);

#define LEASE_MS 60000

/* ---- deeper ---------------------------------------------------------------- */

Test(sets_levels, what_is_held_already_is_one_level_deeper)
{
	bizlock *b = client(NULL);
	bizlock_grant first = BIZLOCK_GRANT_INIT;
	struct keyset s;

	keyset_make(&s, 4, "k");
	expect(OK, b, acquire(b, s.ids[2], .lease_ms = LEASE_MS, .grant = &first));
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
	for (size_t i = 0; i < s.n; i++) {
		cr_assert_eq(s.grants[i].depth, i == 2 ? 2 : 1);
		cr_assert_eq(s.grants[i].flags, 0);
		cr_assert_eq(row_of(&world, s.keys[i]).depth, i == 2 ? 2 : 1);
		cr_assert_eq(row_of(&world, s.keys[i]).fence, s.grants[i].fence);
	}
	cr_assert_eq(s.grants[2].fence, first.fence);
	expect(OK, b, keyset_release(b, &s, NULL));
	cr_assert_eq(rows(), 1);
	cr_assert_eq(row_of(&world, s.keys[2]).depth, 1);
	expect(OK, b, bizlock_release(b, s.keys[2], NULL, NULL));
	cr_assert_eq(all_rows(&world), 0);
}

Test(sets_levels, the_whole_set_may_be_held_already)
{
	bizlock *b = client(NULL), *stranger = client(NULL);
	struct keyset s, again;

	keyset_make(&s, 5, "k");
	keyset_make(&again, 5, "k");
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
	expect(OK, b, keyset_acquire(b, &again, .lease_ms = LEASE_MS));
	for (size_t i = 0; i < s.n; i++) {
		cr_assert_eq(again.grants[i].fence, s.grants[i].fence);
		cr_assert_eq(again.grants[i].depth, 2);
	}
	expect_held(b, &s, NULL, 2);
	expect(OK, b, keyset_release(b, &s, NULL));
	expect_held(b, &s, NULL, 1);
	expect(BUSY, stranger, keyset_acquire(stranger, &again));
	expect(OK, b, keyset_release(b, &s, NULL));
	cr_assert_eq(all_rows(&world), 0);
}

Test(sets_levels, the_lease_of_what_is_held_starts_anew)
{
	bizlock *b = client(NULL);
	long long first, longest;
	struct keyset s;

	keyset_make(&s, 3, "k");
	expect(OK, b, acquire(b, s.ids[0], .lease_ms = 10000));
	expect(OK, b, acquire(b, s.ids[1], .lease_ms = 600000));
	first = row_of(&world, s.keys[0]).timeout_us;
	longest = row_of(&world, s.keys[1]).timeout_us;
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = 20000));
	cr_assert_geq(row_of(&world, s.keys[0]).timeout_us, first + 10000 * 1000);
	cr_assert_geq(row_of(&world, s.keys[1]).timeout_us, longest, "shortened");
}

Test(sets_levels, local_levels_need_no_server)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	unsigned packets;
	struct keyset s;

	keyset_make(&s, 4, "k");
	opts.flags = BIZLOCK_LOCAL_REENTRY | BIZLOCK_NO_RENEW;
	opts.lease_ms = 10 * LEASE_MS;
	expect(OK, b, bizlock_acquire_all(b, s.keys, s.n, &opts, s.grants));
	packets = proxy_packets(p);
	expect(OK, b, bizlock_acquire_all(b, s.keys, s.n, &opts, s.grants));
	cr_assert_eq(s.grants[3].depth, 2);
	expect(OK, b, keyset_release(b, &s, NULL));
	cr_assert_eq(proxy_packets(p), packets);
	expect_held(b, &s, NULL, 1);
	expect(OK, b, keyset_release(b, &s, NULL));
	cr_assert_eq(all_rows(&world), 0);
	proxy_stop(p);
}

/* ---- and back, when the set fails --------------------------------------------- */

/* Of the keys of s, b holds key 1 at depth 2 and key 3 at depth 1; a holds key 2. */
static void hold_some(bizlock *a, bizlock *b, const struct keyset *s, bizlock_grant held[2])
{
	held[0] = held[1] = (bizlock_grant)BIZLOCK_GRANT_INIT;
	expect(OK, b, acquire(b, s->ids[1], .lease_ms = LEASE_MS, .grant = &held[0]));
	expect(OK, b, acquire(b, s->ids[1], .lease_ms = LEASE_MS, .grant = &held[0]));
	expect(OK, b, acquire(b, s->ids[3], .lease_ms = LEASE_MS, .grant = &held[1]));
	expect(OK, a, acquire_as(a, s->ids[2], "holder"));
}

static void still_hold_some(bizlock *b, const struct keyset *s, const bizlock_grant held[2])
{
	uint32_t left;

	cr_assert_eq(rows(), 3);
	cr_assert_eq(row_of(&world, s->keys[1]).depth, 2);
	cr_assert_eq(row_of(&world, s->keys[1]).fence, held[0].fence);
	cr_assert_eq(row_of(&world, s->keys[3]).depth, 1);
	cr_assert_eq(row_of(&world, s->keys[3]).fence, held[1].fence);
	expect(NOT_OWNER, b, bizlock_verify(b, s->keys[0], NULL));
	expect(OK, b, bizlock_release(b, s->keys[3], NULL, &left));
	cr_assert_eq(left, 0);
	for (uint32_t depth = 2; depth-- > 0;) {
		expect(OK, b, bizlock_verify(b, s->keys[1], NULL));
		expect(OK, b, bizlock_release(b, s->keys[1], NULL, &left));
		cr_assert_eq(left, depth);
	}
	cr_assert_eq(rows(), 1);
}

static void levels_come_back(const char *queue, int64_t wait_ms)
{
	bizlock *a = client(NULL), *b = client(OPTIONS("queue", queue));
	bizlock_grant held[2];
	struct keyset s;

	keyset_make(&s, 5, "k");
	hold_some(a, b, &s, held);
	if (wait_ms == 0)
		expect(BUSY, b, keyset_acquire(b, &s));
	else
		expect(TIMEOUT, b, keyset_acquire(b, &s, .wait_ms = wait_ms));
	expect_not_granted(&s);
	still_hold_some(b, &s, held);
	expect(OK, a, bizlock_release(a, s.keys[2], "holder", NULL));
}

Test(sets_levels, levels_are_what_they_were_when_the_set_is_busy)
{
	levels_come_back("auto", 0);
}

Test(sets_levels, levels_are_what_they_were_when_time_is_up)
{
	levels_come_back("auto", 700);
}

Test(sets_levels, levels_are_what_they_were_without_the_queue)
{
	deadlocks_may_happen();
	levels_come_back("off", 0);
	levels_come_back("off", 700);
}

/* A key that the owner held is lost. Then it does not get the others either. */
static void one_is_lost(bizlock *b, const struct keyset *s)
{
	struct keyset all;

	keyset_make(&all, 4, "k");
	expect(LOST, b, keyset_acquire(b, &all));
	expect_message(b, s->ids[0]);
	expect_not_granted(&all);
	/* The server may tell of the loss after the others were taken. */
	for (size_t i = 1; i < all.n; i++) {
		eventually(!row_of(&world, all.keys[i]).there);
		expect(NOT_OWNER, b, bizlock_release(b, all.keys[i], NULL, NULL));
	}
	expect(LOST, b, keyset_release(b, s, NULL));
	expect(OK, b, keyset_acquire(b, &all, .wait_ms = 5000));
	expect(OK, b, keyset_release(b, &all, NULL));
}

Test(sets_levels, a_lease_that_is_over_is_lost_for_the_set)
{
	bizlock *b = client(NULL);
	struct keyset s;

	keyset_make(&s, 1, "k");
	expect(OK, b, acquire(b, s.ids[0], .lease_ms = 150, .wait_ms = -1));
	lease_is_over(s.ids[0]);
	one_is_lost(b, &s);
}

Test(sets_levels, what_was_broken_is_lost_for_the_set)
{
	bizlock *a = client(NULL), *b = client(NULL);
	struct keyset s;

	keyset_make(&s, 1, "k");
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
	expect(OK, a, bizlock_break(a, s.keys[0], s.grants[0].fence));
	one_is_lost(b, &s);
}

Test(sets_levels, a_level_too_deep_denies_them_all)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	struct keyset s;

	keyset_make(&s, 3, "k");
	opts.flags = BIZLOCK_LOCAL_REENTRY;
	for (uint32_t i = 0; i < BIZLOCK_DEPTH_MAX; i++)
		if (bizlock_acquire(b, s.keys[1], &opts, NULL) != BIZLOCK_OK)
			cr_assert_fail("%s", bizlock_errmsg(b));
	expect(LIMIT, b, keyset_acquire(b, &s));
	eventually(rows() == 1);
	expect(NOT_OWNER, b, bizlock_verify(b, s.keys[0], NULL));
}

/* The new holds are not renewed before the set is complete. */
Test(sets_levels, new_ones_that_end_while_an_old_one_is_locked_are_lost)
{
	bizlock *b = client(OPTIONS("lease_ms", "500"));
	struct keyset s;
	struct call call;

	keyset_make(&s, 3, "k");
	expect(OK, b, acquire_as(b, s.ids[2], "task-1"));
	db_run(world.admin, "START TRANSACTION");
	db_run(world.admin, "SELECT * FROM biz_lock WHERE %s FOR UPDATE", slot_0_where(s.keys[2]));
	call_start_all(&call, b, &s, .wait_ms = -1, .owner = "task-1");
	steadily(!atomic_load(&call.done), 1500);
	db_run(world.admin, "COMMIT");
	cr_assert_eq(call_join(&call), BIZLOCK_LOST, "%s", call.errmsg);
	expect_not_granted(&s);
	eventually(rows() == 1);
	cr_assert_eq(row_of(&world, s.keys[2]).depth, 1);
}

/* ---- giving back --------------------------------------------------------------- */

Test(sets_levels, keys_need_not_be_given_back_together)
{
	bizlock *b = client(NULL);
	struct keyset s;

	keyset_make(&s, 4, "k");
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
	expect(OK, b, bizlock_release(b, s.keys[2], NULL, NULL));
	cr_assert_eq(rows(), 3);
	expect(OK, b, bizlock_release_all(b, s.keys, 2, NULL));
	cr_assert_eq(rows(), 1);
	expect(OK, b, bizlock_verify(b, s.keys[3], NULL));
	expect(OK, b, bizlock_release_all(b, s.keys + 3, 1, NULL));
	cr_assert_eq(all_rows(&world), 0);
}

Test(sets_levels, keys_need_not_have_been_acquired_together)
{
	bizlock *b = client(NULL);
	struct keyset s;

	keyset_make(&s, 12, "k");
	for (size_t i = 0; i < s.n; i++)
		for (size_t level = 0; level <= i % 3; level++)
			expect(OK, b, acquire(b, s.ids[i], .lease_ms = LEASE_MS));
	expect(OK, b, keyset_release(b, &s, NULL));
	for (size_t i = 0; i < s.n; i++)
		cr_assert_eq(row_of(&world, s.keys[i]).depth, i % 3, "%s", s.ids[i]);
}

Test(sets_levels, one_that_is_not_held_does_not_keep_the_others)
{
	bizlock *b = client(NULL);
	struct keyset s;

	for (size_t which = 0; which < 4; which++) {
		keyset_make(&s, 4, "k");
		expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
		expect(OK, b, bizlock_release(b, s.keys[which], NULL, NULL));
		expect(NOT_OWNER, b, keyset_release(b, &s, NULL));
		expect_message(b, s.ids[which]);
		cr_assert_eq(all_rows(&world), 0);
	}
}

Test(sets_levels, one_that_was_broken_is_lost_and_the_others_are_free)
{
	bizlock *a = client(NULL), *b = client(NULL);
	struct keyset s;

	for (size_t which = 0; which < 4; which++) {
		keyset_make(&s, 4, "k");
		expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
		expect(OK, a, bizlock_break(a, s.keys[which], s.grants[which].fence));
		expect(LOST, b, keyset_release(b, &s, NULL));
		expect_message(b, s.ids[which]);
		cr_assert_eq(rows(), 0);
		expect_none(b, &s, NULL);
	}
}

/* Another owner has the key now, and keeps it. */
Test(sets_levels, what_was_taken_over_is_left_to_its_owner)
{
	bizlock *a = client(NULL), *b = client(NULL);
	const char *before;
	struct keyset s;

	keyset_make(&s, 4, "k");
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
	expect(OK, a, bizlock_break(a, s.keys[1], s.grants[1].fence));
	expect(OK, a, acquire(a, s.ids[1], .lease_ms = LEASE_MS));
	before = row_text(s.ids[1]);
	expect(LOST, b, keyset_release(b, &s, NULL));
	cr_assert_eq(rows(), 1);
	cr_assert_str_eq(row_text(s.ids[1]), before);
}

Test(sets_levels, the_first_error_is_the_answer)
{
	bizlock *a = client(NULL), *b = client(NULL);
	struct keyset s;

	keyset_make(&s, 5, "k");
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
	expect(OK, b, bizlock_release(b, s.keys[1], NULL, NULL));
	expect(OK, a, bizlock_break(a, s.keys[3], s.grants[3].fence));
	expect(NOT_OWNER, b, keyset_release(b, &s, NULL));
	expect_message(b, s.ids[1]);
	cr_assert_eq(rows(), 0);

	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
	expect(OK, a, bizlock_break(a, s.keys[1], s.grants[1].fence));
	expect(OK, b, bizlock_release(b, s.keys[3], NULL, NULL));
	expect(LOST, b, keyset_release(b, &s, NULL));
	expect_message(b, s.ids[1]);
	cr_assert_eq(rows(), 0);
}

/* Such a release would wait for itself. */
Test(sets_levels, a_key_given_twice_is_refused)
{
	bizlock *b = client(NULL);
	struct keyset s;

	keyset_make(&s, 3, "k");
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
	s.keys[s.n] = s.keys[0];
	expect(INVALID, b, bizlock_release_all(b, s.keys, s.n + 1, NULL));
	expect_message(b, s.ids[0]);
	expect_held(b, &s, NULL, 1);
	expect(OK, b, keyset_release(b, &s, NULL));
}
