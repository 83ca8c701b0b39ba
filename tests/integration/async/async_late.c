/* Nobody dispatches for a while: what is done is told late, and what it tells is still right. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "cr_ask.h"

TestSuite(async_late, .init = world_begin, .fini = world_end, .timeout = 240);

#define N 50

static struct ask asks[N];

static long long rows(void)
{
	return db_number(world.admin,
	                 "SELECT COUNT(*) FROM biz_lock WHERE timeout > UTC_TIMESTAMP(6)");
}

static void ask_many(bizlock *b, uint32_t lease_ms, uint32_t flags)
{
	for (int i = 0; i < N; i++) {
		char id[16];

		snprintf(id, sizeof(id), "k-%d", i);
		ask_for(&asks[i], b, id, "task", .wait_ms = -1, .lease_ms = lease_ms,
		        .flags = flags);
	}
}

static int told(void)
{
	int n = 0;

	for (int i = 0; i < N; i++)
		n += asks[i].calls;
	return n;
}

Test(async_late, locks_are_renewed_meanwhile)
{
	enum { LEASE_MS = 6000 };
	bizlock *b = client(NULL);
	unsigned calls = 0;

	ask_many(b, LEASE_MS, 0);
	eventually(rows() == N);
	steadily(rows() == N, LEASE_MS + 1000);
	cr_assert_eq(told(), 0);
	for (unsigned all = 0; all < N; all += calls) {
		cr_assert(is_readable(b));
		expect(OK, b, bizlock_dispatch(b, &calls));
	}
	cr_assert_eq(told(), N);
	for (int i = 0; i < N; i++) {
		cr_assert_eq(asks[i].rc, BIZLOCK_OK, "%s", asks[i].errmsg);
		cr_assert_gt(bizlock_left_ms(b, KEY(asks[i].id), "task"), 0);
	}
}

static void note_loss(void *arg, bizlock_key key, uint64_t fence)
{
	unsigned long i = strtoul(key.biz_id + 2, NULL, 10);

	cr_assert_eq(asks[i].calls, 1, "a loss was told before the grant");
	cr_assert_eq(asks[i].grant.fence, fence);
	++*(int *)arg;
}

/* In a loop that changes one of them by way of a callback, which clang does not see. */
static bool are_equal(const int *a, const int *b)
{
	return *a == *b;
}

/* Each is told as it is: lost, or granted and then lost. Nobody is left with a lock that it takes
 * for its own. */
Test(async_late, leases_that_are_over_by_then)
{
	bizlock *b = client(NULL), *other = client(NULL);
	int granted = 0, lost = 0;

	expect(OK, b, bizlock_on_lost(b, note_loss, &lost));
	cr_assert_geq(bizlock_fd(b), 0);
	ask_many(b, 1000, BIZLOCK_NO_RENEW);
	eventually(is_readable(b));
	eventually(locks_there(&world) == N && rows() == 0);
	for (int i = 0; i < N; i++)
		expect(OK, other, acquire_as(other, asks[i].id, "other", .wait_ms = -1));
	dispatch_until(b, told() == N);
	for (int i = 0; i < N; i++) {
		granted += asks[i].rc == BIZLOCK_OK;
		cr_assert(asks[i].rc == BIZLOCK_OK || asks[i].rc == BIZLOCK_LOST, "%s",
		          asks[i].errmsg);
		cr_assert_leq(bizlock_left_ms(b, KEY(asks[i].id), "task"), 0);
	}
	dispatch_until(b, are_equal(&lost, &granted));
	for (int i = 0; i < N; i++)
		expect(OK, other, bizlock_release(other, KEY(asks[i].id), "other", NULL));
}

/* What was granted before stays granted, or is given back: never both, never neither. */
Test(async_late, a_cancel_after_the_grant)
{
	bizlock *b = client(NULL);
	int granted = 0;

	ask_many(b, 0, 0);
	eventually(rows() == N);
	for (int i = 0; i < N; i++)
		ask_cancel(&asks[i]);
	dispatch_until(b, told() == N);
	for (int i = 0; i < N; i++) {
		cr_assert(asks[i].rc == BIZLOCK_OK || asks[i].rc == BIZLOCK_CANCELLED, "%s",
		          asks[i].errmsg);
		granted += asks[i].rc == BIZLOCK_OK;
		if (asks[i].rc == BIZLOCK_OK)
			expect(OK, b, bizlock_verify(b, KEY(asks[i].id), "task"));
	}
	eventually(rows() == granted);
}

Test(async_late, deadlines_are_kept_and_told)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct ask a;

	expect(OK, other, acquire_as(other, "k", "other"));
	ask_for(&a, b, "k", "task", .wait_ms = 300);
	eventually(is_readable(b));
	expect(OK, other, bizlock_release(other, KEY("k"), "other", NULL));
	steadily(rows() == 0, 500);
	ask_ends(TIMEOUT, &a);
}

static void *closes(void *b)
{
	bizlock_close(b);
	return NULL;
}

/* The thread that closes calls what nobody has dispatched. */
Test(async_late, another_thread_closes)
{
	for (int round = 0; round < 10; round++) {
		bizlock *b = client_open(&world, NULL);
		pthread_t thread;

		ask_many(b, 0, 0);
		if (round % 2)
			eventually(rows() > 4 * round);
		cr_assert_eq(pthread_create(&thread, NULL, closes, b), 0);
		pthread_join(thread, NULL);
		cr_assert_eq(told(), N);
		for (int i = 0; i < N; i++) {
			cr_assert_eq(asks[i].calls, 1);
			cr_assert_eq(asks[i].rc, BIZLOCK_CANCELLED, "%s", asks[i].errmsg);
			cr_assert(pthread_equal(asks[i].by, thread));
		}
		cr_assert_eq(rows(), 0);
	}
}

/* ---- a hold that another call is at work on -------------------------------------------------- */

static atomic_bool renewed;

static void *renew_task(void *b)
{
	expect(OK, b, bizlock_renew(b, KEY("k"), "task", 600000));
	atomic_store(&renewed, true);
	return NULL;
}

/* The time of the request is over at once, and it has to wait until the renewal is answered. */
Test(async_late, a_reentry_keeps_nobody_waiting_meanwhile)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	pthread_t renewer;
	unsigned packets;
	struct ask a;

	expect(OK, b, acquire_as(b, "k", "task"));
	packets = proxy_packets(p);
	proxy_hold_replies(p, true);
	cr_assert_eq(pthread_create(&renewer, NULL, renew_task, b), 0);
	eventually(proxy_packets(p) > packets);
	ask_for(&a, b, "k", "task", .wait_ms = 1);
	steadily(bizlock_left_ms(b, KEY("k"), "task") > 0 && !atomic_load(&renewed), 500);
	proxy_hold_replies(p, false);
	pthread_join(renewer, NULL);
	ask_ends(OK, &a);
	cr_assert_eq(a.grant.depth, 2);
	proxy_stop(p);
}
