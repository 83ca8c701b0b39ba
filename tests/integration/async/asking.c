/* Requests that are started, and answered by a dispatch: what they ask for, and what they get. */
#include "cr_ask.h"

TestSuite(asking, .init = world_begin, .fini = world_end, .timeout = 240);

static void never(void *arg, const bizlock_result *result)
{
	(void)arg;
	(void)result;
	cr_assert_fail("nothing was started");
}

Test(asking, a_lock_is_granted_and_given_back)
{
	bizlock *b = client(NULL);
	struct ask a;

	ask_for(&a, b, "k", "task", .wait_ms = -1, .note = "why not");
	cr_assert_eq(a.calls, 0);
	ask_ends(OK, &a);
	cr_assert(pthread_equal(a.by, pthread_self()));
	cr_assert_eq(a.grant.fence, row_of(&world, KEY("k")).fence);
	cr_assert_eq(a.grant.depth, 1);
	cr_assert_eq(a.grant.lease_ms, 20 * PATIENCE_MS);
	cr_assert_str_eq(row_of(&world, KEY("k")).note, "why not");
	cr_assert_gt(bizlock_left_ms(b, KEY("k"), "task"), 0);
	ask_release(&a);
	ask_ends(OK, &a);
	cr_assert(no_row(&world, KEY("k")));
	cr_assert_not(is_readable(b));
}

Test(asking, nothing_is_answered_but_by_a_dispatch)
{
	bizlock *b = client(NULL);
	struct ask a;
	unsigned calls = 99;

	ask_once(&a, b, "k", "task");
	eventually(is_readable(b));
	cr_assert_eq(a.calls, 0);
	expect(OK, b, bizlock_dispatch(b, &calls));
	cr_assert_eq(calls, 1);
	cr_assert_eq(a.calls, 1);
	expect(OK, b, bizlock_dispatch(b, &calls));
	cr_assert_eq(calls, 0);
	cr_assert_not(is_readable(b));
}

/* It is the same lock, whoever has taken it. */
Test(asking, threads_and_requests_share_holds)
{
	bizlock *b = client(NULL);
	struct ask a;

	expect(OK, b, acquire_as(b, "k", "task"));
	ask_once(&a, b, "k", "task");
	ask_ends(OK, &a);
	cr_assert_eq(a.grant.depth, 2);
	expect(OK, b, bizlock_release(b, KEY("k"), "task", NULL));
	cr_assert(row_of(&world, KEY("k")).there);
	ask_release(&a);
	ask_ends(OK, &a);
	cr_assert(no_row(&world, KEY("k")));
	ask_release(&a);
	ask_ends(NOT_OWNER, &a);
	cr_assert(strstr(a.errmsg, "release: test/k: task@"), "%s", a.errmsg);
}

Test(asking, reentry_may_count_in_memory)
{
	bizlock *b = client(NULL);
	struct ask a;

	ask_for(&a, b, "k", "task", .flags = BIZLOCK_LOCAL_REENTRY);
	ask_ends(OK, &a);
	ask_for(&a, b, "k", "task", .flags = BIZLOCK_LOCAL_REENTRY);
	ask_ends(OK, &a);
	cr_assert_eq(a.grant.depth, 2);
	cr_assert_eq(row_of(&world, KEY("k")).depth, 1);
	for (int i = 0; i < 2; i++) {
		ask_release(&a);
		ask_ends(OK, &a);
	}
	cr_assert(no_row(&world, KEY("k")));
}

Test(asking, who_does_not_wait_is_told_who_holds_it)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct ask a;

	expect(OK, other, acquire_as(other, "k", "other"));
	ask_once(&a, b, "k", "task");
	ask_ends(BUSY, &a);
	cr_assert(strstr(a.errmsg, "acquire: test/k: held by other@"), "%s", a.errmsg);
}

Test(asking, a_dead_holder_is_taken_over)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct ask a;

	expect(OK, other, acquire(other, "k", .lease_ms = 100, .wait_ms = -1, .owner = "other"));
	ask_for(&a, b, "k", "task", .wait_ms = -1);
	ask_ends(OK, &a);
	cr_assert_eq(a.grant.flags, BIZLOCK_TOOK_OVER);
}

