/* A set that waits for all of its keys, and holds none of them meanwhile. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_keyset.h"
#include "cr_test.h"

TestSuite(sets_wait, .init = world_begin, .fini = world_end, .timeout = 240);

#define N 6
#define LEASE_MS 60000
/* "A second or so" on a busy machine; polls and leases would take much longer. */
#define SOON_MS 5000

/* ---- until time is up ------------------------------------------------------- */

static void times_out(bizlock *b, struct keyset *s, int64_t wait_ms, size_t which)
{
	int64_t start = now_ms(), took;

	expect(TIMEOUT, b, keyset_acquire(b, s, .wait_ms = wait_ms, .owner = "task-2"));
	took = now_ms() - start;
	cr_assert(took >= wait_ms && took < wait_ms + SOON_MS, "%lld ms of %lld", (long long)took,
	          (long long)wait_ms);
	expect_message(b, row_of(&world, s->keys[which]).owner);
	expect_message(b, s->ids[which]);
	expect_not_granted(s);
	cr_assert_eq(rows(), 1, "something is left behind");
	expect_none(b, s, "task-2");
}

static void time_is_up(bizlock *a, bizlock *b)
{
	static const size_t held[] = {0, N / 2, N - 1};
	struct keyset s;

	keyset_make(&s, N, "k");
	for (int i = 0; i < 3; i++) {
		expect(OK, a, acquire_as(a, s.ids[held[i]], "task-1"));
		times_out(b, &s, 1, held[i]);
		times_out(b, &s, 600, held[i]);
		expect(OK, a, bizlock_release(a, s.keys[held[i]], "task-1", NULL));
	}
	expect(OK, b, keyset_acquire(b, &s, .wait_ms = 5000, .owner = "task-2"));
	expect(OK, b, keyset_release(b, &s, "task-2"));
}

Test(sets_wait, it_times_out_with_nothing_left)
{
	time_is_up(client(NULL), client(NULL));
}

Test(sets_wait, it_times_out_behind_another_owner_of_the_client)
{
	bizlock *b = client(NULL);

	time_is_up(b, b);
}

Test(sets_wait, it_times_out_without_the_queue)
{
	deadlocks_may_happen();
	time_is_up(client(NULL), client(OPTIONS("queue", "off")));
}

