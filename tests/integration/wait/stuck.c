/* Waiting behind a holder that is dead, stopped or cut off. */
#define _GNU_SOURCE 1
#include <signal.h>

#include "cr_test.h"
#include "stale.h"

TestSuite(stuck, .init = world_begin, .fini = world_end, .timeout = 240);

#define MUCH_MS 10000 /* much later than anything here should take */

/* A contender waits for a lock whose holder got the signal `sig`. It takes over when the lease is
 * over, not earlier and not much later. */
static void takes_over_in_time(int sig, const char *queue)
{
	struct peer holder = peer_start(&world, OPTIONS("queue", queue));
	struct peer waiter = peer_start(&world, OPTIONS("queue", queue));
	struct answer a;
	long long lease_end;

	expect_answer(OK, peer_acquire(&holder, "k", .lease_ms = 1500));
	peer_signal(&holder, sig);
	lease_end = row_of(&world, KEY("k")).timeout_us;
	a = peer_acquire(&waiter, "k", .wait_ms = -1, .lease_ms = 60000);
	expect_answer(OK, a);
	cr_assert_eq(a.grant.flags, BIZLOCK_TOOK_OVER);
	cr_assert_geq(began_us("k"), lease_end);
	cr_assert_leq(began_us("k") - lease_end, (3000 + 4 * round_ms(client(NULL))) * 1000);
	peer_end(&waiter);
	peer_end(&holder);
}

Test(stuck, a_dead_holder_is_waited_for_until_its_lease_ends)
{
	takes_over_in_time(SIGKILL, "auto");
}

Test(stuck, a_dead_holder_is_polled_until_its_lease_ends)
{
	deadlocks_may_happen();
	takes_over_in_time(SIGKILL, "off");
}

/* The stopped holder keeps its doorbell, because its connection is open. */
Test(stuck, a_stopped_holder_is_waited_for_until_its_lease_ends)
{
	takes_over_in_time(SIGSTOP, "auto");
}

Test(stuck, a_stopped_holder_is_polled_until_its_lease_ends)
{
	deadlocks_may_happen();
	takes_over_in_time(SIGSTOP, "off");
}

/* A stopped process has the doorbell of "k", and there is no row. */
static struct peer abandoned_doorbell(void)
{
	struct peer peer = peer_start(&world, NULL);

	expect_answer(OK, peer_acquire(&peer, "k", .lease_ms = 600000));
	peer_signal(&peer, SIGSTOP);
	db_run(world.admin, "DELETE FROM biz_lock");
	return peer;
}

static void past_an_abandoned_doorbell(int64_t wait_ms)
{
	struct peer peer = abandoned_doorbell();
	bizlock *b = client(NULL);
	int64_t start = now_ms();
	const char *mine;

	expect(OK, b, acquire(b, "k", .wait_ms = wait_ms, .lease_ms = 600000));
	cr_assert_lt(now_ms() - start, 5000);
	mine = row_text("k");
	peer_signal(&peer, SIGCONT);
	expect_answer(LOST, peer_release(&peer, "k"));
	cr_assert_str_eq(row_text("k"), mine);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	peer_end(&peer);
}

Test(stuck, an_abandoned_doorbell_does_not_stop_a_single_try)
{
	past_an_abandoned_doorbell(0);
}

Test(stuck, an_abandoned_doorbell_does_not_stop_a_waiter)
{
	past_an_abandoned_doorbell(-1);
}

/* Whoever has the doorbell may have drawn a fence, and get the row after us. It believes in that if
 * its answer comes within 100 ms. */
static void outwaits_the_rival(const bizlock_key *keys, size_t n)
{
	bizlock_acquire_opts opts = OPTS(.flags = BIZLOCK_NO_QUEUE, .lease_ms = 600000);
	bizlock *b = client(NULL);
	int64_t start;

	works(b);
	start = now_ms();
	expect(OK, b, bizlock_acquire_all(b, keys, n, &opts, NULL));
	cr_assert_geq(now_ms() - start, 100);
	expect(OK, b, bizlock_release_all(b, keys, n, NULL));
}

