/* HAProxy in front of a server: nothing is missing behind it, and its timeouts cost no lock. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_behind.h"

static struct between haproxy;

static void end_between(void)
{
	between_end(&haproxy);
	world_end();
}

TestSuite(haproxy, .init = world_begin, .fini = end_between, .timeout = 240);

static void begin_with(const char *idle)
{
	need_haproxy();
	skip_unless(world.at.port, "the server has no port");
	haproxy_start(&haproxy, &world.at, 1, "first", idle);
}

Test(haproxy, locks_work)
{
	begin_with("1h");
	locks_work_behind(&haproxy);
}

Test(haproxy, a_waiter_is_woken)
{
	begin_with("1h");
	a_waiter_is_woken_behind(&haproxy);
}

Test(haproxy, batches_work)
{
	begin_with("1h");
	batches_work_behind(&haproxy);
}

Test(haproxy, commits_are_fenced)
{
	begin_with("1h");
	commits_are_fenced_behind(&haproxy);
}

Test(haproxy, late_requests_are_ended)
{
	begin_with("1h");
	late_requests_are_ended_behind(&haproxy);
}

/* ---- timeouts that are shorter than a wait, and than a hold -------------------------------- */

static bizlock_numbers numbers_of(bizlock *b)
{
	bizlock_numbers n = {.size = sizeof(n)};

	expect(OK, b, bizlock_stats(b, &n));
	return n;
}

/* The waiter is silent, so its connection is cut, again and again. */
Test(haproxy, a_wait_outlives_the_idle_timeout)
{
	bizlock *holder = client(NULL), *waiter;
	int64_t began = now_ms();
	unsigned seconds;
	struct call c;

	begin_with("1s");
	waiter = client_behind(&haproxy, NULL);
	expect(OK, holder, acquire_as(holder, "k", "task-1"));
	call_start(&c, waiter, "k", .wait_ms = -1, .owner = "task-2");
	eventually(numbers_of(waiter).reconnects >= 3);
	eventually(doorbell_waiters(&world) == 1);
	seconds = (unsigned)((now_ms() - began) / 1000);
	cr_assert_leq(numbers_of(waiter).reconnects, seconds + 2, "a busy loop");
	expect(OK, holder, bizlock_release(holder, KEY("k"), "task-1", NULL));
	expect(OK, waiter, call_join(&c));
	bizlock_close(waiter);
}

/* The holder's connection, which has the doorbell, is cut as well. It stays the holder, is renewed,
 * and wakes the one behind it. */
Test(haproxy, a_hold_outlives_the_idle_timeout)
{
	bizlock *holder, *waiter;
	struct call c;

	begin_with("1s");
	holder = client_behind(&haproxy, NULL);
	expect(OK, holder, acquire_renewed(holder, "k", .lease_ms = 6000, .owner = "task-1"));
	eventually(db_number(world.admin, "SELECT COUNT(*) FROM information_schema.PROCESSLIST "
	                                  "WHERE DB = DATABASE() AND ID <> CONNECTION_ID()") == 0);
	waiter = client(NULL); /* after the count of connections */
	call_start(&c, waiter, "k", .wait_ms = PATIENCE_MS, .owner = "task-2");
	steadily(row_of(&world, KEY("k")).left_us > 0 && !c.done, 7000);
	expect(OK, holder, bizlock_release(holder, KEY("k"), "task-1", NULL));
	expect(OK, waiter, call_join(&c));
	bizlock_close(holder);
}
