/* A lock that goes from one thread to the next of the same client, by one statement. */
#define _GNU_SOURCE 1

#include "cr_test.h"

TestSuite(passing, .init = world_begin, .fini = world_end, .timeout = 480);

#define WAIT_MS 15000
#define LEASE_MS 60000

static bool has_row(const char *owner)
{
	return strncmp(row_of(&world, KEY("k")).owner, owner, strlen(owner)) == 0;
}

static bool is_free(void)
{
	return !row_of(&world, KEY("k")).there;
}

/* ---- two owners ------------------------------------------------------------------------ */

struct pair {
	struct proxy *proxy;
	bizlock *b;
	bizlock_grant first;
	struct call next, release;
};

/* "task-1" holds, and "task-2" asks for it with this patience and these flags. */
static void pair_goes(struct pair *p, int64_t wait_ms, uint32_t flags)
{
	bizlock_acquire_opts opts = OPTS(.wait_ms = WAIT_MS, .lease_ms = LEASE_MS,
	                                 .owner = "task-1", .note = "the first");

	p->first = (bizlock_grant)BIZLOCK_GRANT_INIT;
	expect(OK, p->b, bizlock_acquire(p->b, KEY("k"), &opts, &p->first));
	call_prepare(&p->next, p->b, "k", .wait_ms = wait_ms, .owner = "task-2");
	p->next.opts.lease_ms = LEASE_MS / 2;
	p->next.opts.note = "the second";
	p->next.opts.flags = flags;
	call_go(&p->next);
	call_prepare(&p->release, p->b, "k", .owner = "task-1");
}

static void pair_waits(struct pair *p, int64_t wait_ms)
{
	pair_goes(p, wait_ms, 0);
	call_blocks(&p->next);
}

static struct pair pair_begin(void)
{
	struct pair p = {.proxy = proxy_start(&world.at, "127.0.0.1")};

	p.b = client_through(p.proxy, NULL);
	works(p.b);
	return p;
}

static void second_gives_back(struct pair *p)
{
	expect(OK, p->b, bizlock_verify(p->b, KEY("k"), "task-2"));
	expect(OK, p->b, bizlock_release(p->b, KEY("k"), "task-2", NULL));
	expect(NOT_OWNER, p->b, bizlock_verify(p->b, KEY("k"), "task-1"));
	cr_assert(is_free());
	works(p->b);
}

/* True: the statement that passes the lock on has run, and its answer is kept back. False: the
 * release went alone, or the statement was still to be prepared. */
static bool answer_is_kept_back(struct pair *p)
{
	int64_t end = now_ms() + 1000;

	proxy_hold_replies(p->proxy, true);
	call_start_release(&p->release);
	while (has_row("task-1"))
		if (!pause_before(end))
			return false;
	return has_row("task-2");
}

static void until_answer_is_kept_back(struct pair *p, int64_t wait_ms)
{
	pair_waits(p, wait_ms);
	for (int64_t end = now_ms() + PATIENCE_MS; !answer_is_kept_back(p);) {
		cr_assert_lt(now_ms(), end, "never passed on");
		proxy_hold_replies(p->proxy, false);
		cr_assert_eq(call_join(&p->release), BIZLOCK_OK, "%s", p->release.errmsg);
		if (call_join(&p->next) == BIZLOCK_OK)
			second_gives_back(p);
		pair_waits(p, wait_ms);
	}
}

static void both_are_ok(struct pair *p)
{
	cr_assert_eq(call_join(&p->release), BIZLOCK_OK, "%s", p->release.errmsg);
	cr_assert_eq(call_join(&p->next), BIZLOCK_OK, "%s", p->next.errmsg);
	cr_assert_gt(p->next.grant.fence, p->first.fence);
}

Test(passing, leaves_what_an_acquisition_leaves)
{
	struct pair p = pair_begin();
	long long began;
	struct row row;

	until_answer_is_kept_back(&p, WAIT_MS);
	began = began_us("k");
	proxy_hold_replies(p.proxy, false);
	both_are_ok(&p);
	row = row_of(&world, KEY("k"));
	cr_assert(row.depth == 1 && row.fence == p.next.grant.fence);
	cr_assert_str_eq(row.note, "the second");
	cr_assert_eq(row.timeout_us, began + LEASE_MS * 500LL);
	cr_assert_eq(modified_us("k"), began);
	cr_assert_eq(db_number(world.admin, "SELECT taken_from FROM biz_lock"), 0);
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE bell <> 0"), 1);
	cr_assert(p.next.grant.flags == 0 && p.next.grant.depth == 1 &&
	          p.next.grant.lease_ms == LEASE_MS / 2);
	cr_assert_gt(bizlock_left_ms(p.b, KEY("k"), "task-2"), 0);
	cr_assert_leq(bizlock_left_ms(p.b, KEY("k"), "task-2"), LEASE_MS / 2);
	expect(OK, p.b, acquire_as(p.b, "k", "task-2"));
	expect(OK, p.b, bizlock_release(p.b, KEY("k"), "task-2", NULL));
	expect(OK, p.b, bizlock_renew(p.b, KEY("k"), "task-2", LEASE_MS));
	second_gives_back(&p);
	proxy_stop(p.proxy);
}

