/* Requests that wait: woken, in line with threads, cancelled, too late. */
#include "cr_ask.h"

#include <stdio.h>

TestSuite(asking_waits, .init = world_begin, .fini = world_end, .timeout = 240);

#define N 8

static bizlock *holder(const char *id)
{
	bizlock *b = client(NULL);

	expect(OK, b, acquire_as(b, id, "holder"));
	return b;
}

Test(asking_waits, a_release_of_another_client_wakes_it)
{
	bizlock *other = holder("k"), *b = client(NULL);
	struct ask a;

	ask_for(&a, b, "k", "task", .wait_ms = -1);
	dispatch_until(b, watchers(&world) == 1);
	cr_assert_eq(a.calls, 0);
	expect(OK, other, bizlock_release(other, KEY("k"), "holder", NULL));
	ask_ends(OK, &a);
	cr_assert_eq(a.grant.flags, 0);
}

/* As when the connections of the holder have all the doorbells that they may have. Three packets at
 * the most: the release, the question whom to wake, and KILL QUERY if the watcher sleeps just then.
 */
Test(asking_waits, so_does_one_that_has_no_doorbell)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *other = client_through(p, OPTIONS("max_connections", "1")), *b = client(NULL);
	bizlock_acquire_opts opts = OPTS(.owner = "holder", .flags = BIZLOCK_NO_QUEUE);
	struct ask a;
	unsigned before;

	expect(OK, other, bizlock_acquire(other, KEY("k"), &opts, NULL));
	ask_for(&a, b, "k", "task", .wait_ms = -1);
	dispatch_until(b, watchers(&world) == 1);
	before = proxy_packets(p);
	expect(OK, other, bizlock_release(other, KEY("k"), "holder", NULL));
	cr_assert_leq(proxy_packets(p) - before, 3);
	ask_ends(OK, &a);
}

/* The watcher has one name for both, and the first one does not take it along. */
Test(asking_waits, the_next_one_is_woken_where_the_first_gave_up)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *other = client_through(p, OPTIONS("max_connections", "1")), *b = client(NULL);
	struct ask first, next;
	unsigned before;

	/* After this its statements are prepared. */
	works(other);
	works(other);
	expect(OK, other, acquire_as(other, "k", "holder"));
	ask_for(&first, b, "k", "first", .wait_ms = -1);
	dispatch_until(b, watchers(&world) == 1);
	ask_for(&next, b, "k", "next", .wait_ms = -1);
	ask_cancel(&first);
	ask_ends(CANCELLED, &first);
	steadily((dispatch_once(b), next.calls == 0), 500);
	eventually(watchers(&world) == 1);
	before = proxy_packets(p);
	expect(OK, other, bizlock_release(other, KEY("k"), "holder", NULL));
	cr_assert_eq(proxy_packets(p) - before, 3);
	ask_ends(OK, &next);
	proxy_stop(p);
}

/* A poll would be 20 packets a second or more. */
Test(asking_waits, nobody_polls_meanwhile)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	struct ask a;
	unsigned before;

	(void)holder("k");
	ask_for(&a, b, "k", "task", .wait_ms = -1);
	dispatch_until(b, watchers(&world) == 1);
	before = proxy_packets(p);
	steadily(a.calls == 0, 3000);
	cr_assert_lt(proxy_packets(p) - before, 30);
	ask_cancel(&a);
	ask_ends(CANCELLED, &a);
	proxy_stop(p);
}

Test(asking_waits, the_end_of_a_lease_ends_the_wait)
{
	bizlock *other = client(NULL), *b = client(NULL);
	struct ask a;

	expect(OK, other, acquire(other, "k", .lease_ms = 1500, .owner = "holder"));
	ask_for(&a, b, "k", "task", .wait_ms = -1);
	ask_ends(OK, &a);
	cr_assert_eq(a.grant.flags, BIZLOCK_TOOK_OVER);
}

Test(asking_waits, a_wait_ends_in_time)
{
	bizlock *b = client(NULL);
	int64_t began = now_ms();
	struct ask a;

	(void)holder("k");
	ask_for(&a, b, "k", "task", .wait_ms = 700);
	ask_ends(TIMEOUT, &a);
	cr_assert_geq(now_ms() - began, 700);
	cr_assert(strstr(a.errmsg, "held by holder@"), "%s", a.errmsg);
	cr_assert_eq(row_of(&world, KEY("k")).depth, 1);
}

