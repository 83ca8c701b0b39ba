/* Waits for shared locks, for which no connection is left or which are requests: they are watched.
 * A watcher that is not woken looks once a second, so that N keys, one after the other, would take
 * N/2 seconds, beside what a busy machine takes for all that. */
#include <stdio.h>

#include "cr_ask.h"

TestSuite(asking_shared_waits, .init = world_begin, .fini = world_end, .timeout = 240);

#define S BIZLOCK_SHARED
#define X 0
#define N 12
#define SOON (N * 1000 / 3)
#define STEPS 4 /* of a wake-up, each of which takes no longer than a round */

static int take(bizlock *b, const char *id, const char *owner, uint32_t flags, uint32_t limit)
{
	return bizlock_acquire(b, KEY(id),
	                       &OPTS(.wait_ms = 0, .owner = owner, .flags = flags, .limit = limit,
	                             .lease_ms = 20 * PATIENCE_MS),
	                       NULL);
}

static void give(bizlock *b, const char *id, const char *owner)
{
	expect(OK, b, bizlock_release(b, KEY(id), owner, NULL));
}

static long long first_in_line(void)
{
	return db_number(world.admin,
	                 "SELECT COUNT(*) FROM biz_lock WHERE slot = 0 AND owner <> ''");
}

static const char *key(int i)
{
	static char ids[N][8];

	snprintf(ids[i], sizeof(ids[i]), "k-%d", i);
	return ids[i];
}

static void each_is_woken(struct ask a[N], bizlock *other, const char *owner)
{
	int64_t took = 0, rounds = 0;

	for (int i = 0; i < N; i++) {
		rounds += round_ms(other);
		took -= now_ms();
		give(other, key(i), owner);
		ask_ends(OK, &a[i]);
		took += now_ms();
	}
	cr_assert_lt(took, SOON + STEPS * rounds);
}

Test(asking_shared_waits, the_first_in_line_is_woken)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct ask a[N];

	for (int i = 0; i < N; i++) {
		expect(OK, other, take(other, key(i), "sharer", S, 0));
		ask_for(&a[i], b, key(i), "alone", .wait_ms = -1, .flags = X);
	}
	dispatch_until(b, first_in_line() == N && watchers(&world) == 1);
	each_is_woken(a, other, "sharer");
}

Test(asking_shared_waits, a_slot_that_becomes_free_wakes_it)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct ask a[N];

	for (int i = 0; i < N; i++) {
		expect(OK, other, take(other, key(i), "sharer", S, 1));
		ask_for(&a[i], b, key(i), "next", .wait_ms = -1, .flags = S, .limit = 1);
	}
	dispatch_until(b, watchers(&world) == 1);
	steadily((dispatch_once(b), a[N - 1].calls == 0), 500);
	each_is_woken(a, other, "sharer");
}

/* They wait for the doorbell of who has it alone. */
Test(asking_shared_waits, those_in_line_are_woken)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct ask a[N];

	for (int i = 0; i < N; i++) {
		expect(OK, other,
		       bizlock_acquire(
		               other, KEY(key(i)),
		               &OPTS(.owner = "alone", .flags = X, .lease_ms = 20 * PATIENCE_MS),
		               NULL));
		ask_for(&a[i], b, key(i), "sharer", .wait_ms = -1, .flags = i % 2 ? S : X);
	}
	dispatch_until(b, watchers(&world) == 1);
	steadily((dispatch_once(b), a[N - 1].calls == 0), 500);
	each_is_woken(a, other, "alone");
}

/* Of those that wait for a slot, each gives the doorbell to the next as soon as it has one. */
Test(asking_shared_waits, who_gets_a_slot_lets_the_next_one_come_first)
{
	bizlock *b = client(NULL), *other = client(NULL), *third = client(NULL);
	struct ask a[N], t[N];
	int64_t took = 0, rounds = 0;

	for (int i = 0; i < N; i++) {
		expect(OK, other, take(other, key(i), "h1", S, 2));
		expect(OK, other, take(other, key(i), "h2", S, 2));
		ask_for(&t[i], third, key(i), "t", .wait_ms = -1, .flags = S, .limit = 2);
	}
	dispatch_until(third, watchers(&world) == 1);
	for (int i = 0; i < N; i++)
		ask_for(&a[i], b, key(i), "a", .wait_ms = -1, .flags = S, .limit = 2);
	dispatch_until(b, watchers(&world) == 2);
	steadily((dispatch_once(b), a[N - 1].calls == 0), 500);
	for (int i = 0; i < N; i++) {
		rounds += round_ms(other);
		took -= now_ms();
		give(other, key(i), "h1");
		give(other, key(i), "h2");
		ask_ends(OK, &t[i]);
		ask_ends(OK, &a[i]);
		took += now_ms();
	}
	cr_assert_lt(took, 3 * SOON / 2 + 2 * STEPS * rounds);
}

