/* A named owner that several threads use at once. */
#define _GNU_SOURCE 1
#include "cr_test.h"

TestSuite(same_owner, .init = world_begin, .fini = world_end, .timeout = 240);

#define PROMPT_MS 5000 /* on a machine that is busy; far less than two network timeouts */
#define WAITED_FOR "the same owner is waiting for it"

/* One thread of "task" waits for "k", which a stranger holds. */
static bizlock *waiting_client(struct call *waiter, bizlock **ret_stranger)
{
	bizlock *b = client(NULL);

	*ret_stranger = client(NULL);
	expect(OK, *ret_stranger, acquire(*ret_stranger, "k", .lease_ms = 60000));
	call_start(waiter, b, "k", .wait_ms = -1, .owner = "task");
	eventually(doorbell_waiters(&world) == 1);
	return b;
}

/* The waiter gets the lock that it waits for, and nothing else. */
static void is_served(struct call *waiter, bizlock *stranger)
{
	expect(OK, stranger, bizlock_release(stranger, KEY("k"), NULL, NULL));
	cr_assert_eq(call_join(waiter), BIZLOCK_OK, "%s", waiter->errmsg);
	cr_assert_eq(waiter->grant.depth, 1);
	expect(OK, waiter->b, bizlock_release(waiter->b, KEY("k"), "task", NULL));
}

Test(same_owner, that_waits_is_told_to_a_try_at_once)
{
	struct call waiter;
	bizlock *stranger, *b = waiting_client(&waiter, &stranger);
	int64_t start = now_ms();

	expect(BUSY, b, acquire_as(b, "k", "task"));
	expect_message(b, WAITED_FOR);
	cr_assert_lt(now_ms() - start, PROMPT_MS);
	is_served(&waiter, stranger);
}

Test(same_owner, that_waits_holds_nothing_yet)
{
	struct call waiter;
	bizlock *stranger, *b = waiting_client(&waiter, &stranger);
	const bizlock_key key = KEY("k");
	char text[BIZLOCK_EXPORT_MAX];
	int64_t start = now_ms();

	expect(NOT_OWNER, b, bizlock_release(b, key, "task", NULL));
	expect(NOT_OWNER, b, bizlock_verify(b, key, "task"));
	expect(NOT_OWNER, b, bizlock_renew(b, key, "task", 0));
	expect(NOT_OWNER, b, bizlock_export(b, key, "task", text, sizeof(text)));
	expect(NOT_OWNER, b, bizlock_release_all(b, &key, 1, "task"));
	cr_assert_leq(bizlock_left_ms(b, key, "task"), 0);
	cr_assert_lt(now_ms() - start, PROMPT_MS);
	is_served(&waiter, stranger);
}

Test(same_owner, that_waits_is_waited_for_as_long_as_was_told)
{
	struct call waiter;
	bizlock *stranger, *b = waiting_client(&waiter, &stranger);
	int64_t start = now_ms();

	expect(TIMEOUT, b, acquire_as(b, "k", "task", .wait_ms = 500));
	expect_message(b, WAITED_FOR);
	cr_assert_lt(now_ms() - start, 500 + PROMPT_MS);
	is_served(&waiter, stranger);
}

Test(same_owner, gets_both_levels_when_both_wait)
{
	struct call waiter, second;
	bizlock *stranger, *b = waiting_client(&waiter, &stranger);

	call_start(&second, b, "k", .wait_ms = -1, .owner = "task");
	call_blocks(&second);
	expect(OK, stranger, bizlock_release(stranger, KEY("k"), NULL, NULL));
	cr_assert_eq(call_join(&waiter), BIZLOCK_OK, "%s", waiter.errmsg);
	cr_assert_eq(call_join(&second), BIZLOCK_OK, "%s", second.errmsg);
	cr_assert_eq(second.grant.depth, 2);
}

Test(same_owner, that_waits_twice_is_interrupted_twice)
{
	struct call waiter, second;
	bizlock *stranger, *b = waiting_client(&waiter, &stranger);

	call_start(&second, b, "k", .wait_ms = -1, .owner = "task");
	call_blocks(&second);
	bizlock_interrupt(b);
	cr_assert_eq(call_join(&waiter), BIZLOCK_CANCELLED);
	cr_assert_eq(call_join(&second), BIZLOCK_CANCELLED);
}

/* ---- a release behind a call that takes its time ------------------------------------- */

static void *re_enters(void *arg)
{
	struct call *c = arg;

	c->rc = acquire_as(c->b, "k", "task", .wait_ms = 60000);
	return NULL;
}

/* An interrupt ends waits. A release is no wait: if it were ended, the lock would stay locked. */
Test(same_owner, that_is_interrupted_still_gives_back)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	struct call deeper = {.b = client_through(p, NULL)}, release, other;
	bizlock *stranger = client(NULL);
	pthread_t thread;

	expect(OK, deeper.b, acquire_as(deeper.b, "k", "task"));
	/* From now on, the statement of a re-entry is prepared. */
	for (int i = 0; i < 2; i++) {
		expect(OK, deeper.b, acquire_as(deeper.b, "k", "task"));
		expect(OK, deeper.b, bizlock_release(deeper.b, KEY("k"), "task", NULL));
	}
	expect(OK, stranger, acquire(stranger, "other", .lease_ms = 60000));
	call_start(&other, deeper.b, "other", .wait_ms = -1, .owner = "task");
	eventually(doorbell_waiters(&world) == 1);
	proxy_hold_replies(p, true);
	cr_assert_eq(pthread_create(&thread, NULL, re_enters, &deeper), 0);
	eventually(row_of(&world, KEY("k")).depth == 2);
	call_prepare(&release, deeper.b, "k", .owner = "task");
	call_start_release(&release);
	call_blocks(&release);
	bizlock_interrupt(deeper.b);
	cr_assert_eq(call_join(&other), BIZLOCK_CANCELLED, "and all that wait look up");
	steadily(!release.done, 300);
	proxy_hold_replies(p, false);
	cr_assert_eq(call_join(&release), BIZLOCK_OK, "%s", release.errmsg);
	pthread_join(thread, NULL);
	cr_assert_eq(deeper.rc, BIZLOCK_OK);
	eventually(row_of(&world, KEY("k")).depth == 1);
	proxy_stop(p);
}
