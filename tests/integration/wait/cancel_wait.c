/* bizlock_cancel_wait(): one wait of a thread ends, and no other. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_keyset.h"
#include "cr_test.h"

TestSuite(cancel_wait, .init = world_begin, .fini = world_end, .timeout = 240);

enum { SOON_MS = 5000 }; /* a wait that nobody ends lasts much longer */

static int cancel(bizlock *b, const char *id, const char *owner)
{
	return bizlock_cancel_wait(b, KEY(id), owner);
}

/* The call waits, is cancelled, and returns at once. */
static void ends(struct call *call, const char *id, const char *owner)
{
	int64_t start;

	call_blocks(call);
	start = now_ms();
	expect(OK, call->b, cancel(call->b, id, owner));
	cr_assert_eq(call_join(call), BIZLOCK_CANCELLED, "%s", call->errmsg);
	cr_assert_lt(call->ended - start, SOON_MS);
	expect(NOT_OWNER, call->b, bizlock_verify(call->b, KEY(id), owner));
}

static void one_wait(const char *const *options)
{
	bizlock *a = client(NULL), *b = client(options);
	struct call call;

	expect(OK, a, acquire_as(a, "k", "holder"));
	call_start(&call, b, "k", .wait_ms = -1, .owner = "task");
	ends(&call, "k", "task");
	expect(OK, a, bizlock_release(a, KEY("k"), "holder", NULL));
	expect(OK, b, acquire_as(b, "k", "task"));
}

Test(cancel_wait, at_the_doorbell)
{
	one_wait(NULL);
}

Test(cancel_wait, of_one_that_polls)
{
	one_wait(OPTIONS("queue", "off"));
}

Test(cancel_wait, of_one_that_has_no_connection_to_sleep_on)
{
	one_wait(OPTIONS("max_connections", "1"));
}

/* Of the threads of a client the first sleeps at the server, and the others behind it, in memory.
 */
Test(cancel_wait, others_in_line_stay_in_their_order)
{
	static const char *const owners[] = {"t0", "t1", "t2", "t3", "t4"};
	bizlock *a = client(NULL), *b = client(NULL);
	struct call calls[5];

	expect(OK, a, acquire_as(a, "k", "holder"));
	for (int i = 0; i < 5; i++) {
		call_start(&calls[i], b, "k", .wait_ms = -1, .owner = owners[i]);
		call_blocks(&calls[i]);
	}
	ends(&calls[2], "k", owners[2]);
	ends(&calls[0], "k", owners[0]);
	steadily(!atomic_load(&calls[1].done) && !atomic_load(&calls[3].done) &&
	                 !atomic_load(&calls[4].done),
	         200);
	expect(OK, a, bizlock_release(a, KEY("k"), "holder", NULL));
	for (int i = 1; i < 5; i += i == 1 ? 2 : 1) {
		cr_assert_eq(call_join(&calls[i]), BIZLOCK_OK, "%s", calls[i].errmsg);
		for (int later = i + 1; later < 5; later++)
			cr_assert(later == 2 || !atomic_load(&calls[later].done));
		expect(OK, b, bizlock_release(b, KEY("k"), owners[i], NULL));
	}
}

Test(cancel_wait, of_those_that_are_watched)
{
	enum { N = 12 };
	bizlock *a = client(NULL), *b = client(OPTIONS("max_connections", "4"));
	char ids[N][8], owners[N][8];
	struct call calls[N];

	for (int i = 0; i < N; i++) {
		snprintf(ids[i], sizeof(ids[i]), "k-%d", i);
		snprintf(owners[i], sizeof(owners[i]), "t%d", i);
		expect(OK, a, acquire_as(a, ids[i], "holder"));
		call_start(&calls[i], b, ids[i], .wait_ms = -1, .owner = owners[i]);
	}
	eventually(watchers(&world) == 1);
	for (int i = 0; i < N; i += 2)
		ends(&calls[i], ids[i], owners[i]);
	for (int i = 1; i < N; i += 2) {
		cr_assert(!atomic_load(&calls[i].done));
		expect(OK, a, bizlock_release(a, KEY(ids[i]), "holder", NULL));
		cr_assert_eq(call_join(&calls[i]), BIZLOCK_OK, "%s", calls[i].errmsg);
	}
}