/* A release wakes the first in line. The next one must be that soon, and not by its watcher's next
 * look: each time it is a new one, which sleeps for about a second by then. */
Test(asking_shared_waits, who_gives_up_lets_the_next_one_come_first)
{
	enum { TIMES = 3 };
	bizlock *other = client(NULL);
	int64_t took = 0, rounds = 0;

	for (int i = 0; i < TIMES; i++) {
		bizlock *b = client_open(&world, NULL);
		struct call first;
		struct ask a;

		expect(OK, other, take(other, key(i), "sharer", S, 1));
		call_prepare(&first, other, key(i), .wait_ms = 1800, .owner = "first");
		first.opts.flags = S;
		first.opts.limit = 1;
		call_go(&first);
		eventually(shared_sleepers(&world) == 1);
		ask_for(&a, b, key(i), "next", .wait_ms = -1, .flags = S, .limit = 1);
		dispatch_until(b, atomic_load(&first.done));
		cr_assert_eq(call_join(&first), BIZLOCK_TIMEOUT, "%s", first.errmsg);
		rounds += round_ms(other);
		took -= now_ms();
		give(other, key(i), "sharer");
		ask_ends(OK, &a);
		took += now_ms();
		bizlock_close(b);
	}
	cr_assert_lt(took, TIMES * 200 + STEPS * rounds);
}

/* A poll would be 50 packets a second. */
Test(asking_shared_waits, nobody_polls_meanwhile)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL), *behind = client_through(p, NULL);
	bizlock *other = client(NULL);
	struct ask alone, late;
	unsigned before;

	expect(OK, other, take(other, "k", "sharer", S, 0));
	ask_for(&alone, b, "k", "alone", .wait_ms = -1, .flags = X);
	dispatch_until(b, first_in_line() == 1 && watchers(&world) == 1);
	ask_for(&late, behind, "k", "late", .wait_ms = -1, .flags = S);
	dispatch_until(behind, watchers(&world) == 2);
	before = proxy_packets(p);
	steadily(alone.calls + late.calls == 0, 3000);
	cr_assert_lt(proxy_packets(p) - before, 60);
	ask_cancel(&late);
	ask_ends(CANCELLED, &late);
	ask_cancel(&alone);
	ask_ends(CANCELLED, &alone);
	proxy_stop(p);
}

/* The first in line has the doorbell then, and waits for slot 0. Each look would be 2 packets. */
Test(asking_shared_waits, nobody_polls_where_the_holder_has_no_doorbell)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL), *threads = client_through(p, NULL);
	bizlock *other = client(NULL);
	struct call call;
	struct ask a;
	unsigned before;

	for (int i = 0; i < 2; i++)
		expect(OK, other, take(other, key(i), "alone", X | BIZLOCK_NO_QUEUE, 0));
	ask_for(&a, b, key(0), "request", .wait_ms = -1, .flags = X);
	call_prepare(&call, threads, key(1), .wait_ms = -1, .owner = "thread");
	call.opts.flags = X;
	call_go(&call);
	dispatch_until(b, watchers(&world) == 1 && shared_sleepers(&world) == 1);
	before = proxy_packets(p);
	steadily((dispatch_once(b), a.calls == 0), 3000);
	cr_assert_lt(proxy_packets(p) - before, 60);
	give(other, key(0), "alone");
	ask_ends(OK, &a);
	give(other, key(1), "alone");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	proxy_stop(p);
}

/* Of 4 connections, one or two may sleep at a doorbell. */
Test(asking_shared_waits, threads_without_a_connection_are_woken)
{
	bizlock *b = client(OPTIONS("max_connections", "4")), *other = client(NULL);
	struct call calls[N];
	char owners[N][8];
	int64_t took = 0, rounds = 0;

	for (int i = 0; i < N; i++) {
		expect(OK, other, take(other, key(i), "alone", X, 0));
		snprintf(owners[i], sizeof(owners[i]), "t-%d", i);
		call_prepare(&calls[i], b, key(i), .wait_ms = -1, .owner = owners[i]);
		calls[i].opts.flags = S;
		calls[i].opts.limit = i % 2;
		call_go(&calls[i]);
	}
	eventually(watchers(&world) == 1);
	steadily(!atomic_load(&calls[0].done), 500);
	for (int i = 0; i < N; i++) {
		rounds += round_ms(other);
		took -= now_ms();
		give(other, key(i), "alone");
		cr_assert_eq(call_join(&calls[i]), BIZLOCK_OK, "%s", calls[i].errmsg);
		took += now_ms();
	}
	cr_assert_lt(took, SOON + STEPS * rounds);
}

