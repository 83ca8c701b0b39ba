/* The end of a client with requests, and losses that a dispatch tells. */
#include "cr_ask.h"
#include "cr_numbers.h"
#include "losses.h"

#include <stdio.h>

TestSuite(asking_ends, .init = world_begin, .fini = world_end, .timeout = 240);

#define N 200

Test(asking_ends, a_close_answers_what_waits)
{
	bizlock *other = client(NULL), *b = client_open(&world, NULL);
	struct ask first, second;

	expect(OK, other, acquire_as(other, "k", "other"));
	ask_for(&first, b, "k", "first", .wait_ms = -1);
	ask_for(&second, b, "k", "second", .wait_ms = -1);
	bizlock_close(b);
	cr_assert_eq(first.calls, 1);
	cr_assert_eq(first.rc, BIZLOCK_CANCELLED);
	cr_assert_eq(second.calls, 1);
	cr_assert_eq(second.rc, BIZLOCK_CANCELLED);
	cr_assert(pthread_equal(second.by, pthread_self()));
}

/* Nobody was told of it, so nobody works under it: whatever the option says. */
static void close_before_a_dispatch(const char *release_on_close)
{
	bizlock *b = client_open(&world, OPTIONS("release_on_close", release_on_close));
	struct ask a;

	ask_once(&a, b, "k", "task");
	eventually(row_of(&world, KEY("k")).there);
	bizlock_close(b);
	cr_assert_eq(a.calls, 1);
	cr_assert_eq(a.rc, BIZLOCK_CANCELLED);
	cr_assert_not(row_of(&world, KEY("k")).there);
}

Test(asking_ends, what_was_not_told_is_given_back)
{
	close_before_a_dispatch("on");
	close_before_a_dispatch("off");
}

/* In the middle of everything. A close takes no longer than io_timeout_ms, and leaves what it could
 * not give back by then; a busy machine takes its time. */
Test(asking_ends, a_close_comes_at_any_moment)
{
	static struct ask asks[N];

	for (int round = 0; round < 10; round++) {
		bizlock *b = client_open(&world, OPTIONS("io_timeout_ms", "60000"));
		bool granted[N];
		int all = 0;

		for (int i = 0; i < N; i++) {
			char id[16];

			snprintf(id, sizeof(id), "k-%d", i / 2);
			ask_for(&asks[i], b, id, i % 2 ? "odd" : "even", .wait_ms = -1);
		}
		for (int i = 0; i < round; i++)
			dispatch_once(b);
		for (int i = 0; i < N; i++) {
			granted[i] = asks[i].calls == 1 && i % 4 == 0;
			if (granted[i])
				ask_release(&asks[i]);
		}
		bizlock_close(b);
		for (int i = 0; i < N; i++)
			all += asks[i].calls;
		cr_assert_eq(all, N);
		cr_assert_eq(locks_there(&world), 0);
	}
}

static bizlock *closing;
static int refused;

static void starts_more(void *arg, const bizlock_result *result)
{
	bizlock_acquire_opts opts = OPTS(.owner = "task");

	(void)arg;
	cr_assert_eq(result->rc, BIZLOCK_CANCELLED);
	cr_assert_neq(result->message[0], '\0');
	refused = bizlock_acquire_start(closing, KEY("k"), &opts, starts_more, NULL, NULL);
	expect(MISUSE, closing,
	       bizlock_release_start(closing, KEY("k"), "t", starts_more, NULL, NULL));
	expect(MISUSE, closing, bizlock_cancel(closing, result->request));
}

Test(asking_ends, nothing_is_started_in_a_close)
{
	bizlock *other = client(NULL);
	bizlock_acquire_opts opts = OPTS(.owner = "task", .wait_ms = -1);

	closing = client_open(&world, NULL);
	expect(OK, other, acquire_as(other, "k", "other"));
	expect(OK, closing,
	       bizlock_acquire_start(closing, KEY("k"), &opts, starts_more, NULL, NULL));
	bizlock_close(closing);
	cr_assert_eq(refused, BIZLOCK_MISUSE);
}

/* ---- losses ---------------------------------------------------------------------------------- */

static pthread_t told_by;
static int told;

static void note_loss(void *arg, bizlock_key key, uint64_t fence)
{
	struct ask *a = arg;

	cr_assert_str_eq(key.biz_id, "k");
	cr_assert_eq(fence, a->grant.fence);
	told_by = pthread_self();
	told++;
	expect(LOST, a->b, bizlock_release(a->b, KEY("k"), a->owner, NULL));
}

Test(asking_ends, a_dispatch_tells_losses)
{
	bizlock *b = client(NULL);
	unsigned calls = 0;
	struct ask a;

	cr_assert_geq(bizlock_fd(b), 0);
	expect(OK, b, bizlock_on_lost(b, note_loss, &a));
	ask_for(&a, b, "k", "task", .lease_ms = 1000, .flags = BIZLOCK_NO_RENEW);
	ask_ends(OK, &a);
	eventually(is_readable(b));
	steadily(told == 0, 200);
	expect(OK, b, bizlock_dispatch(b, &calls));
	cr_assert_eq(calls, 1);
	cr_assert_eq(told, 1);
	cr_assert(pthread_equal(told_by, pthread_self()));
	cr_assert_not(is_readable(b));
	expect(OK, b, bizlock_dispatch(b, &calls));
	cr_assert_eq(calls, 0);
}

/* Told the other way round, a program would work under a lock whose only notice has passed. Nobody
 * has asked for the descriptor, so a thread of the client's tells losses. */
Test(asking_ends, a_loss_is_told_behind_its_grant)
{
	static struct losses lost;
	bizlock *b = client(NULL);
	struct ask a;

	losses_watch(&lost, b);
	ask_for(&a, b, "k", "task", .lease_ms = 300, .flags = BIZLOCK_NO_RENEW);
	eventually(numbers_of(b).lost == 1);
	steadily(atomic_load(&lost.count) == 0, 200);
	expect(OK, b, bizlock_dispatch(b, NULL));
	cr_assert_eq(a.calls, 1);
	cr_assert_eq(a.rc, BIZLOCK_OK);
	eventually(atomic_load(&lost.count) == 1);
	cr_assert_eq(lost.list[0].fence, a.grant.fence);
	expect(LOST, b, bizlock_release(b, KEY("k"), "task", NULL));
}