Test(cancel_wait, of_one_that_waits_for_sharers_to_leave)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_acquire_opts shared = OPTS(.owner = "r", .flags = BIZLOCK_SHARED);
	struct call call;

	expect(OK, a, bizlock_acquire(a, KEY("k"), &shared, NULL));
	call_start(&call, b, "k", .wait_ms = -1, .owner = "w");
	call_blocks(&call);
	eventually(shared_sleepers(&world) == 1);
	ends(&call, "k", "w");
	shared.owner = "r2";
	expect(OK, b, bizlock_acquire(b, KEY("k"), &shared, NULL));
}

Test(cancel_wait, of_a_set_by_any_of_its_keys)
{
	bizlock *a = client(NULL), *b = client(NULL);
	struct keyset set;
	struct call call;

	keyset_make(&set, 3, "s");
	expect(OK, a, acquire_as(a, set.ids[1], "holder"));
	for (int i = 0; i < 3; i++) {
		call_start_all(&call, b, &set, .wait_ms = -1, .owner = "task");
		ends(&call, set.ids[i], "task");
		expect_none(b, &set, "task");
	}
}

/* Of one that waits for another call of its owner, whose statement gets no answer. */
Test(cancel_wait, behind_another_call_of_its_owner)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("renew", "off"));
	struct call calls[2];

	expect(OK, b, acquire_as(b, "k", "task"));
	proxy_hold_replies(p, true);
	for (int i = 0; i < 2; i++) {
		call_start(&calls[i], b, "k", .wait_ms = -1, .owner = "task");
		call_blocks(&calls[i]);
	}
	expect(OK, b, cancel(b, "k", "task"));
	cr_assert_eq(call_join(&calls[1]), BIZLOCK_CANCELLED, "%s", calls[1].errmsg);
	proxy_hold_replies(p, false);
	call_join(&calls[0]);
	proxy_stop(p);
}

Test(cancel_wait, needs_a_wait)
{
	bizlock *a = client(NULL), *b = client(NULL);
	struct call call;

	expect(NOT_OWNER, b, cancel(b, "k", "task"));
	expect(OK, b, acquire_as(b, "k", "task"));
	expect(NOT_OWNER, b, cancel(b, "k", "task"));
	expect(OK, b, bizlock_verify(b, KEY("k"), "task"));
	call_start(&call, a, "k", .wait_ms = -1, .owner = "task");
	call_blocks(&call);
	expect(NOT_OWNER, b, cancel(b, "k", "task"));
	expect(NOT_OWNER, a, cancel(a, "k", "other"));
	expect(NOT_OWNER, a, cancel(a, "other", "task"));
	expect(INVALID, a, cancel(a, "k", NULL));
	expect_message(a, "owner is NULL");
	expect(INVALID, a, cancel(a, "", "task"));
	steadily(!atomic_load(&call.done), 200);
	ends(&call, "k", "task");
}

/* The wait ends at the same time by itself: it has the lock, or has not. */
Test(cancel_wait, may_come_too_late)
{
	bizlock *a = client(NULL), *b = client(NULL);
	int granted = 0, cancelled = 0;

	for (int i = 0; i < 60; i++) {
		struct call call;
		int rc;

		expect(OK, a, acquire_as(a, "k", "holder"));
		call_start(&call, b, "k", .wait_ms = -1, .owner = "task");
		call_blocks(&call);
		if (i % 3 == 0)
			cancel(b, "k", "task");
		expect(OK, a, bizlock_release(a, KEY("k"), "holder", NULL));
		pause_ms(i % 3);
		rc = cancel(b, "k", "task");
		cr_assert(rc == BIZLOCK_OK || rc == BIZLOCK_NOT_OWNER);
		rc = call_join(&call);
		cr_assert(rc == BIZLOCK_OK || rc == BIZLOCK_CANCELLED, "%s", call.errmsg);
		granted += rc == BIZLOCK_OK;
		cancelled += rc == BIZLOCK_CANCELLED;
		if (rc == BIZLOCK_OK)
			expect(OK, b, bizlock_release(b, KEY("k"), "task", NULL));
		expect(OK, a, acquire_as(a, "k", "holder", .wait_ms = PATIENCE_MS));
		expect(OK, a, bizlock_release(a, KEY("k"), "holder", NULL));
	}
	cr_assert_gt(granted, 0);
	cr_assert_gt(cancelled, 0);
}
