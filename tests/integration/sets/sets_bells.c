/* The doorbells of a set: a waiter for one of its keys is woken, and so is a set that waits. */
#define _GNU_SOURCE 1
#include <signal.h>

#include "cr_keyset.h"
#include "cr_test.h"
#include "proxy.h"

TestSuite(sets_bells, .init = world_begin, .fini = world_end, .timeout = 240);

#define N 6
#define MUCH_MS 10000 /* much later than anything here should take */

/* How many rows have a doorbell that will ring. */
static long long rung(void)
{
	return db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE bell <> 0");
}

/* ---- woken ---------------------------------------------------------------- */

/* The waiter sends nothing while it waits. After the release it has the lock within a few
 * packets. */
static void woken_without_polls(struct proxy *p, struct call *call, bizlock *holder,
                                const struct keyset *held)
{
	unsigned packets;
	int64_t released;

	call_blocks(call);
	eventually(doorbell_waiters(&world) == 1);
	packets = proxy_packets(p);
	steadily(proxy_packets(p) == packets && !atomic_load(&call->done), 700);
	released = now_ms();
	expect(OK, holder, keyset_release(holder, held, "holder"));
	cr_assert_eq(call_join(call), BIZLOCK_OK, "%s", call->errmsg);
	cr_assert_lt(call->ended - released, MUCH_MS);
	cr_assert_leq(proxy_packets(p) - packets, 10);
}

static void set_is_woken(size_t held_keys)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *a = client(NULL), *b = client_through(p, NULL);
	struct keyset held, s;
	struct call call;

	keyset_make(&held, held_keys, "k");
	keyset_make(&s, N, "k");
	keyset_reverse(&s);
	expect(OK, a, keyset_acquire(a, &held, .owner = "holder"));
	call_start_all(&call, b, &s, .wait_ms = -1, .owner = "waiter");
	woken_without_polls(p, &call, a, &held);
	cr_assert_eq(rung(), N);
	expect(OK, b, keyset_release(b, &s, "waiter"));
	proxy_stop(p);
}

Test(sets_bells, a_set_that_waits_for_one_key_is_woken)
{
	set_is_woken(1);
}

Test(sets_bells, a_set_that_waits_for_a_set_is_woken)
{
	set_is_woken(N);
}

Test(sets_bells, one_that_waits_for_a_key_of_a_set_is_woken)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *a = client(NULL), *b = client_through(p, NULL);
	struct keyset s;
	struct call call;

	keyset_make(&s, N, "k");
	expect(OK, a, keyset_acquire(a, &s, .owner = "holder"));
	cr_assert_eq(rung(), N);
	call_start(&call, b, s.ids[N - 1], .wait_ms = -1, .owner = "waiter");
	woken_without_polls(p, &call, a, &s);
	expect(OK, b, bizlock_release(b, s.keys[N - 1], "waiter", NULL));
	proxy_stop(p);
}

/* The waiter could take the free doorbell again and again, without a pause. */
Test(sets_bells, a_holder_without_a_doorbell_is_not_asked_all_the_time)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *a = client(OPTIONS("queue", "off")), *b = client_through(p, NULL);
	struct keyset s;
	struct call call;
	unsigned packets;

	keyset_make(&s, N, "k");
	expect(OK, a, keyset_acquire(a, &s, .owner = "holder"));
	call_start_all(&call, b, &s, .wait_ms = -1, .owner = "waiter");
	call_blocks(&call);
	packets = proxy_packets(p);
	steadily(!atomic_load(&call.done), 1000);
	cr_assert_lt(proxy_packets(p) - packets, 800);
	expect(OK, a, keyset_release(a, &s, "holder"));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	proxy_stop(p);
}

/* Only the doorbell of that key rings. */
Test(sets_bells, a_key_given_back_alone_wakes_its_waiter)
{
	bizlock *a = client(NULL), *b = client(NULL);
	struct call first, last;
	struct keyset s;

	keyset_make(&s, N, "k");
	expect(OK, a, keyset_acquire(a, &s, .lease_ms = 20 * PATIENCE_MS, .owner = "holder"));
	call_start(&first, b, s.ids[0], .wait_ms = -1, .owner = "first");
	call_start(&last, b, s.ids[N - 1], .wait_ms = -1, .owner = "last");
	eventually(doorbell_waiters(&world) == 2);
	expect(OK, a, bizlock_release(a, s.keys[0], "holder", NULL));
	cr_assert_eq(call_join(&first), BIZLOCK_OK, "%s", first.errmsg);
	cr_assert(!atomic_load(&last.done));
	s.keys[0] = s.keys[N - 1];
	s.n = N - 1;
	expect(OK, a, keyset_release(a, &s, "holder"));
	cr_assert_eq(call_join(&last), BIZLOCK_OK, "%s", last.errmsg);
}

/* ---- given back ------------------------------------------------------------- */

/* A stranger gets all keys and doorbells at once. */
static void all_are_free(struct keyset *s)
{
	bizlock *b = client(NULL);

	keyset_forget(s);
	expect(OK, b, keyset_acquire(b, s, .owner = "stranger"));
	cr_assert_eq(rung(), (long long)s->n);
	expect(OK, b, keyset_release(b, s, "stranger"));
}

Test(sets_bells, they_go_with_the_rows)
{
	bizlock *b = client(NULL);
	struct keyset s;

	keyset_make(&s, N, "k");
	expect(OK, b, keyset_acquire(b, &s));
	expect(OK, b, keyset_release(b, &s, NULL));
	all_are_free(&s);
}