Test(stuck, without_the_doorbell_one_outwaits_whoever_has_it)
{
	const bizlock_key keys[] = {KEY("free"), KEY("k")};
	struct peer peer = abandoned_doorbell();

	outwaits_the_rival(&keys[1], 1);
	outwaits_the_rival(keys, 2);
	peer_end(&peer);
}

/* A lease that is as short as the wait. */
Test(stuck, with_the_shortest_lease_it_is_the_same)
{
	struct peer peer = abandoned_doorbell();
	bizlock *b = client(NULL);

	expect(OK, b,
	       bizlock_acquire(b, KEY("k"),
	                       &OPTS(.flags = BIZLOCK_NO_QUEUE, .wait_ms = PATIENCE_MS,
	                             .lease_ms = BIZLOCK_LEASE_MIN_MS),
	                       NULL));
	peer_end(&peer);
}

/* The row lasts as long as the rest, which may be as long as a number can be. */
Test(stuck, with_the_longest_rest_it_is_the_same)
{
	struct peer peer = abandoned_doorbell();
	bizlock *b = client(NULL);

	expect(OK, b,
	       bizlock_acquire(b, KEY("k"),
	                       &OPTS(.flags = BIZLOCK_NO_QUEUE, .min_hold_ms = UINT32_MAX), NULL));
	cr_assert_gt(
	        db_number(world.admin,
	                  "SELECT TIMESTAMPDIFF(DAY, UTC_TIMESTAMP(6), timeout) FROM biz_lock"),
	        40);
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	peer_end(&peer);
}

/* The doorbell may be that of a contender that waits in line. It gets 200 ms, then it stands
 * still. */
static void gives_those_in_line_time(uint32_t limit, int64_t wait_ms)
{
	struct peer peer = abandoned_doorbell();
	bizlock *b = client(NULL);
	int64_t start;

	works(b);
	start = now_ms();
	expect(OK, b,
	       bizlock_acquire(b, KEY("k"),
	                       &OPTS(.flags = BIZLOCK_SHARED | BIZLOCK_NO_QUEUE, .limit = limit,
	                             .wait_ms = wait_ms),
	                       NULL));
	cr_assert_geq(now_ms() - start, 200);
	peer_end(&peer);
}

Test(stuck, a_sharer_without_the_doorbell_does_not_pass_those_in_line)
{
	gives_those_in_line_time(0, 0);
}

Test(stuck, a_sharer_of_a_few_does_not_either)
{
	gives_those_in_line_time(1, 0);
}

Test(stuck, nor_does_a_sharer_that_waits)
{
	gives_those_in_line_time(0, PATIENCE_MS);
}

Test(stuck, among_sharers_it_is_the_same)
{
	const bizlock_key key = KEY("k");
	struct peer peer = abandoned_doorbell();

	stale_header(world.admin, "k");
	outwaits_the_rival(&key, 1);
	peer_end(&peer);
}

/* The grace counts from the moment when the doorbell was first seen taken in front of a free row,
 * not from the moment when a connection was asked for. */
Test(stuck, a_slow_connection_does_not_use_up_the_grace)
{
	struct peer peer = abandoned_doorbell();
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	struct call call;
	unsigned packets = proxy_packets(p);

	proxy_hold_replies(p, true);
	call_start(&call, b, "k", .owner = "task-1");
	steadily(!atomic_load(&call.done), 500);
	proxy_hold_replies(p, false);
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_gt(proxy_packets(p), packets);
	proxy_stop(p);
	peer_end(&peer);
}

/* The next waiter must not depend on the abandoned doorbell either. */
Test(stuck, behind_an_abandoned_doorbell_the_lock_still_changes_hands)
{
	struct peer peer = abandoned_doorbell();
	struct peer next = peer_start(&world, NULL);
	bizlock *b = client(NULL);
	int64_t released;

	expect(OK, b, acquire(b, "k", .wait_ms = -1, .lease_ms = 600000));
	peer_ask_acquire(&next, "k", .wait_ms = -1);
	steadily(!peer_has_answer(&next), 500);
	released = now_ms();
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect_answer(OK, peer_answer(&next));
	cr_assert_lt(now_ms() - released, MUCH_MS);
	peer_end(&next);
	peer_end(&peer);
}

