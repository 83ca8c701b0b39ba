/* Waiting: bounded, woken by the release, and in order of arrival. */
#define _GNU_SOURCE 1
#include "cr_test.h"

TestSuite(wait, .init = world_begin, .fini = world_end, .timeout = 240);

#define MUCH_MS 10000 /* much later than anything here should take */

/* ---- not waiting, or not long enough --------------------------------------- */

Test(wait, a_single_try_tells_who_holds_it_and_for_how_long)
{
	bizlock *a = client(NULL), *b = client(NULL);

	expect(OK, a, acquire(a, "4711", .lease_ms = 25000));
	expect(BUSY, b, acquire(b, "4711"));
	expect_message(b, row_of(&world, KEY("4711")).owner);
	expect_message(b, "4711");
	expect_message(b, "test");
	expect_message(b, "lease ends in ");
}

Test(wait, a_failed_try_leaves_the_grant_alone)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_grant grant = {sizeof(grant), 11, 22, 33, 44, 0};

	expect(OK, a, acquire(a, "k"));
	expect(BUSY, b, acquire(b, "k", .grant = &grant));
	cr_assert(grant.fence == 11 && grant.depth == 22 && grant.lease_ms == 33 &&
	          grant.flags == 44);
}

static void times_out(bizlock *b, const char *id, int64_t wait_ms)
{
	int64_t start = now_ms(), took;

	expect(TIMEOUT, b, acquire_as(b, id, "task-2", .wait_ms = wait_ms));
	took = now_ms() - start;
	cr_assert(took >= wait_ms && took < wait_ms + MUCH_MS, "%lld ms of %lld", (long long)took,
	          (long long)wait_ms);
	expect_message(b, row_of(&world, KEY(id)).owner);
}

Test(wait, it_times_out_at_the_doorbell)
{
	bizlock *a = client(NULL), *b = client(NULL);

	expect(OK, a, acquire(a, "k", .lease_ms = 60000));
	times_out(b, "k", 1);
	times_out(b, "k", 700);
	times_out(b, "k", 1300);
}

Test(wait, it_times_out_polling)
{
	bizlock *a = client(NULL), *b = client(OPTIONS("queue", "off"));

	expect(OK, a, acquire(a, "k", .lease_ms = 60000));
	times_out(b, "k", 1);
	times_out(b, "k", 700);
}

Test(wait, it_times_out_behind_another_thread)
{
	bizlock *b = client(NULL);

	expect(OK, b, acquire_as(b, "k", "task-1"));
	times_out(b, "k", 1);
	times_out(b, "k", 700);
}

Test(wait, the_second_in_line_times_out_before_the_first)
{
	bizlock *a = client(NULL), *b = client(NULL);
	struct call first;

	expect(OK, a, acquire(a, "k", .lease_ms = 60000));
	call_start(&first, b, "k", .wait_ms = -1, .owner = "task-1");
	eventually(doorbell_waiters(&world) == 1);
	times_out(b, "k", 500);
	cr_assert(!atomic_load(&first.done));
	expect(OK, a, bizlock_release(a, KEY("k"), NULL, NULL));
	cr_assert_eq(call_join(&first), BIZLOCK_OK, "%s", first.errmsg);
}

/* ---- woken by the release -------------------------------------------------- */

/* The waiter sends nothing while it waits. After the release it has the lock within a few packets:
 * it does not poll, it is woken. */
static void woken_without_polls(bizlock *holder, bizlock *waiter, struct proxy *p)
{
	struct call call;
	unsigned packets;
	int64_t released;

	expect(OK, holder, acquire_as(holder, "k", "task-1"));
	call_start(&call, waiter, "k", .wait_ms = -1, .owner = "task-2");
	call_blocks(&call);
	eventually(doorbell_waiters(&world) == 1);
	packets = proxy_packets(p);
	steadily(proxy_packets(p) == packets && !atomic_load(&call.done), 700);
	released = now_ms();
	expect(OK, holder, bizlock_release(holder, KEY("k"), "task-1", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_lt(call.ended - released, MUCH_MS);
	cr_assert_leq(proxy_packets(p) - packets, 6); /* two more if the answer was slow */
}

Test(wait, a_release_wakes_a_waiter_at_the_doorbell)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");

	woken_without_polls(client(NULL), client_through(p, NULL), p);
	proxy_stop(p);
}

Test(wait, a_release_wakes_a_waiting_thread_of_the_same_client)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);

	woken_without_polls(b, b, p);
	proxy_stop(p);
}

Test(wait, a_release_wakes_a_waiter_in_another_process)
{
	struct peer peer = peer_start(&world, NULL);
	bizlock *b = client(NULL);

	expect(OK, b, acquire(b, "k", .lease_ms = 60000));
	peer_ask_acquire(&peer, "k", .wait_ms = -1);
	eventually(doorbell_waiters(&world) == 1);
	cr_assert(!peer_has_answer(&peer));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect_answer(OK, peer_answer(&peer));
	peer_end(&peer);
}