Test(sets_bells, a_set_refused_keeps_none)
{
	bizlock *a = client(NULL), *b = client(NULL);
	struct keyset s;

	keyset_make(&s, N, "k");
	expect(OK, a, acquire_as(a, s.ids[N - 1], "holder"));
	expect(BUSY, b, keyset_acquire(b, &s, .owner = "set"));
	expect(TIMEOUT, b, keyset_acquire(b, &s, .wait_ms = 600, .owner = "set"));
	expect(OK, a, bizlock_release(a, s.keys[N - 1], "holder", NULL));
	all_are_free(&s);
}

/* Each doorbell is given back once, whether its key is lost or not. If not, the next set would have
 * none. */
Test(sets_bells, a_set_found_lost_at_its_release_gives_them_back)
{
	bizlock *b = client(OPTIONS("max_connections", "1"));
	struct keyset s;

	keyset_make(&s, N, "k");
	expect(OK, b, keyset_acquire(b, &s));
	db_run(world.admin, "DELETE FROM biz_lock WHERE biz_id = '%s'", s.ids[1]);
	expect(LOST, b, keyset_release(b, &s, NULL));
	expect(OK, b, keyset_acquire(b, &s));
	cr_assert_eq(rung(), N);
	expect(OK, b, keyset_release(b, &s, NULL));
	all_are_free(&s);
}

/* The set fails because a level that it had already is lost. The keys that it has just taken are
 * given back. */
Test(sets_bells, a_set_that_fails_at_its_last_step_keeps_none)
{
	bizlock *b = client(NULL);
	struct keyset s;

	keyset_make(&s, N, "k");
	expect(OK, b, acquire_as(b, s.ids[0], "set"));
	db_run(world.admin, "DELETE FROM biz_lock");
	expect(LOST, b, keyset_acquire(b, &s, .owner = "set"));
	eventually(rows() == 0);
	expect(LOST, b, bizlock_release(b, s.keys[0], "set", NULL));
	all_are_free(&s);
}

/* Another owner of the same client has two of the keys, with their doorbells on the connection that
 * both would use. A set that is refused must not give those back. */
Test(sets_bells, those_of_another_owner_of_the_client_stay)
{
	bizlock *b = client(OPTIONS("max_connections", "1")), *other = client(NULL);
	struct keyset s;
	struct call call;

	keyset_make(&s, N, "k");
	expect(OK, b, acquire_as(b, s.ids[2], "single"));
	expect(OK, b, acquire_as(b, s.ids[4], "single"));
	expect(BUSY, b, keyset_acquire(b, &s, .owner = "set"));
	cr_assert_eq(rung(), 2);
	call_start(&call, other, s.ids[4], .wait_ms = -1, .owner = "waiter");
	eventually(doorbell_waiters(&world) == 1);
	expect(OK, b, bizlock_release(b, s.keys[2], "single", NULL));
	expect(OK, b, bizlock_release(b, s.keys[4], "single", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
}

/* ---- where there are none ------------------------------------------------------ */

/* One connection takes 256 doorbells. A set that has no room there goes without. */
Test(sets_bells, a_set_that_finds_no_room_goes_without)
{
	bizlock *b = client(OPTIONS("max_connections", "1"));
	struct keyset first, second;

	keyset_make(&first, 200, "a");
	keyset_make(&second, 57, "b");
	expect(OK, b, keyset_acquire(b, &first));
	cr_assert_eq(rung(), 200);
	expect(OK, b, keyset_acquire(b, &second));
	cr_assert_eq(rung(), 200);
	expect(OK, b, keyset_release(b, &first, NULL));
	expect(OK, b, keyset_release(b, &second, NULL));
	all_are_free(&first);
	all_are_free(&second);
}

/* A second connection has room. */
Test(sets_bells, a_set_looks_for_a_connection_with_room)
{
	bizlock *b = client(OPTIONS("max_connections", "2"));
	struct keyset first, second;

	keyset_make(&first, 200, "a");
	keyset_make(&second, 57, "b");
	expect(OK, b, keyset_acquire(b, &first));
	expect(OK, b, keyset_acquire(b, &second));
	cr_assert_eq(rung(), 257);
	expect(OK, b, keyset_release(b, &second, NULL));
	expect(OK, b, keyset_release(b, &first, NULL));
}

/* A stopped process has the doorbell of one key, and the key's row is gone. */
static void past_an_abandoned_doorbell(int64_t wait_ms)
{
	struct peer peer = peer_start(&world, NULL);
	bizlock *b = client(NULL);
	struct keyset s;
	int64_t start;

	keyset_make(&s, N, "k");
	expect_answer(OK, peer_acquire(&peer, s.ids[3], .lease_ms = 60000));
	peer_signal(&peer, SIGSTOP);
	db_run(world.admin, "DELETE FROM biz_lock");
	start = now_ms();
	expect(OK, b, keyset_acquire(b, &s, .wait_ms = wait_ms, .lease_ms = 20 * PATIENCE_MS));
	cr_assert_lt(now_ms() - start, MUCH_MS);
	cr_assert_eq(rung(), 0);
	expect(OK, b, keyset_release(b, &s, NULL));
	peer_signal(&peer, SIGKILL);
	peer_end(&peer);
}

Test(sets_bells, an_abandoned_one_does_not_stop_a_single_try)
{
	past_an_abandoned_doorbell(0);
}

Test(sets_bells, an_abandoned_one_does_not_stop_a_waiter)
{
	past_an_abandoned_doorbell(-1);
}