/* If a waiting set held the other keys, sets could wait for each other in a circle. */
static void waits_empty_handed(const char *queue)
{
	bizlock *a = client(NULL), *b = client(OPTIONS("queue", queue)), *c = client(NULL);
	struct keyset s;
	struct call call;

	keyset_make(&s, N, "k");
	expect(OK, a, acquire_as(a, s.ids[3], "holder"));
	call_start_all(&call, b, &s, .wait_ms = -1, .owner = "waiter");
	call_blocks(&call);
	steadily(rows() == 1 && !atomic_load(&call.done), 300);
	for (int round = 0; round < 5; round++)
		for (size_t i = 0; i < s.n; i++) {
			if (i == 3)
				continue;
			expect(OK, c,
			       acquire(c, s.ids[i], .wait_ms = SOON_MS, .lease_ms = LEASE_MS));
			expect(OK, c, bizlock_release(c, s.keys[i], NULL, NULL));
		}
	cr_assert(!atomic_load(&call.done));
	expect(OK, a, bizlock_release(a, s.keys[3], "holder", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	expect_held(b, &s, "waiter", 1);
	expect(OK, b, keyset_release(b, &s, "waiter"));
}

Test(sets_wait, it_holds_nothing_while_it_waits)
{
	waits_empty_handed("auto");
}

Test(sets_wait, it_holds_nothing_while_it_waits_without_the_queue)
{
	deadlocks_may_happen();
	waits_empty_handed("off");
}

/* ---- until they are free ------------------------------------------------------ */

/* When a releases `held`, b must get the set. */
static void obtained_soon(bizlock *a, bizlock *b, struct keyset *s, const struct keyset *held)
{
	struct call call;
	int64_t released;

	call_start_all(&call, b, s, .wait_ms = -1, .owner = "waiter");
	call_blocks(&call);
	steadily(!atomic_load(&call.done), 300);
	released = now_ms();
	expect(OK, a, keyset_release(a, held, "holder"));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_lt(call.ended - released, SOON_MS, "woken after %lld ms",
	             (long long)(call.ended - released));
	expect_granted(s, 0);
	expect_held(b, s, "waiter", 1);
	expect(OK, b, keyset_release(b, s, "waiter"));
	cr_assert_eq(all_rows(&world), 0);
}

static void woken(bizlock *a, bizlock *b)
{
	static const size_t sizes[] = {1, 3, N};
	struct keyset s, held;

	for (int i = 0; i < 3; i++) {
		keyset_make(&s, N, "k");
		keyset_reverse(&s);
		keyset_make(&held, sizes[i], "k");
		expect(OK, a,
		       keyset_acquire(a, &held, .lease_ms = 20 * PATIENCE_MS, .owner = "holder"));
		obtained_soon(a, b, &s, &held);
	}
}

Test(sets_wait, a_release_wakes_it)
{
	woken(client(NULL), client(NULL));
}

Test(sets_wait, a_release_by_the_same_client_wakes_it)
{
	bizlock *b = client(NULL);

	woken(b, b);
}

Test(sets_wait, it_polls_without_the_queue)
{
	deadlocks_may_happen();
	woken(client(OPTIONS("queue", "off")), client(OPTIONS("queue", "off")));
}

/* A client that polls must notice one that does not, and the other way round. */
Test(sets_wait, those_with_the_queue_and_those_without_mix)
{
	deadlocks_may_happen();
	woken(client(NULL), client(OPTIONS("queue", "off")));
	woken(client(OPTIONS("queue", "off")), client(NULL));
}

Test(sets_wait, the_last_of_several_holders_lets_it_in)
{
	static const char *const names[] = {"a", "b", "c"};
	bizlock *a = client(NULL), *b = client(NULL);
	struct keyset s;
	struct call call;

	keyset_make(&s, N, "k");
	for (int i = 0; i < 3; i++)
		expect(OK, a, acquire_as(a, s.ids[2 * i], names[i]));
	call_start_all(&call, b, &s, .wait_ms = -1, .owner = "waiter");
	for (int i = 0; i < 3; i++) {
		call_blocks(&call);
		expect(OK, a, bizlock_release(a, s.keys[2 * i], names[i], NULL));
	}
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	expect_held(b, &s, "waiter", 1);
}

/* Each waiter is woken, whichever key it waits for. */
Test(sets_wait, giving_a_set_back_wakes_the_waiters_of_each_key)
{
	enum { WAITERS = 4 };
	static const char *const names[WAITERS] = {"w-0", "w-1", "w-2", "w-3"};
	bizlock *a = client(NULL), *b = client(NULL);
	struct call calls[WAITERS];
	struct keyset s;
	int64_t released;

	keyset_make(&s, WAITERS, "k");
	expect(OK, a, keyset_acquire(a, &s, .lease_ms = 20 * PATIENCE_MS));
	for (int i = 0; i < WAITERS; i++) {
		call_start(&calls[i], b, s.ids[i], .wait_ms = -1, .owner = names[i]);
		call_blocks(&calls[i]);
	}
	released = now_ms();
	expect(OK, a, keyset_release(a, &s, NULL));
	for (int i = 0; i < WAITERS; i++) {
		cr_assert_eq(call_join(&calls[i]), BIZLOCK_OK, "%s", calls[i].errmsg);
		cr_assert_lt(calls[i].ended - released, SOON_MS, "%d: %lld ms", i,
		             (long long)(calls[i].ended - released));
		expect(OK, b, bizlock_release(b, s.keys[i], names[i], NULL));
	}
}

Test(sets_wait, what_a_dead_holder_had_is_taken_over_when_its_lease_ends)
{
	bizlock *a = client(NULL), *b = client(NULL);
	struct keyset s;

	keyset_make(&s, N, "k");
	expect(OK, a, acquire(a, s.ids[2], .lease_ms = 1500));
	expect(OK, b, keyset_acquire(b, &s, .wait_ms = -1, .lease_ms = LEASE_MS));
	for (size_t i = 0; i < s.n; i++)
		cr_assert_eq(s.grants[i].flags, i == 2 ? BIZLOCK_TOOK_OVER : 0, "%s", s.ids[i]);
	expect_held(b, &s, NULL, 1);
	expect(LOST, a, bizlock_verify(a, s.keys[2], NULL));
}

/* A key that was held before the wait is renewed during the wait. */
Test(sets_wait, a_level_it_has_already_outlives_the_wait)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	struct keyset s;
	struct call call;
	long long end;

	keyset_make(&s, 3, "k");
	opts.lease_ms = 4000;
	opts.owner = "waiter";
	expect(OK, b, bizlock_acquire(b, s.keys[0], &opts, NULL));
	end = row_of(&world, s.keys[0]).timeout_us;
	expect(OK, a, acquire_as(a, s.ids[1], "holder"));
	call_start_all(&call, b, &s, .wait_ms = -1, .owner = "waiter");
	eventually(row_of(&world, s.keys[0]).timeout_us > end + 4000 * 1000);
	cr_assert(!atomic_load(&call.done), "%s", call.errmsg);
	expect(OK, a, bizlock_release(a, s.keys[1], "holder", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_eq(s.grants[0].depth, 2);
	expect(OK, b, bizlock_verify(b, s.keys[0], "waiter"));
}

static void use(void *arg)
{
	struct call *c = arg;

	c->rc = bizlock_verify(c->b, c->key, "waiter");
	if (c->rc == BIZLOCK_OK)
		c->rc = bizlock_renew(c->b, c->key, "waiter", LEASE_MS);
	c->ended = now_ms();
}

/* Another thread works for the same owner. */
Test(sets_wait, a_level_it_has_already_is_of_use_during_the_wait)
{
	bizlock *a = client(NULL), *b = client(NULL);
	struct keyset s;
	struct call call, other = {.b = b, .key = KEY("k-000")};
	int64_t start;

	keyset_make(&s, 3, "k");
	expect(OK, b, acquire_as(b, s.ids[0], "waiter"));
	expect(OK, a, acquire_as(a, s.ids[1], "holder"));
	call_start_all(&call, b, &s, .wait_ms = -1, .owner = "waiter");
	call_blocks(&call);
	start = now_ms();
	in_another_thread(use, &other);
	cr_assert_eq(other.rc, BIZLOCK_OK, "%s", bizlock_err_name(other.rc));
	cr_assert_lt(other.ended - start, SOON_MS);
	expect(OK, a, bizlock_release(a, s.keys[1], "holder", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
}

/* ---- until it is interrupted ---------------------------------------------------- */

static void interrupted(const char *queue)
{
	bizlock *a = client(NULL), *b = client(OPTIONS("queue", queue));
	struct keyset s;
	struct call call;

	keyset_make(&s, N, "k");
	expect(OK, a, acquire_as(a, s.ids[4], "holder"));
	expect(OK, b, acquire_as(b, s.ids[1], "waiter"));
	call_start_all(&call, b, &s, .wait_ms = -1, .owner = "waiter");
	call_blocks(&call);
	bizlock_interrupt(b);
	cr_assert_eq(call_join(&call), BIZLOCK_CANCELLED, "%s", call.errmsg);
	expect_not_granted(&s);
	cr_assert_eq(rows(), 2, "something is left behind");
	cr_assert_eq(row_of(&world, s.keys[1]).depth, 1);
	expect(OK, b, bizlock_release(b, s.keys[1], "waiter", NULL));
	expect(OK, a, bizlock_release(a, s.keys[4], "holder", NULL));
	expect_none(b, &s, "waiter");
	expect(OK, b, keyset_acquire(b, &s, .wait_ms = SOON_MS, .owner = "waiter"));
	expect(OK, b, keyset_release(b, &s, "waiter"));
}

Test(sets_wait, an_interrupt_ends_it_and_leaves_nothing)
{
	interrupted("auto");
}

Test(sets_wait, an_interrupt_ends_its_polls_and_leaves_nothing)
{
	deadlocks_may_happen();
	interrupted("off");
}

Test(sets_wait, an_interrupt_ends_it_in_line_behind_another_thread)
{
	bizlock *b = client(NULL);
	struct keyset s;
	struct call call;

	keyset_make(&s, N, "k");
	expect(OK, b, acquire_as(b, s.ids[2], "holder"));
	call_start_all(&call, b, &s, .wait_ms = -1, .owner = "waiter");
	call_blocks(&call);
	bizlock_interrupt(b);
	cr_assert_eq(call_join(&call), BIZLOCK_CANCELLED, "%s", call.errmsg);
	cr_assert_eq(rows(), 1);
	expect(OK, b, bizlock_release(b, s.keys[2], "holder", NULL));
}

Test(sets_wait, closing_the_client_ends_it)
{
	bizlock *a = client(NULL), *b = client_open(&world, NULL);
	struct keyset s;
	struct call call;

	keyset_make(&s, N, "k");
	expect(OK, a, acquire_as(a, s.ids[2], "holder"));
	call_start_all(&call, b, &s, .wait_ms = -1, .owner = "waiter");
	call_blocks(&call);
	bizlock_close(b);
	cr_assert_eq(call_join(&call), BIZLOCK_CANCELLED);
	cr_assert_eq(rows(), 1);
}
