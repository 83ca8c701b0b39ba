/* Threads that are cancelled in the library: the call goes on to its end, and nobody else is the
 * worse for it. */
#define _GNU_SOURCE 1
#include <time.h>

#include "cr_test.h"

TestSuite(cancelling, .init = world_begin, .fini = world_end, .timeout = 240);

#define LONG_MS 600000

/* Dies if the thread does not end. */
static void *ended(pthread_t thread)
{
	struct timespec end;
	void *ret;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += PATIENCE_MS / 1000;
	if (pthread_timedjoin_np(thread, &ret, &end) != 0)
		die("a thread that was cancelled does not end");
	return ret;
}

Test(cancelling, a_waiter_that_is_cancelled_waits_on_and_stops_nobody)
{
	bizlock *a = client(NULL), *b = client_open(&world, NULL);
	struct call call;

	expect(OK, a, acquire(a, "held", .lease_ms = LONG_MS));
	call_start(&call, b, "held", .wait_ms = -1, .owner = "task");
	call_blocks(&call);
	cr_assert_eq(pthread_cancel(call.thread), 0);
	works(b);
	steadily(!atomic_load(&call.done), 500);
	bizlock_interrupt(b);
	ended(call.thread);
	cr_assert_eq(call.rc, BIZLOCK_CANCELLED);
	works(b);
	expect(OK, a, bizlock_release(a, KEY("held"), NULL, NULL));
	expect(OK, b, acquire(b, "held"));
	bizlock_close(b);
}

/* AddressSanitizer forgets to clear what it knows of the frame that a cancelled thread leaves, and
 * then complains about its own end of the thread. So it is to know nothing of this frame. */
__attribute__((no_sanitize_address)) static void *works_on(void *arg)
{
	bizlock_acquire_opts opts = OPTS(.wait_ms = -1, .lease_ms = LONG_MS);
	bizlock *b = arg;

	for (;;) {
		if (bizlock_acquire(b, KEY("k"), &opts, NULL) == BIZLOCK_OK &&
		    bizlock_release(b, KEY("k"), NULL, NULL) != BIZLOCK_OK)
			die("%s", bizlock_errmsg(b));
		pthread_testcancel();
	}
	return NULL;
}

Test(cancelling, threads_that_are_cancelled_at_work_hold_up_no_close)
{
	enum { THREADS = 8 };
	bizlock *b = client_open(&world, NULL);
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, works_on, b) != 0)
			die("no thread");
	for (int i = 0; i < THREADS; i++) {
		pause_ms(30);
		pthread_cancel(threads[i]);
		cr_assert_eq(ended(threads[i]), PTHREAD_CANCELED);
	}
	works(b);
	bizlock_close(b);
}

static int state_now(void)
{
	int state, ignored;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_setcancelstate(state, &ignored);
	return state;
}

/* Whatever a call answers, the thread may be cancelled afterwards as before. */
Test(cancelling, is_as_it_was_after_each_call)
{
	static const int states[] = {PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_DISABLE};

	for (int i = 0; i < 2; i++) {
		int ignored;
		bizlock *b = NULL;

		pthread_setcancelstate(states[i], &ignored);
		cr_assert_eq(bizlock_new(&b), BIZLOCK_OK);
		cr_assert_eq(bizlock_acquire(b, KEY("k"), NULL, NULL), BIZLOCK_MISUSE);
		cr_assert_eq(state_now(), states[i]);
		bizlock_close(b);
		b = client_open(&world, NULL);
		cr_assert_eq(state_now(), states[i]);
		works(b);
		cr_assert_eq(bizlock_acquire(b, (bizlock_key){"", ""}, NULL, NULL),
		             BIZLOCK_INVALID);
		cr_assert_eq(bizlock_open(b), BIZLOCK_MISUSE);
		bizlock_interrupt(b);
		cr_assert_eq(state_now(), states[i]);
		bizlock_close(b);
		bizlock_close(NULL);
		cr_assert_eq(state_now(), states[i]);
	}
}