Test(asking_waits, deadlines_are_kept_in_any_order)
{
	bizlock *b = client(NULL);
	struct ask asks[N];

	(void)holder("k");
	for (int i = 0; i < N; i++) {
		char owner[16];

		snprintf(owner, sizeof(owner), "task-%d", i);
		ask_for(&asks[i], b, "k", owner, .wait_ms = 200 + 400 * ((i * 5) % N));
	}
	for (int i = 0; i < N; i++)
		ask_ends(TIMEOUT, &asks[i]);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			if ((i * 5) % N < (j * 5) % N)
				cr_assert_lt(asks[i].turn, asks[j].turn);
}

Test(asking_waits, requests_for_one_key_are_served_in_order)
{
	bizlock *other = holder("k"), *b = client(NULL);
	struct ask asks[N];

	for (int i = 0; i < N; i++) {
		char owner[16];

		snprintf(owner, sizeof(owner), "task-%d", i);
		ask_for(&asks[i], b, "k", owner, .wait_ms = -1);
	}
	dispatch_until(b, watchers(&world) == 1);
	expect(OK, other, bizlock_release(other, KEY("k"), "holder", NULL));
	for (int i = 0; i < N; i++) {
		ask_ends(OK, &asks[i]);
		for (int j = i + 1; j < N; j++)
			cr_assert_eq(asks[j].calls, 0);
		ask_release(&asks[i]);
		ask_ends(OK, &asks[i]);
		if (i > 0)
			cr_assert_gt(asks[i].grant.fence, asks[i - 1].grant.fence);
	}
	cr_assert_not(row_of(&world, KEY("k")).there);
}

/* A thread holds it, a request and a thread wait for it, of one client. */
Test(asking_waits, threads_and_requests_stand_in_one_line)
{
	bizlock *b = client(NULL);
	struct ask first, last;
	struct call between;

	expect(OK, b, acquire_as(b, "k", "holder"));
	ask_for(&first, b, "k", "first", .wait_ms = -1);
	steadily(first.calls == 0, 300);
	call_start(&between, b, "k", .wait_ms = -1, .owner = "between");
	call_blocks(&between);
	ask_for(&last, b, "k", "last", .wait_ms = -1);
	expect(OK, b, bizlock_release(b, KEY("k"), "holder", NULL));
	ask_ends(OK, &first);
	cr_assert_not(atomic_load(&between.done));
	ask_release(&first);
	ask_ends(OK, &first);
	cr_assert_eq(call_join(&between), BIZLOCK_OK, "%s", between.errmsg);
	cr_assert_eq(last.calls, 0);
	expect(OK, b, bizlock_release(b, KEY("k"), "between", NULL));
	ask_ends(OK, &last);
}

/* The holder, an owner of the same client, does not know that it has lost the lock. */
Test(asking_waits, a_broken_lock_is_granted)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct ask a;

	expect(OK, b, acquire_as(b, "k", "holder"));
	ask_for(&a, b, "k", "task", .wait_ms = -1);
	dispatch_until(b, watchers(&world) == 1);
	expect(OK, other, bizlock_break(other, KEY("k"), row_of(&world, KEY("k")).fence));
	ask_ends(OK, &a);
	expect(LOST, b, bizlock_release(b, KEY("k"), "holder", NULL));
}

/* A lock that rests after its release is not held until the end of the lease. */
Test(asking_waits, a_lock_that_rests_is_waited_for)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_acquire_opts opts =
	        OPTS(.owner = "holder", .lease_ms = 20 * PATIENCE_MS, .min_hold_ms = 3000);
	struct ask a;

	expect(OK, other, bizlock_acquire(other, KEY("k"), &opts, NULL));
	ask_for(&a, b, "k", "task", .wait_ms = -1);
	dispatch_until(b, watchers(&world) == 1);
	expect(OK, other, bizlock_release(other, KEY("k"), "holder", NULL));
	cr_assert_eq(a.calls, 0);
	ask_ends(OK, &a);
	cr_assert_eq(a.grant.flags, 0);
}

/* ---- cancelled ------------------------------------------------------------------------------ */

Test(asking_waits, a_wait_can_be_cancelled)
{
	bizlock *other = holder("k"), *b = client(NULL);
	struct ask a;

	ask_for(&a, b, "k", "task", .wait_ms = -1);
	dispatch_until(b, watchers(&world) == 1);
	ask_cancel(&a);
	ask_ends(CANCELLED, &a);
	expect(OK, other, bizlock_release(other, KEY("k"), "holder", NULL));
	steadily(!row_of(&world, KEY("k")).there, 300);
}

