/* Each number moves when its event happens, and only then. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_numbers.h"
#include "cr_test.h"

TestSuite(stats, .init = world_begin, .fini = world_end, .timeout = 240);

/* ---- a lock's life ------------------------------------------------------------- */

Test(stats, a_new_client_has_counted_nothing)
{
	bizlock *b = client(NULL);
	bizlock_numbers zero = BIZLOCK_NUMBERS_INIT;

	expect_moved(b, &zero, "");
	cr_assert_eq(zero.wait_us, 0);
}

Test(stats, acquire_and_release)
{
	bizlock *b = client(NULL);
	bizlock_numbers n = numbers_of(b);

	expect(OK, b, acquire(b, "k"));
	expect_moved(b, &n, "held+1 acquired+1 waits+1");
	expect(OK, b, bizlock_renew(b, KEY("k"), NULL, 0));
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	expect_moved(b, &n, "");
	expect(OK, b, acquire(b, "other", .wait_ms = -1));
	expect_moved(b, &n, "held+1 acquired+1 waits+1");
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect_moved(b, &n, "held-1 released+1");
	expect(NOT_OWNER, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect_moved(b, &n, "");
}

static void enter_and_leave(uint32_t flags)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_numbers n;

	opts.flags = BIZLOCK_NO_RENEW | flags;
	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	n = numbers_of(b);
	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	expect_moved(b, &n, "reentered+1");
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect_moved(b, &n, "");
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect_moved(b, &n, "held-1 released+1");
}

Test(stats, reentries)
{
	enter_and_leave(0);
}

Test(stats, local_reentries)
{
	enter_and_leave(BIZLOCK_LOCAL_REENTRY);
}

Test(stats, clients_count_apart)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_numbers n = numbers_of(b);

	works(a);
	expect_moved(b, &n, "");
}

/* ---- not obtained -------------------------------------------------------------- */

Test(stats, busy_and_timeout)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_numbers n = numbers_of(b);

	expect(OK, a, acquire_as(a, "k", "holder"));
	expect(BUSY, b, acquire(b, "k"));
	expect_moved(b, &n, "busy+1");
	expect(TIMEOUT, b, acquire(b, "k", .wait_ms = 100));
	expect_moved(b, &n, "timed_out+1");
	expect(INVALID, b, acquire(b, ""));
	expect(OK, a, bizlock_release(a, KEY("k"), "holder", NULL));
	expect_moved(b, &n, "");
}

/* The connection that waited at the doorbell was given up, not lost. */
Test(stats, cancelled_waits)
{
	bizlock *a = client(NULL), *b = client(OPTIONS("max_connections", "2"));
	bizlock_numbers n = numbers_of(b);
	struct call call;

	expect(OK, a, acquire_as(a, "k", "holder"));
	for (int i = 0; i < 2; i++) {
		call_start(&call, b, "k", .wait_ms = -1, .owner = "task-1");
		/* The server may still show the connection before this one at the doorbell. */
		call_blocks(&call);
		eventually(doorbell_waiters(&world) >= 1);
		bizlock_interrupt(b);
		cr_assert_eq(call_join(&call), BIZLOCK_CANCELLED, "%s", call.errmsg);
		expect_moved(b, &n, "cancelled+1");
	}
}

Test(stats, outcomes_that_stay_unknown)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b =
	        client_through(p, OPTIONS("io_timeout_ms", "1000", "connect_timeout_ms", "1000"));
	bizlock_numbers n;

	works(b);
	works(b); /* the next acquisition is one packet */
	n = numbers_of(b);
	proxy_hold_replies(p, true);
	expect(UNKNOWN, b, acquire(b, "k"));
	expect_moved(b, &n, "unknown+1 retried_lost+1");
	proxy_hold_replies(p, false);
	proxy_stop(p);
}

/* ---- lost and taken over --------------------------------------------------------- */

