/* How a holder learns that its lock is gone: the function of bizlock_on_lost(),
 * LOST from every call, nothing left. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_test.h"

TestSuite(losing, .init = world_begin, .fini = world_end, .timeout = 240);

#define LEASE_MS 3000
#define MANY 8

static struct losses losses;

static bizlock *watched_client(const char *const *options)
{
	bizlock *b = client(options);

	losses_watch(&losses, b);
	return b;
}

static void id_of(char id[8], int i)
{
	snprintf(id, 8, "k%d", i);
}

/* Takes "k" with these flags. Returns its fence. */
static uint64_t take(bizlock *b, uint32_t flags)
{
	bizlock_acquire_opts opts = OPTS(.lease_ms = LEASE_MS, .flags = flags);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, &grant));
	return grant.fence;
}

static void break_it(const char *id)
{
	bizlock *b = client(NULL);

	expect(OK, b, bizlock_break(b, KEY(id), row_of(&world, KEY(id)).fence));
}

static void was_told_once(uint64_t fence)
{
	eventually(losses.count > 0);
	cr_assert_eq(losses.list[0].fence, fence);
	cr_assert_str_eq(losses.list[0].id, "k");
	steadily(losses.count == 1, 500);
}

Test(losing, a_broken_lock_is_told_at_the_next_renewal)
{
	bizlock *b = watched_client(NULL);
	uint64_t fence = take(b, 0);
	int64_t broken = now_ms();

	break_it("k");
	was_told_once(fence);
	/* Long before the lease would have ended, with time for a slow machine. */
	cr_assert_lt(losses.list[0].at - broken, LEASE_MS);
	cr_assert_leq(bizlock_left_ms(b, KEY("k"), NULL), 0);
	expect(LOST, b, bizlock_verify(b, KEY("k"), NULL));
	expect(LOST, b, bizlock_renew(b, KEY("k"), NULL, 0));
	expect(LOST, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

Test(losing, a_lost_lock_is_not_taken_again_by_reentry)
{
	bizlock *b = watched_client(NULL);
	uint64_t fence = take(b, 0);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	cr_assert_eq(take(b, 0), fence);
	break_it("k");
	was_told_once(fence);
	for (int i = 0; i < 3; i++)
		expect(LOST, b, acquire_renewed(b, "k", .lease_ms = LEASE_MS));
	expect(LOST, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(LOST, b, acquire_renewed(b, "k", .lease_ms = LEASE_MS));
	expect(LOST, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(OK, b, acquire_renewed(b, "k", .lease_ms = LEASE_MS, .grant = &grant));
	cr_assert_gt(grant.fence, fence);
	cr_assert_eq(grant.depth, 1);
	cr_assert_eq(losses.count, 1);
}

/* Also where re-entry costs no round trip. */
Test(losing, a_lost_lock_is_not_taken_again_by_local_reentry)
{
	bizlock *b = watched_client(NULL);
	uint64_t fence = take(b, BIZLOCK_LOCAL_REENTRY);
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	break_it("k");
	was_told_once(fence);
	opts.flags = BIZLOCK_LOCAL_REENTRY;
	expect(LOST, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
}

/* Without a renewal and without a call, the local clock tells. */
Test(losing, a_lease_that_runs_out_unrenewed_is_told_when_it_is_over)
{
	bizlock *b = watched_client(NULL);
	int64_t start = now_ms();
	uint64_t fence = take(b, BIZLOCK_NO_RENEW);

	was_told_once(fence);
	cr_assert_gt(losses.list[0].at - start, LEASE_MS / 2);
	cr_assert_leq(bizlock_left_ms(b, KEY("k"), NULL), 0);
	expect(LOST, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

Test(losing, what_a_call_found_out_is_told_once)
{
	bizlock *b = watched_client(NULL);
	uint64_t fence = take(b, BIZLOCK_NO_RENEW);

	break_it("k");
	expect(LOST, b, bizlock_verify(b, KEY("k"), NULL));
	was_told_once(fence);
}

Test(losing, what_was_lost_before_is_told)
{
	bizlock *b = client(NULL);
	uint64_t fence = take(b, BIZLOCK_NO_RENEW);

	break_it("k");
	expect(LOST, b, bizlock_verify(b, KEY("k"), NULL));
	losses_watch(&losses, b);
	was_told_once(fence);
}

/* Also of a function that was taken back meanwhile. */
Test(losing, what_was_given_back_before_is_not_told)
{
	bizlock *b = watched_client(NULL);

	expect(OK, b, bizlock_on_lost(b, NULL, NULL));
	take(b, BIZLOCK_NO_RENEW);
	break_it("k");
	expect(LOST, b, bizlock_release(b, KEY("k"), NULL, NULL));
	losses_watch(&losses, b);
	steadily(losses.count == 0, 500);
}

Test(losing, a_released_lock_is_not_lost)
{
	bizlock *b = watched_client(NULL);

	for (int i = 0; i < 20; i++) {
		take(b, i % 2 ? 0 : BIZLOCK_NO_RENEW);
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	}
	steadily(losses.count == 0, LEASE_MS * 3 / 2);
}

Test(losing, many_are_told_one_at_a_time)
{
	bizlock *b = watched_client(NULL);
	char id[8];

	for (int i = 0; i < MANY; i++) {
		id_of(id, i);
		expect(OK, b,
		       acquire_renewed(b, id, .owner = i % 2 ? "task" : NULL,
		                       .lease_ms = LEASE_MS));
	}
	db_run(world.admin, "DELETE FROM biz_lock");
	eventually(losses.count == MANY);
	for (int i = 0; i < MANY; i++)
		for (int j = 0; j < i; j++)
			cr_assert_str_neq(losses.list[i].id, losses.list[j].id);
	steadily(losses.count == MANY, 300);
}

/* ---- what the function may do -------------------------------------------------- */

struct mender {
	bizlock *b;
	atomic_int done, rc[4];
};

/* Gives the lost lock up and takes it again, in the library's own thread. */
static void mend(void *arg, bizlock_key key, uint64_t fence)
{
	struct mender *m = arg;
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	(void)fence;
	opts.owner = "task";
	opts.lease_ms = 60000;
	m->rc[0] = bizlock_verify(m->b, key, "task");
	m->rc[1] = bizlock_release(m->b, key, "task", NULL);
	m->rc[2] = bizlock_acquire(m->b, key, &opts, NULL);
	m->rc[3] = bizlock_on_lost(m->b, NULL, NULL);
	atomic_fetch_add(&m->done, 1);
}

Test(losing, the_function_may_call_the_library)
{
	static struct mender m;

	m.b = client(NULL);
	expect(OK, m.b, bizlock_on_lost(m.b, mend, &m));
	expect(OK, m.b, acquire_renewed(m.b, "k", .owner = "task", .lease_ms = LEASE_MS));
	break_it("k");
	eventually(m.done == 1);
	cr_assert_eq(m.rc[0], BIZLOCK_LOST);
	cr_assert_eq(m.rc[1], BIZLOCK_LOST);
	cr_assert_eq(m.rc[2], BIZLOCK_OK);
	cr_assert_eq(m.rc[3], BIZLOCK_OK);
	expect(OK, m.b, bizlock_verify(m.b, KEY("k"), "task"));
}

struct gate {
	atomic_bool entered, open;
};

static void wait_at_gate(void *arg, bizlock_key key, uint64_t fence)
{
	struct gate *gate = arg;

	(void)key;
	(void)fence;
	atomic_store(&gate->entered, true);
	eventually(atomic_load(&gate->open));
}

/* A function that takes long must not cost other locks their leases. */
Test(losing, while_the_function_runs_others_are_renewed)
{
	static struct gate gate;
	bizlock *b = client(NULL);
	long long first_end;

	expect(OK, b, bizlock_on_lost(b, wait_at_gate, &gate));
	expect(OK, b, acquire_renewed(b, "k", .lease_ms = LEASE_MS));
	expect(OK, b, acquire_renewed(b, "other", .lease_ms = LEASE_MS));
	break_it("k");
	eventually(atomic_load(&gate.entered));
	first_end = row_of(&world, KEY("other")).timeout_us;
	eventually(server_us() > first_end + LEASE_MS * 1000);
	expect(OK, b, bizlock_verify(b, KEY("other"), NULL));
	atomic_store(&gate.open, true);
	expect(OK, b, bizlock_release(b, KEY("other"), NULL, NULL));
}

Test(losing, without_a_function_the_calls_still_tell)
{
	bizlock *b = watched_client(NULL);

	expect(OK, b, bizlock_on_lost(b, NULL, NULL));
	take(b, 0);
	break_it("k");
	eventually(bizlock_left_ms(b, KEY("k"), NULL) <= 0);
	expect(LOST, b, bizlock_verify(b, KEY("k"), NULL));
	cr_assert_eq(losses.count, 0);
}

/* A lock that is taken again after a loss can be lost again. */
Test(losing, the_lock_is_lost_again)
{
	bizlock *b = watched_client(NULL);
	uint64_t first = take(b, 0), second;

	break_it("k");
	was_told_once(first);
	expect(LOST, b, bizlock_release(b, KEY("k"), NULL, NULL));
	second = take(b, 0);
	break_it("k");
	eventually(losses.count == 2);
	cr_assert_eq(losses.list[1].fence, second);
}

/* If the doorbell were counted as given back twice, the connection would be one short for ever, and
 * a lock that is taken on it later would wake nobody. */
Test(losing, a_release_that_finds_it_lost_gives_one_doorbell_back)
{
	bizlock *b = watched_client(OPTIONS("max_connections", "1"));

	take(b, BIZLOCK_NO_RENEW);
	db_run(world.admin, "DELETE FROM biz_lock");
	expect(LOST, b, bizlock_release(b, KEY("k"), NULL, NULL));
	take(b, BIZLOCK_NO_RENEW);
	cr_assert_neq(db_number(world.admin, "SELECT bell FROM biz_lock"), 0);
}

/* ---- those who wait for it ------------------------------------------------------------------- */

#define WAITERS 4

/* The doorbell that its row says its holder has; 0: it went past. */
static long long bell_of_k(void)
{
	return db_number(world.admin, "SELECT bell FROM biz_lock WHERE %s", row_where(KEY("k")));
}

/* Which of them has come in, and has not been seen before? -1: none. */
static int one_more(const struct call *calls, const bool *seen)
{
	for (int i = 0; i < WAITERS; i++)
		if (calls[i].done && !seen[i])
			return i;
	return -1;
}

/* The lock of b is lost while they wait. Did they come in the order of their arrival, and did none
 * go past the doorbell? */
static bool come_in_order(bizlock *b, bizlock *const *clients)
{
	bool seen[WAITERS] = {false}, in_order = true;
	struct call calls[WAITERS];
	char owner[WAITERS][8];

	take(b, 0);
	for (int i = 0; i < WAITERS; i++) {
		snprintf(owner[i], sizeof(owner[i]), "w%d", i);
		call_start(&calls[i], clients[i], "k", .wait_ms = -1, .owner = owner[i]);
		eventually(doorbell_waiters(&world) == i + 1);
	}
	db_run(world.admin, "DELETE FROM biz_lock WHERE %s", row_where(KEY("k")));
	for (int i = 0, who; i < WAITERS; i++) {
		eventually((who = one_more(calls, seen)) >= 0);
		seen[who] = true;
		cr_assert_eq(call_join(&calls[who]), BIZLOCK_OK, "%s", calls[who].errmsg);
		in_order = in_order && who == i && bell_of_k() != 0;
		cr_assert_eq(one_more(calls, seen), -1, "one at a time");
		expect(OK, clients[who], bizlock_release(clients[who], KEY("k"), owner[who], NULL));
	}
	expect(LOST, b, bizlock_release(b, KEY("k"), NULL, NULL));
	return in_order;
}

/* A waiter goes past a doorbell after 200 ms; a machine that is busy may let it. */
#define TRIES 10

/* A client that knows that its hold is over does not keep its doorbell until it releases, and
 * nobody has to go past it. */
Test(losing, a_loss_rings_and_those_who_wait_come_in_order)
{
	bizlock *b = watched_client(NULL), *clients[WAITERS];
	bool in_order = false;

	for (int i = 0; i < WAITERS; i++)
		clients[i] = client(NULL);
	for (int i = 0; i < TRIES && !in_order; i++)
		in_order = come_in_order(b, clients);
	cr_assert(in_order);
}

Test(losing, the_end_of_a_lease_rings)
{
	bizlock *b = watched_client(NULL), *other = client(NULL);
	bool rung = false;

	for (int i = 0; i < TRIES && !rung; i++) {
		take(b, BIZLOCK_NO_RENEW);
		expect(OK, other, acquire(other, "k", .wait_ms = PATIENCE_MS));
		rung = bell_of_k() != 0;
		expect(OK, other, bizlock_release(other, KEY("k"), NULL, NULL));
		expect(LOST, b, bizlock_release(b, KEY("k"), NULL, NULL));
	}
	cr_assert(rung);
}