/* At whatever moment it is cancelled: it is held, or nothing is left of it. */
Test(asking_waits, a_cancel_leaves_nothing_behind)
{
	bizlock *b = client(NULL);
	struct ask a;

	for (int i = 0; i < 200; i++) {
		int64_t end = now_ms() + PATIENCE_MS;

		ask_for(&a, b, "k", "task", .wait_ms = -1);
		for (int spin = 0; spin < i * 2000; spin++)
			atomic_signal_fence(memory_order_seq_cst);
		ask_cancel(&a);
		dispatch_until(b, a.calls == 1);
		if (a.rc == BIZLOCK_OK) {
			ask_release(&a);
			ask_ends(OK, &a);
		} else {
			cr_assert_eq(a.rc, BIZLOCK_CANCELLED, "%s", a.errmsg);
		}
		while (row_of(&world, KEY("k")).there)
			cr_assert(pause_before(end));
	}
}

Test(asking_waits, what_is_done_can_be_cancelled_in_vain)
{
	bizlock *b = client(NULL);
	struct ask a;

	ask_once(&a, b, "k", "task");
	eventually(is_readable(b));
	ask_cancel(&a);
	ask_ends(OK, &a);
	cr_assert(row_of(&world, KEY("k")).there);
}

/* Its number is nobody else's, so that whoever comes later is not hit. */
Test(asking_waits, one_that_has_ended_can_be_cancelled)
{
	bizlock *other = holder("k"), *b = client(NULL);
	struct ask ended, waits;

	ask_once(&ended, b, "free", "task");
	ask_ends(OK, &ended);
	ask_for(&waits, b, "k", "task", .wait_ms = -1);
	cr_assert_neq(waits.request, ended.request);
	dispatch_until(b, watchers(&world) == 1);
	for (int i = 0; i < 3; i++)
		ask_cancel(&ended);
	steadily(!is_readable(b), 300);
	cr_assert(row_of(&world, KEY("free")).there);
	expect(OK, other, bizlock_release(other, KEY("k"), "holder", NULL));
	ask_ends(OK, &waits);
}

Test(asking_waits, a_release_goes_on_although_it_is_cancelled)
{
	bizlock *b = client(NULL);
	struct ask a;

	ask_once(&a, b, "k", "task");
	ask_ends(OK, &a);
	ask_release(&a);
	ask_cancel(&a);
	ask_ends(OK, &a);
	cr_assert(no_row(&world, KEY("k")));
}

Test(asking_waits, a_number_that_nobody_has_is_refused)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct ask a;

	expect(INVALID, b, bizlock_cancel(b, 0));
	expect(INVALID, b, bizlock_cancel(b, 1));
	expect_message(b, "request is 1");
	ask_once(&a, b, "k", "task");
	expect(INVALID, b, bizlock_cancel(b, a.request + 1));
	expect(INVALID, other, bizlock_cancel(other, a.request));
	ask_ends(OK, &a);
}

Test(asking_waits, the_first_in_line_makes_way)
{
	bizlock *other = holder("k"), *b = client(NULL);
	struct ask first, second;

	ask_for(&first, b, "k", "first", .wait_ms = -1);
	ask_for(&second, b, "k", "second", .wait_ms = -1);
	dispatch_until(b, watchers(&world) == 1);
	ask_cancel(&first);
	ask_ends(CANCELLED, &first);
	cr_assert_eq(second.calls, 0);
	expect(OK, other, bizlock_release(other, KEY("k"), "holder", NULL));
	ask_ends(OK, &second);
}

Test(asking_waits, an_interrupt_cancels_all)
{
	bizlock *b = client(NULL);
	struct ask asks[2];

	(void)holder("k");
	ask_for(&asks[0], b, "k", "first", .wait_ms = -1);
	ask_for(&asks[1], b, "k", "second", .wait_ms = -1);
	dispatch_until(b, watchers(&world) == 1);
	bizlock_interrupt(b);
	ask_ends(CANCELLED, &asks[0]);
	ask_ends(CANCELLED, &asks[1]);
	ask_for(&asks[0], b, "free", "first", .wait_ms = -1);
	ask_ends(OK, &asks[0]);
}