Test(stats, a_takeover_and_what_is_lost_by_it)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_numbers na, nb = numbers_of(b);

	expect(OK, a, acquire(a, "k", .lease_ms = 200, .wait_ms = -1));
	expect(OK, a, acquire(a, "k", .lease_ms = 200, .wait_ms = -1));
	lease_is_over("k");
	eventually(numbers_of(a).lost == 1);
	na = numbers_of(a);
	cr_assert_eq(na.held, 0, "a lease that is over is not held");
	expect(OK, b, acquire(b, "k"));
	expect_moved(b, &nb, "held+1 acquired+1 taken_over+1 waits+1");
	expect(LOST, a, bizlock_verify(a, KEY("k"), NULL));
	expect(LOST, a, bizlock_verify(a, KEY("k"), NULL));
	expect(LOST, a, bizlock_renew(a, KEY("k"), NULL, 0));
	expect(LOST, a, acquire(a, "k"));
	expect(LOST, a, bizlock_release(a, KEY("k"), NULL, NULL));
	expect(LOST, a, bizlock_release(a, KEY("k"), NULL, NULL));
	expect_moved(a, &na, "");
}

Test(stats, a_hold_that_release_finds_lost)
{
	bizlock *a = client(NULL);
	bizlock_numbers n;

	expect(OK, a, acquire(a, "k"));
	n = numbers_of(a);
	db_run(world.admin, "DELETE FROM biz_lock");
	expect_moved(a, &n, "");
	expect(LOST, a, bizlock_release(a, KEY("k"), NULL, NULL));
	expect_moved(a, &n, "held-1 lost+1");
}

/* ---- how long it took -------------------------------------------------------------- */

Test(stats, a_wait_is_measured)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_numbers n;
	struct call call;
	int64_t start = now_ms();
	uint64_t waited_us = 0, long_waits = 0;

	expect(OK, a, acquire_as(a, "k", "holder"));
	call_start(&call, b, "k", .wait_ms = -1, .owner = "task-1");
	eventually(doorbell_waiters(&world) == 1);
	steadily(!atomic_load(&call.done), 550);
	expect(OK, a, bizlock_release(a, KEY("k"), "holder", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	waited_us = numbers_of(b).wait_us;
	cr_assert_geq(waited_us, 550 * 1000);
	cr_assert_leq(waited_us, (uint64_t)(now_ms() - start + 1) * 1000);
	n = numbers_of(b);
	for (int i = 9; i < BIZLOCK_WAIT_BUCKETS; i++) /* more than 500 ms */
		long_waits += n.waits[i];
	cr_assert_eq(long_waits, 1);
	cr_assert_eq(waits_of(&n), 1);
}

#define CREW 4

struct crew {
	bizlock *b;
	unsigned number;
	pthread_t thread;
};

static void *work(void *arg)
{
	const struct crew *c = arg;
	char owner[16];

	snprintf(owner, sizeof(owner), "task-%u", c->number);
	for (int i = 0; i < 50; i++) {
		if (acquire_as(c->b, "k", owner, .wait_ms = -1) != BIZLOCK_OK ||
		    bizlock_release(c->b, KEY("k"), owner, NULL) != BIZLOCK_OK)
			die("%s", bizlock_errmsg(c->b));
		/* An owner may hold before the one before it has heard that its release was
		 * done. */
		if (numbers_of(c->b).held > CREW)
			die("more is held than there are owners");
	}
	return NULL;
}

Test(stats, threads_are_counted_together)
{
	struct crew crew[CREW];
	bizlock *b = client(NULL);
	bizlock_numbers n = numbers_of(b);

	for (unsigned i = 0; i < CREW; i++) {
		crew[i] = (struct crew){.b = b, .number = i};
		if (pthread_create(&crew[i].thread, NULL, work, &crew[i]) != 0)
			die("no thread");
	}
	for (int i = 0; i < CREW; i++)
		pthread_join(crew[i].thread, NULL);
	expect_moved(b, &n, "acquired+200 released+200 waits+200");
}