/* Sharers pass while nobody has the doorbell. Here another one has it when somebody goes for it who
 * wants it alone, and nobody when that one looks, which must not be content with looking. */
struct passed {
	struct proxy *proxy;
	bizlock *b, *other;
	struct call first;
	unsigned packets;
};

#define SHARER(turn) ((turn) ? "sharer-1" : "sharer-0")

static void begin_passed(struct passed *p, const char *max_connections)
{
	p->proxy = proxy_start(&world.at, "127.0.0.1");
	p->b = client_through(p->proxy, OPTIONS("max_connections", max_connections));
	p->other = client(NULL);
	expect(OK, p->other, take(p->other, "k", SHARER(0), S, 0));
	call_prepare(&p->first, p->other, "k", .wait_ms = 1500, .owner = "first");
	p->first.opts.flags = S;
	p->first.opts.limit = 1;
	call_go(&p->first);
	eventually(shared_sleepers(&world) == 1);
	expect(OK, p->b, take(p->b, "connects", "owner", S, 0));
	p->packets = proxy_packets(p->proxy);
	proxy_hold_replies(p->proxy, true);
}

/* Its try is at the server. */
static void pass(struct passed *p, bool is_cut)
{
	int64_t end = now_ms() + PATIENCE_MS;
	int turn = 0;

	dispatch_until(p->b, proxy_packets(p->proxy) > p->packets);
	cr_assert_eq(call_join(&p->first), BIZLOCK_TIMEOUT, "%s", p->first.errmsg);
	if (is_cut)
		proxy_cut(p->proxy);
	proxy_hold_replies(p->proxy, false);
	for (; take(p->other, "k", SHARER(!turn), S, 0) == BIZLOCK_OK; turn = !turn) {
		give(p->other, "k", SHARER(turn));
		dispatch_once(p->b);
		cr_assert_lt(now_ms(), end, "they pass it");
	}
	give(p->other, "k", SHARER(turn));
}

static void request_is_not_passed(bool is_cut)
{
	struct passed p;
	struct ask alone;

	begin_passed(&p, "16");
	ask_for(&alone, p.b, "k", "alone", .wait_ms = -1, .flags = X);
	pass(&p, is_cut);
	ask_ends(OK, &alone);
	proxy_stop(p.proxy);
}

Test(asking_shared_waits, those_that_share_do_not_pass_it_for_ever)
{
	request_is_not_passed(false);
}

Test(asking_shared_waits, nor_where_its_first_reply_was_lost)
{
	request_is_not_passed(true);
}

Test(asking_shared_waits, nor_a_thread_without_a_connection_to_sleep_on)
{
	struct passed p;
	struct call alone;

	begin_passed(&p, "1");
	call_prepare(&alone, p.b, "k", .wait_ms = -1, .owner = "alone");
	alone.opts.flags = X;
	call_go(&alone);
	pass(&p, false);
	cr_assert_eq(call_join(&alone), BIZLOCK_OK, "%s", alone.errmsg);
	proxy_stop(p.proxy);
}

/* A watcher sleeps by a statement that asks for some of its keys. Rows that nobody gives back by a
 * release wake nobody. */
Test(asking_shared_waits, of_more_than_one_statement_asks_for_none_is_forgotten)
{
	enum { MANY = 300, EACH = 25 };
	bizlock *b = client(OPTIONS("max_connections", "4")), *other = client(NULL);
	struct ask a[MANY];
	char ids[MANY][8];

	for (int i = 0; i < MANY; i++) {
		snprintf(ids[i], sizeof(ids[i]), "m-%d", i);
		expect(OK, other, take(other, ids[i], "sharer", S, 0));
		ask_for(&a[i], b, ids[i], "alone", .wait_ms = -1, .flags = X);
	}
	dispatch_until(b, first_in_line() == MANY && watchers(&world) == 1);
	for (int i = 0; i < MANY; i += EACH) {
		db_run(world.admin, "DELETE FROM biz_lock WHERE biz_id = '%s' AND slot > 0",
		       ids[i]);
		ask_ends(OK, &a[i]);
	}
	for (int i = 0; i < MANY; i++)
		if (i % EACH)
			ask_cancel(&a[i]);
	for (int i = 0; i < MANY; i++)
		if (i % EACH)
			ask_ends(CANCELLED, &a[i]);
}