/* The doorbell still rings. If not, the stranger would poll. */
Test(passing, keeps_the_doorbell)
{
	struct pair p = pair_begin();
	bizlock *stranger = client(NULL);
	struct call call;

	until_answer_is_kept_back(&p, WAIT_MS);
	proxy_hold_replies(p.proxy, false);
	both_are_ok(&p);
	call_start(&call, stranger, "k", .wait_ms = WAIT_MS, .owner = "stranger");
	eventually(doorbell_waiters(&world) == 1);
	expect(OK, p.b, bizlock_release(p.b, KEY("k"), "task-2", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	expect(OK, stranger, bizlock_release(stranger, KEY("k"), "stranger", NULL));
	proxy_stop(p.proxy);
}

Test(passing, is_not_called_off_by_a_deadline)
{
	struct pair p = pair_begin();

	until_answer_is_kept_back(&p, 1600);
	steadily(!atomic_load(&p.next.done), 1800);
	proxy_hold_replies(p.proxy, false);
	both_are_ok(&p);
	second_gives_back(&p);
	proxy_stop(p.proxy);
}

Test(passing, is_not_called_off_by_an_interrupt)
{
	struct pair p = pair_begin();

	until_answer_is_kept_back(&p, WAIT_MS);
	bizlock_interrupt(p.b);
	steadily(!atomic_load(&p.next.done), 200);
	proxy_hold_replies(p.proxy, false);
	both_are_ok(&p);
	second_gives_back(&p);
	proxy_stop(p.proxy);
}

/* ---- no passing on --------------------------------------------------------------------- */

/* The holder, of the same client, holds for long: the waiter that came first to the doorbell is
 * served first. */
Test(passing, is_not_for_long_holds)
{
	bizlock *b = client(NULL), *stranger = client(NULL);
	struct call first, second;

	expect(OK, b, acquire_as(b, "k", "task-1"));
	call_start(&first, stranger, "k", .wait_ms = -1, .owner = "stranger");
	eventually(doorbell_waiters(&world) == 1);
	call_start(&second, b, "k", .wait_ms = -1, .owner = "task-2");
	eventually(doorbell_waiters(&world) == 2);
	expect(OK, b, bizlock_release(b, KEY("k"), "task-1", NULL));
	cr_assert_eq(call_join(&first), BIZLOCK_OK, "%s", first.errmsg);
	steadily(!atomic_load(&second.done), 300);
	expect(OK, stranger, bizlock_release(stranger, KEY("k"), "stranger", NULL));
	cr_assert_eq(call_join(&second), BIZLOCK_OK, "%s", second.errmsg);
}

Test(passing, is_not_for_those_who_give_up_before)
{
	struct pair p = pair_begin();

	pair_waits(&p, -1);
	bizlock_interrupt(p.b);
	cr_assert_eq(call_join(&p.next), BIZLOCK_CANCELLED, "%s", p.next.errmsg);
	pair_goes(&p, 100, 0);
	cr_assert_eq(call_join(&p.next), BIZLOCK_TIMEOUT);
	cr_assert(strstr(p.next.errmsg, "held by task-1"), "%s", p.next.errmsg);
	expect(OK, p.b, bizlock_release(p.b, KEY("k"), "task-1", NULL));
	expect(OK, p.b, bizlock_release(p.b, KEY("k"), "task-1", NULL));
	cr_assert(is_free());
	proxy_stop(p.proxy);
}

Test(passing, is_not_for_a_try)
{
	struct pair p = pair_begin();

	pair_waits(&p, WAIT_MS);
	expect(BUSY, p.b, acquire_as(p.b, "k", "task-3"));
	expect(OK, p.b, bizlock_release(p.b, KEY("k"), "task-1", NULL));
	cr_assert_eq(call_join(&p.next), BIZLOCK_OK, "%s", p.next.errmsg);
	second_gives_back(&p);
	proxy_stop(p.proxy);
}

Test(passing, is_not_for_those_who_do_without_a_doorbell)
{
	struct pair p = pair_begin();

	pair_goes(&p, WAIT_MS, BIZLOCK_NO_QUEUE);
	call_blocks(&p.next);
	expect(OK, p.b, bizlock_release(p.b, KEY("k"), "task-1", NULL));
	cr_assert_eq(call_join(&p.next), BIZLOCK_OK, "%s", p.next.errmsg);
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE bell = 0"), 1);
	second_gives_back(&p);
	proxy_stop(p.proxy);
}

Test(passing, leaves_a_rest_to_its_end)
{
	bizlock_acquire_opts opts = OPTS(.owner = "task-1", .min_hold_ms = 1500);
	bizlock *b = client(NULL);
	long long began;
	struct call next;

	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	began = began_us("k");
	call_start(&next, b, "k", .wait_ms = -1, .owner = "task-2");
	call_blocks(&next);
	expect(OK, b, bizlock_release(b, KEY("k"), "task-1", NULL));
	cr_assert_eq(call_join(&next), BIZLOCK_OK, "%s", next.errmsg);
	cr_assert_geq(began_us("k"), began + 1500000);
	expect(OK, b, bizlock_release(b, KEY("k"), "task-2", NULL));
}

/* ---- the row is not what the holder believes ------------------------------------------- */

static void first_is_lost(struct pair *p)
{
	expect(LOST, p->b, bizlock_release(p->b, KEY("k"), "task-1", NULL));
}

/* The next fence was drawn before the row was free: one that is drawn behind it counts. */
Test(passing, a_lock_that_is_gone)
{
	struct pair p = pair_begin();
	int64_t end = now_ms() + PATIENCE_MS;
	bool passed = false;

	while (!passed) { /* 250 ms after it was taken, a lock is not passed on any more */
		pair_waits(&p, WAIT_MS);
		db_run(world.admin, "DELETE FROM biz_lock");
		first_is_lost(&p);
		cr_assert_eq(call_join(&p.next), BIZLOCK_OK, "%s", p.next.errmsg);
		cr_assert_eq(row_of(&world, KEY("k")).fence, p.next.grant.fence);
		cr_assert_gt(p.next.grant.fence, p.first.fence);
		passed = p.next.grant.fence > p.first.fence + 1;
		second_gives_back(&p);
		cr_assert_lt(now_ms(), end);
	}
	proxy_stop(p.proxy);
}

Test(passing, a_lock_that_somebody_else_has)
{
	struct pair p = pair_begin();

	pair_waits(&p, WAIT_MS);
	db_run(world.admin, "UPDATE biz_lock SET owner = 'thief', fence = fence + 1, bell = 0");
	first_is_lost(&p);
	steadily(!atomic_load(&p.next.done), 200);
	cr_assert(has_row("thief"));
	db_run(world.admin, "DELETE FROM biz_lock");
	cr_assert_eq(call_join(&p.next), BIZLOCK_OK, "%s", p.next.errmsg);
	second_gives_back(&p);
	proxy_stop(p.proxy);
}

/* As after a release: no other owner has held the lock in between. */
Test(passing, a_lease_that_is_over)
{
	struct pair p = pair_begin();

	pair_waits(&p, WAIT_MS);
	db_run(world.admin, "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6)");
	expect(OK, p.b, bizlock_release(p.b, KEY("k"), "task-1", NULL));
	cr_assert_eq(call_join(&p.next), BIZLOCK_OK, "%s", p.next.errmsg);
	second_gives_back(&p);
	proxy_stop(p.proxy);
}

/* ---- connections that break ------------------------------------------------------------ */

Test(passing, whose_answer_is_lost)
{
	struct pair p = pair_begin();

	until_answer_is_kept_back(&p, WAIT_MS);
	proxy_cut(p.proxy);
	proxy_hold_replies(p.proxy, false);
	both_are_ok(&p);
	cr_assert_eq(row_of(&world, KEY("k")).fence, p.next.grant.fence);
	second_gives_back(&p);
	proxy_stop(p.proxy);
}

static void suffers(struct pair *p, const struct fault *fault)
{
	pair_waits(p, WAIT_MS);
	proxy_arm(p->proxy, fault);
	call_start_release(&p->release);
	both_are_ok(p);
	proxy_arm(p->proxy, NULL);
	second_gives_back(p);
}

/* The statement, and the statements by which the two threads find out whether it has run. */
Test(passing, is_cut_anywhere)
{
	struct pair p = pair_begin();

	for (unsigned i = 0; i < 12; i++)
		for (int side = FAULT_REQUESTS; side <= FAULT_REPLIES; side++) {
			struct fault fault = {.what = FAULT_CUT,
			                      .side = (enum fault_side)side,
			                      .packet = i / 2,
			                      .byte = i % 2 ? 3 : 0};

			suffers(&p, &fault);
		}
	proxy_stop(p.proxy);
}

/* The statement arrives after both threads have gone on, on other connections. */
Test(passing, arrives_late)
{
	struct pair p = pair_begin();

	for (unsigned i = 0; i < 3; i++) {
		struct fault fault = {.what = FAULT_DELAY, .side = FAULT_REQUESTS, .delay_ms = 400};

		suffers(&p, &fault);
	}
	proxy_stop(p.proxy);
}

/* ---- the end --------------------------------------------------------------------------- */

Test(passing, ends_with_its_client)
{
	bizlock *b = client_open(&world, NULL);
	struct call next;

	expect(OK, b, acquire_as(b, "k", "task-1"));
	call_start(&next, b, "k", .wait_ms = -1, .owner = "task-2");
	call_blocks(&next);
	bizlock_close(b);
	cr_assert_eq(call_join(&next), BIZLOCK_CANCELLED);
	cr_assert(is_free());
}