static void refuse(bizlock *b, const char *owner, bizlock_done *done, const char *word)
{
	bizlock_acquire_opts opts = OPTS(.owner = owner);
	uint64_t request = 0;

	expect(INVALID, b, bizlock_acquire_start(b, KEY("k"), &opts, done, NULL, &request));
	expect_message(b, word);
	expect(INVALID, b, bizlock_release_start(b, KEY("k"), owner, done, NULL, &request));
	expect_message(b, word);
	cr_assert_eq(request, 0);
}

Test(asking, arguments_are_checked_at_once)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = OPTS(.owner = "task", .flags = 1u << 31);
	unsigned calls;

	refuse(b, NULL, never, "owner is NULL");
	refuse(b, "17", never, "owner");
	refuse(b, "task", NULL, "done is NULL");
	expect(INVALID, b, bizlock_acquire_start(b, KEY("k"), &opts, never, NULL, NULL));
	opts.flags = 0;
	expect(INVALID, b, bizlock_acquire_start(b, KEY(""), &opts, never, NULL, NULL));
	expect(INVALID, b, bizlock_acquire_start(b, KEY("k"), NULL, never, NULL, NULL));
	expect(INVALID, NULL, bizlock_dispatch(NULL, NULL));
	cr_assert_eq(bizlock_fd(NULL), -1);
	expect(INVALID, NULL, bizlock_cancel(NULL, 1));
	expect(OK, b, bizlock_dispatch(b, &calls));
	cr_assert_eq(calls, 0);
}

Test(asking, a_client_that_is_not_open_does_nothing)
{
	bizlock *b = client_new(&world, NULL);
	bizlock_acquire_opts opts = OPTS(.owner = "task");

	expect(MISUSE, b, bizlock_acquire_start(b, KEY("k"), &opts, never, NULL, NULL));
	expect(MISUSE, b, bizlock_release_start(b, KEY("k"), "task", never, NULL, NULL));
	expect(MISUSE, b, bizlock_cancel(b, 1));
	expect(MISUSE, b, bizlock_dispatch(b, NULL));
	cr_assert_eq(bizlock_fd(b), -1);
	expect_message(b, "not open");
	bizlock_close(b);
}

/* ---- what `done` may do --------------------------------------------------------------------- */

struct chain {
	bizlock *b;
	int left;
	bool cancelled;
};

static void next_in_chain(void *arg, const bizlock_result *result)
{
	struct chain *c = arg;
	bizlock_acquire_opts opts = OPTS(.owner = "task", .wait_ms = -1);

	cr_assert_eq(result->rc, BIZLOCK_OK, "%s", result->message);
	if (c->left-- == 0)
		return;
	if (result->grant)
		expect(OK, c->b,
		       bizlock_release_start(c->b, KEY("k"), "task", next_in_chain, c, NULL));
	else
		expect(OK, c->b,
		       bizlock_acquire_start(c->b, KEY("k"), &opts, next_in_chain, c, NULL));
}

Test(asking, done_may_start_the_next_one)
{
	struct chain c = {.b = client(NULL), .left = 102};

	next_in_chain(&c, &(bizlock_result){.rc = BIZLOCK_OK});
	dispatch_until(c.b, c.left < 0);
	cr_assert(no_row(&world, KEY("k")));
}

/* Itself, too, which has ended. */
static void cancels(void *arg, const bizlock_result *result)
{
	const struct ask *a = arg;

	cr_assert_eq(result->rc, BIZLOCK_OK);
	cr_assert_not_null(result->grant);
	ask_cancel(a);
	expect(OK, a->b, bizlock_cancel(a->b, result->request));
	expect(OK, a->b, bizlock_release(a->b, KEY("mine"), "task", NULL));
}

Test(asking, done_may_cancel_and_release)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_acquire_opts opts = OPTS(.owner = "task");
	struct ask a;

	expect(OK, other, acquire_as(other, "k", "other"));
	ask_for(&a, b, "k", "task", .wait_ms = -1);
	expect(OK, b, bizlock_acquire_start(b, KEY("mine"), &opts, cancels, &a, NULL));
	ask_ends(CANCELLED, &a);
	cr_assert(no_row(&world, KEY("mine")));
}