/* The holder's connections are cut: the doorbell is free, the lock is not. */
Test(stuck, a_lost_doorbell_does_not_give_the_lock_away)
{
	struct peer peer = peer_start(&world, NULL);
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct answer a;

	expect(OK, b, acquire(b, "k", .lease_ms = 600000, .grant = &grant));
	peer_ask_acquire(&peer, "k", .wait_ms = -1);
	eventually(doorbell_waiters(&world) == 1);
	proxy_cut(p);
	eventually(doorbell_waiters(&world) == 0);
	steadily(!peer_has_answer(&peer), 700);
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	a = peer_answer(&peer);
	expect_answer(OK, a);
	cr_assert_gt(a.grant.fence, grant.fence);
	cr_assert_eq(a.grant.flags, 0);
	peer_end(&peer);
	proxy_stop(p);
}

/* The row is free, the waiter has the doorbell, and its connection is cut before it takes the row.
 * It must then take the row with the doorbell on another connection. Without the doorbell, it would
 * go past the client that has it now. */
Test(stuck, a_doorbell_lost_before_the_row_is_taken_is_rung_again)
{
	struct fault cut = {.what = FAULT_CUT, .side = FAULT_REQUESTS};
	struct peer next = peer_start(&world, NULL);
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *holder = client(NULL), *b = client_through(p, NULL);
	struct call call;

	expect(OK, holder, acquire_as(holder, "k", "task-1", .wait_ms = 600000));
	call_start(&call, b, "k", .wait_ms = -1, .owner = "task-2");
	eventually(doorbell_waiters(&world) == 1);
	proxy_arm(p, &cut);
	expect(OK, holder, bizlock_release(holder, KEY("k"), "task-1", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_eq(proxy_fired(p), 1);
	peer_ask_acquire(&next, "k", .wait_ms = -1);
	eventually(doorbell_waiters(&world) == 1);
	steadily(!peer_has_answer(&next), 700);
	eventually(doorbell_waiters(&world) == 1);
	expect(OK, b, bizlock_release(b, KEY("k"), "task-2", NULL));
	expect_answer(OK, peer_answer(&next));
	peer_end(&next);
	proxy_stop(p);
}

/* The same with KILL, as an operator might use it, and before anybody waits. */
Test(stuck, killed_connections_do_not_give_the_lock_away)
{
	bizlock *b = client(NULL), *other;

	expect(OK, b, acquire(b, "k", .lease_ms = 600000));
	kill_connections();
	other = client(NULL);
	expect(BUSY, other, acquire(other, "k"));
	expect(TIMEOUT, other, acquire(other, "k", .wait_ms = 300));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(OK, other, acquire(other, "k"));
}

/* The waiter has the doorbell, because the holder took the lock without. The holder renews, so the
 * end of the lease that the waiter has read is out of date. */
Test(stuck, a_renewed_lease_is_waited_for_to_its_new_end)
{
	struct peer holder = peer_start(&world, OPTIONS("queue", "off"));
	struct peer waiter = peer_start(&world, NULL);
	long long first_end;

	deadlocks_may_happen();
	expect_answer(OK, peer_acquire(&holder, "k", .lease_ms = 2000));
	first_end = row_of(&world, KEY("k")).timeout_us;
	peer_ask_acquire(&waiter, "k", .wait_ms = -1);
	while (server_us() < first_end + 500 * 1000) {
		pause_ms(200);
		expect_answer(OK, peer_renew(&holder, "k"));
		cr_assert(!peer_has_answer(&waiter));
	}
	expect_answer(OK, peer_release(&holder, "k"));
	expect_answer(OK, peer_answer(&waiter));
	peer_end(&waiter);
	peer_end(&holder);
}

/* More microseconds than nanoseconds can count; and a doorbell that somebody has still. */
Test(stuck, behind_a_lease_that_ended_centuries_ago)
{
	bizlock *b = client(NULL), *other = client(NULL);

	expect(OK, b, acquire_as(b, "k", "gone"));
	db_run(world.admin, "UPDATE biz_lock SET timeout = '1000-01-01'");
	expect(OK, other, acquire(other, "k", .wait_ms = 20000));
}
