/* Several keys at once: all of them or none. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_keyset.h"
#include "cr_test.h"

TestSuite(sets, .init = world_begin, .fini = world_end, .timeout = 240);

#define LEASE_MS 60000

static void expect_free(const struct keyset *s)
{
	for (size_t i = 0; i < s->n; i++)
		cr_assert(no_row(&world, s->keys[i]), "%s", s->keys[i].biz_id);
}

/* ---- taken and given back ------------------------------------------------- */

Test(sets, each_key_is_held_with_a_fence_of_its_own)
{
	bizlock *b = client(NULL), *stranger = client(NULL);
	struct keyset s;

	keyset_make(&s, 5, "k");
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
	expect_granted(&s, 0);
	expect_held(b, &s, NULL, 1);
	for (size_t i = 0; i < s.n; i++) {
		cr_assert_eq(s.grants[i].lease_ms, LEASE_MS);
		expect(BUSY, stranger, acquire(stranger, s.keys[i].biz_id));
	}
	expect(OK, b, keyset_release(b, &s, NULL));
	cr_assert_eq(all_rows(&world), 0);
	expect_none(b, &s, NULL);
}

/* The rows are written in another order than the caller's. The grants are in the caller's order. */
Test(sets, grants_are_in_the_callers_order)
{
	bizlock *b = client(NULL);
	unsigned seed = (unsigned)now_ms();
	struct keyset s;

	printf("seed %u\n", seed);
	keyset_make(&s, 40, "k");
	for (int i = 0; i < 5; i++) {
		keyset_shuffle(&s, &seed);
		keyset_forget(&s);
		expect(OK, b, keyset_acquire(b, &s, .wait_ms = -1));
		expect_granted(&s, 0);
		expect_held(b, &s, NULL, 1);
		expect(OK, b, keyset_release(b, &s, NULL));
		cr_assert_eq(all_rows(&world), 0);
	}
}

Test(sets, a_later_hold_has_larger_fences)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct keyset s;
	uint64_t most = 0;

	keyset_make(&s, 8, "k");
	for (int round = 0; round < 4; round++) {
		bizlock *who = round % 2 ? other : b;
		uint64_t before = most;

		expect(OK, who, keyset_acquire(who, &s));
		for (size_t i = 0; i < s.n; i++) {
			cr_assert_gt(s.grants[i].fence, before);
			most = s.grants[i].fence > most ? s.grants[i].fence : most;
		}
		expect(OK, who, keyset_release(who, &s, NULL));
	}
}

Test(sets, a_set_of_one_is_like_a_single_key)
{
	bizlock *b = client(NULL);
	struct keyset s;

	keyset_make(&s, 1, "k");
	expect(OK, b, keyset_acquire(b, &s));
	expect_held(b, &s, NULL, 1);
	expect(OK, b, bizlock_release(b, s.keys[0], NULL, NULL));
	expect(OK, b, bizlock_acquire(b, s.keys[0], NULL, NULL));
	expect(OK, b, keyset_release(b, &s, NULL));
	cr_assert_eq(all_rows(&world), 0);
}

Test(sets, two_hundred_and_fifty_six_keys_are_a_set)
{
	bizlock *b = client(NULL);
	struct keyset s;

	keyset_make(&s, KEYSET_MAX, "k");
	keyset_reverse(&s);
	expect(OK, b, keyset_acquire(b, &s));
	expect_granted(&s, 0);
	expect_held(b, &s, NULL, 1);
	expect(OK, b, keyset_release(b, &s, NULL));
	cr_assert_eq(all_rows(&world), 0);
}

/* More keys than a connection may have doorbells. */
Test(sets, several_large_ones_are_held_at_a_time)
{
	static const char *const names[] = {"a", "b", "c"};
	bizlock *b = client(NULL);
	struct keyset s[3];

	for (int i = 0; i < 3; i++) {
		keyset_make(&s[i], KEYSET_MAX, names[i]);
		expect(OK, b, keyset_acquire(b, &s[i], .lease_ms = LEASE_MS, .owner = names[i]));
	}
	cr_assert_eq(all_rows(&world), 3 * KEYSET_MAX);
	for (int i = 0; i < 3; i++) {
		expect_held(b, &s[i], names[i], 1);
		expect(OK, b, keyset_release(b, &s[i], names[i]));
	}
	cr_assert_eq(all_rows(&world), 0);
}

