/* bizlock_interrupt() and bizlock_close() while threads wait. */
#define _GNU_SOURCE 1
#include <signal.h>

#include "cr_keyset.h"
#include "cr_test.h"

TestSuite(interrupt, .init = world_begin, .fini = world_end, .timeout = 240);

/* A holder of "k". Of the threads of a process that wait, the first waits at the doorbell, and the
 * others behind it, in memory. */
static void occupy(void)
{
	bizlock *a = client(NULL);

	expect(OK, a, acquire_as(a, "k", "holder"));
}

static void interrupted(bizlock *b, long long doorbells)
{
	struct call call;

	call_start(&call, b, "k", .wait_ms = -1, .owner = "task-1");
	call_blocks(&call);
	eventually(doorbell_waiters(&world) == doorbells);
	bizlock_interrupt(b);
	cr_assert_eq(call_join(&call), BIZLOCK_CANCELLED, "%s", call.errmsg);
}

Test(interrupt, wakes_a_waiter_at_the_doorbell)
{
	occupy();
	interrupted(client(NULL), 1);
}

Test(interrupt, wakes_a_waiter_that_polls)
{
	occupy();
	interrupted(client(OPTIONS("queue", "off")), 0);
}

Test(interrupt, wakes_a_waiter_whose_holder_is_in_the_same_process)
{
	bizlock *b = client(NULL);

	expect(OK, b, acquire_as(b, "k", "holder"));
	interrupted(b, 1);
}

/* One that waits for another call of its owner, whose statement gets no answer. */
Test(interrupt, wakes_who_waits_for_another_call_of_its_owner)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("renew", "off"));
	struct call calls[2];

	expect(OK, b, acquire_as(b, "k", "task-1"));
	proxy_hold_replies(p, true);
	for (int i = 0; i < 2; i++) {
		call_start(&calls[i], b, "k", .wait_ms = -1, .owner = "task-1");
		call_blocks(&calls[i]);
	}
	bizlock_interrupt(b);
	cr_assert_eq(call_join(&calls[1]), BIZLOCK_CANCELLED, "%s", calls[1].errmsg);
	cr_assert(!atomic_load(&calls[0].done));
	proxy_hold_replies(p, false);
	call_join(&calls[0]);
	proxy_stop(p);
}

Test(interrupt, wakes_all_waiters)
{
	bizlock *b = client(NULL);
	struct call calls[4];

	occupy();
	expect(OK, b, acquire_as(b, "other", "holder"));
	call_start(&calls[0], b, "k", .wait_ms = -1, .owner = "task-0");
	eventually(doorbell_waiters(&world) == 1);
	call_start(&calls[1], b, "k", .wait_ms = 60000, .owner = "task-1");
	call_start(&calls[2], b, "other", .wait_ms = -1, .owner = "task-2");
	call_start(&calls[3], b, "other", .wait_ms = -1, .owner = "task-3");
	for (int i = 0; i < 4; i++)
		call_blocks(&calls[i]);
	bizlock_interrupt(b);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(call_join(&calls[i]), BIZLOCK_CANCELLED, "%s", calls[i].errmsg);
}

