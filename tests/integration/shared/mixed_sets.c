/* Sets of keys, which are had alone, beside those that share one of the keys. */
#define _GNU_SOURCE 1
#include "cr_keyset.h"
#include "cr_shared.h"

TestSuite(mixed_sets, .init = world_begin, .fini = world_end, .timeout = 240);

#define N 5
/* On a busy machine; polls that have become slow would take much longer. */
#define SOON_MS 5000

static int take(bizlock *b, const char *id, const char *owner, uint32_t flags, bizlock_grant *ret)
{
	return bizlock_acquire(b, KEY(id),
	                       &OPTS(.flags = flags, .owner = owner, .lease_ms = LEASE_MS), ret);
}

static int give(bizlock *b, const char *id, const char *owner)
{
	return bizlock_release(b, KEY(id), owner, NULL);
}

static void expect_larger_fence(const struct keyset *s, size_t i, const bizlock_grant *earlier)
{
	cr_assert_gt(s->grants[i].fence, earlier->fence, "%s", s->ids[i]);
}

Test(mixed_sets, one_waits_until_the_last_sharer_has_left)
{
	bizlock *a = client(NULL), *b = client(NULL), *other = client(NULL);
	bizlock_grant r[3] = {BIZLOCK_GRANT_INIT, BIZLOCK_GRANT_INIT, BIZLOCK_GRANT_INIT};
	struct keyset s;
	struct call call;
	int64_t released;

	keyset_make(&s, N, "k");
	expect(OK, a, take(a, s.ids[1], "r0", S, &r[0]));
	expect(OK, other, take(other, s.ids[1], "r1", S, &r[1]));
	expect(OK, a, take(a, s.ids[3], "r2", S, &r[2]));
	call_start_all(&call, b, &s, .wait_ms = -1, .owner = "waiter");
	call_blocks(&call);
	expect(OK, a, give(a, s.ids[1], "r0"));
	steadily(!atomic_load(&call.done), 200);
	expect(OK, a, give(a, s.ids[3], "r2"));
	steadily(!atomic_load(&call.done), 200);
	released = now_ms();
	expect(OK, other, give(other, s.ids[1], "r1"));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_lt(call.ended - released, SOON_MS);
	expect_granted(&s, 0);
	expect_larger_fence(&s, 1, &r[0]);
	expect_larger_fence(&s, 1, &r[1]);
	expect_larger_fence(&s, 3, &r[2]);
	expect_held(b, &s, "waiter", 1);
	expect(BUSY, a, take(a, s.ids[1], "r0", S, NULL));
	expect(OK, b, keyset_release(b, &s, "waiter"));
	cr_assert_eq(rows(), 0);
}

Test(mixed_sets, one_whose_time_is_up_names_a_sharer_and_leaves_nothing)
{
	bizlock *a = client(NULL), *b = client(NULL), *other = client(NULL);
	struct keyset s;

	keyset_make(&s, N, "k");
	expect(OK, a, take(a, s.ids[2], "sharer", S, NULL));
	for (int64_t wait_ms = 1; wait_ms < 1000; wait_ms += 600) {
		int64_t start = now_ms();

		expect(TIMEOUT, b, keyset_acquire(b, &s, .wait_ms = wait_ms, .owner = "waiter"));
		cr_assert_geq(now_ms() - start, wait_ms);
		expect_message(b, "held by sharer@");
		expect_message(b, s.ids[2]);
		expect_not_granted(&s);
		cr_assert_eq(rows(), 1, "something is left behind");
		expect_none(b, &s, "waiter");
		expect(OK, other, take(other, s.ids[2], "other", S, NULL));
		expect(OK, other, give(other, s.ids[2], "other"));
		expect(OK, a, bizlock_verify(a, s.keys[2], "sharer"));
	}
	expect(OK, a, give(a, s.ids[2], "sharer"));
	expect(OK, b, keyset_acquire(b, &s, .owner = "waiter"));
	expect_granted(&s, 0);
}

/* The one that shares one of them keeps nobody from the others, and neither does the set. */
Test(mixed_sets, its_other_keys_are_had_meanwhile_in_both_ways)
{
	bizlock *a = client(NULL), *b = client(NULL), *other = client(NULL);
	struct keyset s;
	struct call call;

	keyset_make(&s, N, "k");
	expect(OK, a, take(a, s.ids[2], "sharer", S, NULL));
	call_start_all(&call, b, &s, .wait_ms = -1, .owner = "waiter");
	call_blocks(&call);
	for (size_t i = 0; i < 4 * N; i++) {
		bizlock_acquire_opts opts = OPTS(.flags = i / N % 2 ? X : S, .owner = "other",
		                                 .wait_ms = SOON_MS, .lease_ms = LEASE_MS);

		if (i % N == 2)
			continue;
		expect(OK, other, bizlock_acquire(other, s.keys[i % N], &opts, NULL));
		expect(OK, other, give(other, s.ids[i % N], "other"));
	}
	cr_assert_not(atomic_load(&call.done), "%s", call.errmsg);
	expect(OK, a, give(a, s.ids[2], "sharer"));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	expect_held(b, &s, "waiter", 1);
	expect(OK, b, keyset_release(b, &s, "waiter"));
}

Test(mixed_sets, sharers_wait_for_one)
{
	bizlock *a = client(NULL), *b = client(NULL);
	struct keyset s;
	struct call calls[2];

	keyset_make(&s, N, "k");
	s.keys[3] = KEY("k");
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS, .owner = "holder"));
	wait_as(&calls[0], a, "r0", S, 0);
	wait_as(&calls[1], a, "r1", S, 2);
	call_blocks(&calls[0]);
	call_blocks(&calls[1]);
	steadily(!atomic_load(&calls[0].done) && !atomic_load(&calls[1].done), 200);
	expect(OK, b, keyset_release(b, &s, "holder"));
	for (int i = 0; i < 2; i++) {
		expect_got(&calls[i]);
		cr_assert_gt(calls[i].grant.fence, s.grants[3].fence);
		cr_assert_gt(calls[i].grant.slot, 0);
	}
	expect(BUSY, b, keyset_acquire(b, &s, .owner = "holder"));
	expect_message(b, "held by r");
}

/* An owner has a key in one way at a time. */
Test(mixed_sets, one_that_has_a_key_that_its_owner_shares_is_misuse)
{
	bizlock *b = client(NULL);
	struct keyset s;

	keyset_make(&s, N, "k");
	expect(OK, b, take(b, s.ids[4], "both", S, NULL));
	expect(MISUSE, b, keyset_acquire(b, &s, .wait_ms = -1, .owner = "both"));
	expect_not_granted(&s);
	eventually(rows() == 1); /* the others are given back in the background */
	expect(OK, b, bizlock_verify(b, s.keys[4], "both"));
	expect(OK, b, give(b, s.ids[4], "both"));
	expect(OK, b, keyset_acquire(b, &s, .owner = "both"));
	expect_held(b, &s, "both", 1);
}