Test(sets, options_and_grants_may_be_left_out)
{
	bizlock *b = client(OPTIONS("lease_ms", "23456"));
	struct keyset s;
	long long left;

	keyset_make(&s, 3, "k");
	expect(OK, b, bizlock_acquire_all(b, s.keys, s.n, NULL, NULL));
	for (size_t i = 0; i < s.n; i++) {
		left = row_of(&world, s.keys[i]).left_us;
		cr_assert(left > 0 && left <= 23456 * 1000, "left: %lld us", left);
	}
	expect(OK, b, keyset_release(b, &s, NULL));
}

Test(sets, options_are_the_same_for_each)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	struct keyset s;

	keyset_make(&s, 3, "k");
	opts.note = "it's \"why\"";
	opts.owner = "task-17";
	opts.lease_ms = LEASE_MS;
	expect(OK, b, bizlock_acquire_all(b, s.keys, s.n, &opts, s.grants));
	for (size_t i = 0; i < s.n; i++) {
		struct row row = row_of(&world, s.keys[i]);

		cr_assert_str_eq(row.note, opts.note);
		cr_assert(strncmp(row.owner, "task-17@", 8) == 0, "%s", row.owner);
		cr_assert_gt(row.left_us, LEASE_MS / 2 * 1000);
	}
	expect_held(b, &s, "task-17", 1);
	expect(NOT_OWNER, b, keyset_release(b, &s, NULL));
	expect_held(b, &s, "task-17", 1);
	expect(OK, b, keyset_release(b, &s, "task-17"));
	cr_assert_eq(all_rows(&world), 0);
}

Test(sets, keys_that_look_alike_are_different_keys)
{
	static const bizlock_key keys[] = {
	        {"test", "a"},   {"test", "A"}, {"test", "a "}, {"test", "\xc3\xa1"},
	        {"Test", "a"},   {"ab", "c"},   {"a", "bc"},    {"test", "'; DROP TABLE x; --"},
	        {"te'st", "\\"}, {"\\", "'"},   {"test", "?"},  {"\xf0\x9f\x94\x92", "\x01\n%s"},
	};
	enum { N = sizeof(keys) / sizeof(keys[0]) };
	bizlock *b = client(NULL), *stranger = client(NULL);
	bizlock_acquire_opts once = OPTS(.wait_ms = 0);

	expect(OK, b, bizlock_acquire_all(b, keys, N, &once, NULL));
	cr_assert_eq(all_rows(&world), N);
	for (int i = 0; i < N; i++) {
		expect(OK, b, bizlock_verify(b, keys[i], NULL));
		expect(BUSY, stranger, bizlock_acquire(stranger, keys[i], &once, NULL));
	}
	expect(OK, b, bizlock_release_all(b, keys, N, NULL));
	cr_assert_eq(all_rows(&world), 0);
}

Test(sets, the_longest_keys_fill_a_set)
{
	static char ids[KEYSET_MAX][BIZLOCK_ID_MAX + 1], type[BIZLOCK_TYPE_MAX + 1];
	static bizlock_key keys[KEYSET_MAX];
	bizlock *b = client(NULL);

	memset(type, 't', BIZLOCK_TYPE_MAX);
	for (unsigned i = 0; i < KEYSET_MAX; i++) {
		memset(ids[i], 'i', BIZLOCK_ID_MAX);
		snprintf(ids[i] + BIZLOCK_ID_MAX - 3, 4, "%03u", i);
		keys[i] = (bizlock_key){type, ids[i]};
	}
	expect(OK, b, bizlock_acquire_all(b, keys, KEYSET_MAX, NULL, NULL));
	cr_assert_eq(all_rows(&world), KEYSET_MAX);
	expect(OK, b, bizlock_release_all(b, keys, KEYSET_MAX, NULL));
	cr_assert_eq(all_rows(&world), 0);
}