/* ---- in order of arrival --------------------------------------------------- */

Test(wait, processes_are_served_in_the_order_of_arrival)
{
	enum { PEERS = 5 };
	struct peer peers[PEERS];
	bizlock *b;
	uint64_t fence = 0;

	for (int i = 0; i < PEERS; i++)
		peers[i] = peer_start(&world, NULL);
	b = client(NULL);
	expect(OK, b, acquire(b, "k", .lease_ms = 600000));
	for (int i = 0; i < PEERS; i++) {
		peer_ask_acquire(&peers[i], "k", .wait_ms = -1, .lease_ms = 600000);
		eventually(doorbell_waiters(&world) == i + 1);
	}
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	for (int i = 0; i < PEERS; i++) {
		struct answer a = peer_answer(&peers[i]);

		expect_answer(OK, a);
		cr_assert_gt(a.grant.fence, fence);
		fence = a.grant.fence;
		for (int j = i + 1; j < PEERS; j++)
			cr_assert(!peer_has_answer(&peers[j]), "%d came before %d", j, i);
		expect_answer(OK, peer_release(&peers[i], "k"));
	}
	for (int i = 0; i < PEERS; i++)
		peer_end(&peers[i]);
}

Test(wait, threads_are_served_in_the_order_of_arrival)
{
	enum { THREADS = 5 };
	static const char *const names[THREADS] = {"t-0", "t-1", "t-2", "t-3", "t-4"};
	struct call calls[THREADS];
	bizlock *b = client(NULL);
	uint64_t fence = 0;

	expect(OK, b, acquire_as(b, "k", "holder"));
	for (int i = 0; i < THREADS; i++) {
		call_start(&calls[i], b, "k", .wait_ms = -1, .owner = names[i]);
		call_blocks(&calls[i]);
	}
	expect(OK, b, bizlock_release(b, KEY("k"), "holder", NULL));
	for (int i = 0; i < THREADS; i++) {
		cr_assert_eq(call_join(&calls[i]), BIZLOCK_OK, "%s", calls[i].errmsg);
		cr_assert_gt(calls[i].grant.fence, fence);
		fence = calls[i].grant.fence;
		for (int j = i + 1; j < THREADS; j++)
			cr_assert(!atomic_load(&calls[j].done), "%d came before %d", j, i);
		expect(OK, b, bizlock_release(b, KEY("k"), names[i], NULL));
	}
}

/* ---- without a doorbell ------------------------------------------------------ */

Test(wait, without_the_queue_nobody_stands_at_the_doorbell)
{
	bizlock *a = client(OPTIONS("queue", "off")), *b = client(OPTIONS("queue", "off"));
	struct call call;

	deadlocks_may_happen();
	expect(OK, a, acquire(a, "k", .lease_ms = 60000));
	call_start(&call, b, "k", .wait_ms = -1, .owner = "task-1");
	call_blocks(&call);
	steadily(doorbell_waiters(&world) == 0 && !atomic_load(&call.done), 500);
	expect(OK, a, bizlock_release(a, KEY("k"), NULL, NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
}

Test(wait, one_call_may_do_without_the_doorbell)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	deadlocks_may_happen();
	opts.flags = BIZLOCK_NO_QUEUE;
	opts.wait_ms = 300;
	expect(OK, a, acquire(a, "k", .lease_ms = 60000));
	expect(TIMEOUT, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	expect(OK, a, bizlock_release(a, KEY("k"), NULL, NULL));
	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

/* Some clients use the queue and some do not. Still, one at a time holds the lock. */
Test(wait, queued_and_polling_contenders_exclude_each_other)
{
	bizlock *a = client(NULL), *b = client(OPTIONS("queue", "off"));

	deadlocks_may_happen();
	for (int i = 0; i < 5; i++) {
		expect(OK, a, acquire(a, "k"));
		expect(BUSY, b, acquire(b, "k"));
		expect(OK, a, bizlock_release(a, KEY("k"), NULL, NULL));
		expect(OK, b, acquire(b, "k"));
		expect(BUSY, a, acquire(a, "k"));
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	}
}

/* The end of this lease was written by hand. It is further away than nanoseconds in 64 bits can
 * count. */
Test(wait, for_centuries_is_no_busy_loop)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);

	works(b);
	db_run(world.admin, "INSERT INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout,"
	                    " gmt_create, gmt_modified) VALUES ('k', 'test', 'x', 1,"
	                    " '9999-12-31 23:59:59', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))");
	proxy_arm(p, NULL);
	expect(TIMEOUT, b, acquire(b, "k", .wait_ms = 1000));
	cr_assert_lt(proxy_packets(p), 100);
	proxy_stop(p);
}