Test(interrupt, does_not_reach_calls_that_start_later)
{
	bizlock *a = client(NULL), *b = client(NULL);
	struct call call;

	expect(OK, a, acquire_as(a, "k", "holder"));
	bizlock_interrupt(b);
	interrupted(b, 1);
	call_start(&call, b, "k", .wait_ms = -1, .owner = "task-2");
	call_blocks(&call);
	steadily(!atomic_load(&call.done), 300);
	expect(OK, a, bizlock_release(a, KEY("k"), "holder", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
}

Test(interrupt, leaves_what_is_held_alone)
{
	bizlock *b = client(NULL);

	expect(OK, b, acquire(b, "k"));
	bizlock_interrupt(b);
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

static bizlock *target;

static void on_signal(int sig)
{
	(void)sig;
	bizlock_interrupt(target);
}

Test(interrupt, may_be_called_by_a_signal_handler)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct call call;

	occupy();
	target = client(NULL);
	sigaction(SIGUSR1, &action, NULL);
	call_start(&call, target, "k", .wait_ms = -1, .owner = "task-1");
	eventually(doorbell_waiters(&world) == 1);
	pthread_kill(call.thread, SIGUSR1); /* the thread that waits */
	cr_assert_eq(call_join(&call), BIZLOCK_CANCELLED, "%s", call.errmsg);
}

/* A signal that does not concern bizlock must not end a wait. */
static void do_nothing(int sig)
{
	(void)sig;
}

Test(interrupt, a_foreign_signal_does_not_end_a_wait)
{
	struct sigaction action = {.sa_handler = do_nothing};
	bizlock *a = client(NULL), *b = client(NULL);
	struct call call;

	expect(OK, a, acquire_as(a, "k", "holder"));
	sigaction(SIGUSR1, &action, NULL);
	call_start(&call, b, "k", .wait_ms = -1, .owner = "task-1");
	eventually(doorbell_waiters(&world) == 1);
	for (int i = 0; i < 10; i++) {
		pthread_kill(call.thread, SIGUSR1);
		steadily(!atomic_load(&call.done), 20);
	}
	expect(OK, a, bizlock_release(a, KEY("k"), "holder", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
}

Test(interrupt, close_ends_the_waits_of_other_threads)
{
	bizlock *b = client_open(&world, NULL);
	struct call calls[3];

	occupy();
	expect(OK, b, acquire_as(b, "other", "holder"));
	call_start(&calls[0], b, "k", .wait_ms = -1, .owner = "task-0");
	eventually(doorbell_waiters(&world) == 1);
	call_start(&calls[1], b, "k", .wait_ms = -1, .owner = "task-1");
	call_start(&calls[2], b, "other", .wait_ms = -1, .owner = "task-2");
	for (int i = 0; i < 3; i++)
		call_blocks(&calls[i]);
	bizlock_close(b);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(call_join(&calls[i]), BIZLOCK_CANCELLED);
}

Test(interrupt, close_ends_the_wait_of_a_thread_that_polls)
{
	bizlock *b = client_open(&world, OPTIONS("queue", "off"));
	struct call call;

	occupy();
	call_start(&call, b, "k", .wait_ms = -1, .owner = "task-0");
	call_blocks(&call);
	bizlock_close(b);
	cr_assert_eq(call_join(&call), BIZLOCK_CANCELLED);
}

Test(interrupt, close_releases_every_level)
{
	bizlock *b = client_open(&world, NULL), *stranger = client(NULL);

	for (int i = 0; i < 3; i++)
		expect(OK, b, acquire(b, "k", .lease_ms = 60000));
	expect(OK, b, acquire_as(b, "other", "task-1"));
	bizlock_close(b);
	cr_assert(!row_of(&world, KEY("k")).there);
	cr_assert(!row_of(&world, KEY("other")).there);
	works(stranger);
}

Test(interrupt, close_does_not_release_where_it_is_told_not_to)
{
	bizlock *b = client_open(&world, OPTIONS("release_on_close", "off"));
	bizlock *stranger = client(NULL);

	expect(OK, b, acquire(b, "k", .lease_ms = 60000));
	bizlock_close(b);
	cr_assert(row_of(&world, KEY("k")).there);
	expect(BUSY, stranger, acquire(stranger, "k"));
}

/* ---- while the server is away --------------------------------------------------- */

static void interrupted_without_a_server(bizlock *b, struct call *call)
{
	steadily(!atomic_load(&call->done), 300);
	bizlock_interrupt(b);
	cr_assert_eq(call_join(call), BIZLOCK_CANCELLED, "%s", call->errmsg);
}

Test(interrupt, ends_the_wait_of_a_set_whose_server_is_away)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	struct keyset s;
	struct call call;

	keyset_make(&s, 2, "k");
	s.keys[0].biz_id = "k";
	occupy();
	call_start_all(&call, b, &s, .wait_ms = -1, .owner = "task-1");
	call_blocks(&call);
	proxy_stop(p);
	interrupted_without_a_server(b, &call);
}

Test(interrupt, ends_a_reentry_whose_server_is_away)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	struct call call;

	expect(OK, b, acquire_as(b, "k", "task-1"));
	proxy_stop(p);
	call_start(&call, b, "k", .wait_ms = -1, .owner = "task-1");
	interrupted_without_a_server(b, &call);
}