/* ---- arguments --------------------------------------------------------------- */

Test(sets, the_number_of_keys_has_limits)
{
	bizlock *b = client(NULL);
	struct keyset s;

	keyset_make(&s, KEYSET_MAX + 1, "k");
	expect(INVALID, b, keyset_acquire(b, &s));
	expect_message(b, "256");
	s.n = 0;
	expect(INVALID, b, keyset_acquire(b, &s));
	cr_assert(bizlock_errmsg(b)[0]);
	expect(INVALID, b, bizlock_acquire_all(b, NULL, 2, NULL, NULL));
	cr_assert(bizlock_errmsg(b)[0]);
	s.n = KEYSET_MAX + 1;
	expect_not_granted(&s);
	cr_assert_eq(all_rows(&world), 0);
}

Test(sets, a_key_may_not_come_twice)
{
	bizlock *b = client(NULL);
	struct keyset s;
	char copy[24];

	keyset_make(&s, 30, "k");
	for (size_t i = 0; i < 29; i += 7) {
		/* The keys' bytes count, not their addresses. */
		snprintf(copy, sizeof(copy), "%s", s.ids[i]);
		s.keys[29].biz_id = copy;
		expect(INVALID, b, keyset_acquire(b, &s));
		cr_assert(bizlock_errmsg(b)[0]);
		expect_not_granted(&s);
	}
	/* A key that is given twice is refused even if it is held already. */
	expect(OK, b, acquire(b, copy));
	expect(INVALID, b, keyset_acquire(b, &s));
	cr_assert_eq(all_rows(&world), 1);
	cr_assert_eq(row_of(&world, KEY(copy)).depth, 1);
}

Test(sets, one_bad_key_spoils_the_set)
{
	static const bizlock_key bad[] = {{"test", ""},   {"", "id"},       {NULL, "id"},
	                                  {"test", NULL}, {"test", "\xff"}, {"\xc3", "id"}};
	bizlock *b = client(NULL);
	struct keyset s;

	keyset_make(&s, 3, "k");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		s.keys[i % 3] = bad[i];
		expect(INVALID, b, keyset_acquire(b, &s));
		cr_assert(bizlock_errmsg(b)[0]);
		keyset_make(&s, 3, "k");
	}
	cr_assert_eq(all_rows(&world), 0);
	expect(OK, b, keyset_acquire(b, &s));
	s.keys[1].biz_id = "";
	expect(INVALID, b, keyset_release(b, &s, NULL));
	cr_assert_eq(all_rows(&world), 3);
}

Test(sets, options_are_checked)
{
	bizlock *b = client(NULL);
	struct keyset s;

	keyset_make(&s, 3, "k");
	expect(INVALID, b, keyset_acquire(b, &s, .wait_ms = -2));
	expect(INVALID, b, keyset_acquire(b, &s, .lease_ms = BIZLOCK_LEASE_MIN_MS - 1));
	expect(INVALID, b, keyset_acquire(b, &s, .owner = "with space"));
	s.grants[0].size = 1;
	expect(INVALID, b, keyset_acquire(b, &s));
	cr_assert_eq(all_rows(&world), 0);
	cr_assert_eq(bizlock_acquire_all(NULL, s.keys, 3, NULL, NULL), BIZLOCK_INVALID);
	cr_assert_eq(bizlock_release_all(NULL, s.keys, 3, NULL), BIZLOCK_INVALID);
}

/* ---- or none ------------------------------------------------------------------ */

