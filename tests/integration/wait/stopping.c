/* bizlock_stop(): nothing new is acquired while it is on, and all else works. */
#define _GNU_SOURCE 1
#include <signal.h>

#include "cr_ask.h"
#include "cr_keyset.h"
#include "cr_test.h"

TestSuite(stopping, .init = world_begin, .fini = world_end, .timeout = 240);

static void occupy(uint32_t flags)
{
	bizlock *a = client(NULL);
	bizlock_acquire_opts opts = OPTS(.owner = "holder", .flags = flags);

	expect(OK, a, bizlock_acquire(a, KEY("k"), &opts, NULL));
}

static void ends_at_once(bizlock *b, bizlock_acquire_opts opts)
{
	opts.wait_ms = -1;
	opts.owner = "waiter";
	expect(CANCELLED, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	opts.wait_ms = 20 * PATIENCE_MS;
	expect(CANCELLED, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
}

Test(stopping, no_wait_begins)
{
	bizlock *b = client(NULL), *polls = client(OPTIONS("queue", "off"));

	occupy(0);
	bizlock_stop(b, 1);
	bizlock_stop(polls, 1);
	ends_at_once(b, OPTS(.flags = 0));
	ends_at_once(b, OPTS(.flags = BIZLOCK_NO_QUEUE));
	ends_at_once(polls, OPTS(.flags = 0));
}

Test(stopping, no_wait_for_a_shared_lock_begins)
{
	bizlock *b = client(NULL);

	occupy(0);
	bizlock_stop(b, 1);
	ends_at_once(b, OPTS(.flags = BIZLOCK_SHARED));
	ends_at_once(b, OPTS(.flags = BIZLOCK_SHARED, .limit = 2));
}

Test(stopping, no_wait_for_sharers_begins)
{
	bizlock *b = client(NULL);

	occupy(BIZLOCK_SHARED);
	bizlock_stop(b, 1);
	ends_at_once(b, OPTS(.flags = 0));
	ends_at_once(b, OPTS(.flags = BIZLOCK_NO_QUEUE));
}

Test(stopping, no_wait_for_a_set_or_for_the_same_process_begins)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = OPTS(.wait_ms = -1);
	struct keyset s;

	keyset_make(&s, 4, "k");
	s.keys[2].biz_id = "k";
	expect(OK, b, acquire_as(b, "k", "holder"));
	bizlock_stop(b, 1);
	expect(CANCELLED, b, bizlock_acquire_all(b, s.keys, s.n, &opts, NULL));
	ends_at_once(b, OPTS(.flags = 0));
	cr_assert_eq(all_rows(&world), 1);
}

/* A loop over locks that are free comes to its end, too. */
Test(stopping, nothing_new_is_taken)
{
	bizlock *b = client(NULL);

	bizlock_stop(b, 1);
	ends_at_once(b, OPTS(.flags = 0));
	ends_at_once(b, OPTS(.flags = BIZLOCK_SHARED));
	cr_assert_eq(all_rows(&world), 0);
}

Test(stopping, waits_end)
{
	bizlock *b = client(NULL);
	struct call calls[3];

	occupy(0);
	for (int i = 0; i < 3; i++) {
		call_start(&calls[i], b, "k", .wait_ms = -1, .owner = i ? "b" : "a");
		if (i < 2)
			call_blocks(&calls[i]);
	}
	bizlock_stop(b, 1);
	for (int i = 0; i < 3; i++) {
		int rc = call_join(&calls[i]);

		cr_assert(rc == BIZLOCK_CANCELLED, "%s", calls[i].errmsg);
	}
}

Test(stopping, all_else_works)
{
	bizlock *b = client(NULL);

	expect(OK, b, acquire_renewed(b, "held", .lease_ms = 1000));
	bizlock_stop(b, 1);
	expect(OK, b, acquire(b, "held", .wait_ms = -1));
	expect(OK, b, bizlock_renew(b, KEY("held"), NULL, 0));
	expect(OK, b, bizlock_verify(b, KEY("held"), NULL));
	steadily(bizlock_left_ms(b, KEY("held"), NULL) > 0, 2500);
	expect(OK, b, bizlock_release(b, KEY("held"), NULL, NULL));
	expect(OK, b, bizlock_release(b, KEY("held"), NULL, NULL));
	expect(CANCELLED, b, acquire(b, "free"));
}

Test(stopping, can_be_taken_back)
{
	bizlock *a = client(NULL), *b = client(NULL);
	struct call call;

	expect(OK, a, acquire_as(a, "k", "holder"));
	bizlock_stop(b, 1);
	ends_at_once(b, OPTS(.flags = 0));
	bizlock_stop(b, 0);
	call_start(&call, b, "k", .wait_ms = -1, .owner = "task");
	call_blocks(&call);
	steadily(!atomic_load(&call.done), 300);
	expect(OK, a, bizlock_release(a, KEY("k"), "holder", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
}

Test(stopping, may_come_before_the_client_is_open)
{
	bizlock *b;

	occupy(0);
	b = client_new(&world, NULL);
	bizlock_stop(NULL, 1);
	bizlock_stop(b, 1);
	expect(OK, b, bizlock_open(b));
	ends_at_once(b, OPTS(.flags = 0));
	bizlock_close(b);
}

static bizlock *target;

static void on_signal(int sig)
{
	(void)sig;
	bizlock_stop(target, 1);
}

/* The signal comes just before the wait, which an interrupt would not reach. */
Test(stopping, a_signal_just_before_the_wait_is_not_lost)
{
	struct sigaction action = {.sa_handler = on_signal};

	occupy(0);
	target = client(NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	ends_at_once(target, OPTS(.flags = 0));
}

Test(stopping, requests_wait_no_more)
{
	bizlock *b = client(NULL);
	struct ask a;

	occupy(0);
	bizlock_stop(b, 1);
	ask_for(&a, b, "k", "asks", .wait_ms = -1);
	ask_ends(CANCELLED, &a);
	ask_for(&a, b, "k", "asks", .wait_ms = -1, .flags = BIZLOCK_NO_QUEUE);
	ask_ends(CANCELLED, &a);
	ask_for(&a, b, "free", "asks", .wait_ms = -1);
	ask_ends(CANCELLED, &a);
	bizlock_stop(b, 0);
	ask_for(&a, b, "free", "asks", .wait_ms = -1);
	ask_ends(OK, &a);
	bizlock_stop(b, 1);
	ask_release(&a);
	ask_ends(OK, &a);
}