static void one_is_held_by_another(const char *queue, size_t which)
{
	bizlock *a = client(NULL), *b = client(OPTIONS("queue", queue));
	const char *before;
	struct keyset s;

	keyset_make(&s, 16, "k");
	expect(OK, a, acquire_as(a, s.ids[which], "the-holder"));
	before = row_text(s.ids[which]);
	expect(BUSY, b, keyset_acquire(b, &s));
	expect_message(b, "the-holder@");
	expect_message(b, s.ids[which]);
	expect_message(b, "lease ends in ");
	expect_not_granted(&s);
	cr_assert_eq(all_rows(&world), 1, "rows of the others are left");
	cr_assert_str_eq(row_text(s.ids[which]), before);
	expect_none(b, &s, NULL);
	expect(OK, a, bizlock_release(a, s.keys[which], "the-holder", NULL));
	expect(OK, b, keyset_acquire(b, &s));
	expect(OK, b, keyset_release(b, &s, NULL));
}

Test(sets, one_key_that_is_held_denies_them_all)
{
	one_is_held_by_another("auto", 0);
	one_is_held_by_another("auto", 7);
	one_is_held_by_another("auto", 15);
}

Test(sets, without_the_queue_as_well)
{
	deadlocks_may_happen();
	one_is_held_by_another("off", 0);
	one_is_held_by_another("off", 7);
	one_is_held_by_another("off", 15);
}

/* Threads of one client line up for each key, in memory. */
Test(sets, another_owner_of_the_same_client_is_another)
{
	bizlock *b = client(NULL);
	struct keyset s, one;

	keyset_make(&s, 4, "k");
	keyset_make(&one, 2, "k");
	expect(OK, b, keyset_acquire(b, &one, .owner = "task-1"));
	expect(BUSY, b, keyset_acquire(b, &s, .owner = "task-2"));
	expect_message(b, "task-1@");
	cr_assert_eq(all_rows(&world), 2);
	expect_held(b, &one, "task-1", 1);
	expect(OK, b, keyset_release(b, &one, "task-1"));
	expect(OK, b, keyset_acquire(b, &s, .owner = "task-2"));
	expect_held(b, &s, "task-2", 1);
}

/* ---- takeover ----------------------------------------------------------------- */

static void some_are_stale(const char *queue)
{
	bizlock *a = client(OPTIONS("queue", queue)), *b = client(OPTIONS("queue", queue));
	struct keyset s;

	keyset_make(&s, 6, queue);
	expect(OK, a, acquire(a, s.ids[1], .lease_ms = 150, .wait_ms = -1));
	expect(OK, a, acquire(a, s.ids[4], .lease_ms = 150, .wait_ms = -1));
	lease_is_over(s.ids[1]);
	lease_is_over(s.ids[4]);
	keyset_reverse(&s);
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
	for (size_t i = 0; i < s.n; i++) {
		bool taken = s.keys[i].biz_id == s.ids[1] || s.keys[i].biz_id == s.ids[4];

		cr_assert_eq(s.grants[i].flags, taken ? BIZLOCK_TOOK_OVER : 0, "%s",
		             s.keys[i].biz_id);
	}
	expect_held(b, &s, NULL, 1);
	expect(LOST, a, bizlock_release(a, KEY(s.ids[1]), NULL, NULL));
	expect_held(b, &s, NULL, 1);
	expect(OK, b, keyset_release(b, &s, NULL));
	expect_free(&s);
}

Test(sets, only_what_was_stale_was_taken_over)
{
	some_are_stale("auto");
}

Test(sets, only_what_was_stale_was_taken_over_without_the_queue)
{
	deadlocks_may_happen();
	some_are_stale("off");
}

/* The failed set must leave the stale hold in the table, so that the next holder is told of it. */
Test(sets, a_set_that_fails_takes_nothing_over)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct keyset s;

	keyset_make(&s, 3, "k");
	expect(OK, a, acquire(a, s.ids[0], .lease_ms = 150, .wait_ms = -1));
	expect(OK, a, acquire(a, s.ids[2], .lease_ms = LEASE_MS));
	lease_is_over(s.ids[0]);
	expect(BUSY, b, keyset_acquire(b, &s));
	expect(OK, b, acquire(b, s.ids[0], .grant = &grant));
	cr_assert_eq(grant.flags, BIZLOCK_TOOK_OVER);
}
