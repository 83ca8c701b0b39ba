/* Requests of several keys that wait: woken, too late, cancelled at any stage. */
#define _GNU_SOURCE 1
#include "cr_ask.h"
#include "cr_keyset.h"
#include "cr_tx.h"

TestSuite(asking_sets_waits, .init = tx_world_begin, .fini = tx_world_end, .timeout = 240);

#define N 6

/* Another owner has key `which`. */
static bizlock *holds(bizlock *b, const struct keyset *s, size_t which)
{
	expect(OK, b, acquire_as(b, s->ids[which], "holder"));
	return b;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Its keys but the one that is held are anybody's meanwhile. */
static void waits_empty_handed(bizlock *a, bizlock *b)
{
	static struct ask_all set;
	bizlock *other = client(NULL);

	keyset_make(&set.keys, N, "k");
	holds(a, &set.keys, 3);
	ask_all_for(&set, b, "task", .wait_ms = -1);
	steadily((dispatch_once(b), rows() == 1 && set.ask.calls == 0), 500);
	for (size_t i = 0; i < N; i++) {
		if (i == 3)
			continue;
		expect(OK, other, acquire_as(other, set.keys.ids[i], "other", .wait_ms = 5000));
		expect(OK, other, bizlock_release(other, set.keys.keys[i], "other", NULL));
	}
	cr_assert_eq(set.ask.calls, 0);
	expect(OK, a, bizlock_release(a, set.keys.keys[3], "holder", NULL));
	ask_ends(OK, &set.ask);
	ask_all_has(&set);
	ask_all_gives_back(&set);
}

Test(asking_sets_waits, it_holds_nothing_while_it_waits)
{
	waits_empty_handed(client(NULL), client(NULL));
}

Test(asking_sets_waits, it_holds_nothing_while_it_waits_for_an_owner_of_its_client)
{
	bizlock *b = client(NULL);

	waits_empty_handed(b, b);
}

Test(asking_sets_waits, it_holds_nothing_while_it_polls)
{
	deadlocks_may_happen();
	waits_empty_handed(client(NULL), client(OPTIONS("queue", "off")));
	waits_empty_handed(client(OPTIONS("queue", "off")), client(NULL));
}

Test(asking_sets_waits, the_last_of_several_holders_lets_it_in)
{
	static struct ask_all set;
	bizlock *a = client(NULL), *b = client(NULL);

	keyset_make(&set.keys, N, "k");
	for (size_t i = 0; i < N; i++)
		holds(i % 2 ? a : b, &set.keys, i);
	ask_all_for(&set, b, "task", .wait_ms = -1);
	for (size_t i = 0; i < N; i++) {
		bizlock *holder = i % 2 ? a : b;

		steadily((dispatch_once(b), set.ask.calls == 0), 100);
		expect(OK, holder, bizlock_release(holder, set.keys.keys[i], "holder", NULL));
	}
	ask_ends(OK, &set.ask);
	ask_all_has(&set);
}

/* A request of its client, which came later for a key that is free now, goes before the set: the
 * set waits for another key by then. */
Test(asking_sets_waits, nobody_waits_behind_it_for_a_key_that_is_free)
{
	static struct ask_all set;
	bizlock *a = client(NULL), *b = client(NULL);
	struct ask behind;

	keyset_make(&set.keys, N, "k");
	holds(a, &set.keys, 1);
	holds(a, &set.keys, 4);
	ask_all_for(&set, b, "task", .wait_ms = -1);
	dispatch_until(b, watchers(&world) == 1);
	ask_for(&behind, b, set.keys.ids[1], "behind", .wait_ms = -1);
	steadily((dispatch_once(b), behind.calls == 0), 300);
	expect(OK, a, bizlock_release(a, set.keys.keys[1], "holder", NULL));
	ask_ends(OK, &behind);
	cr_assert_eq(set.ask.calls, 0);
	expect(OK, a, bizlock_release(a, set.keys.keys[4], "holder", NULL));
	ask_release(&behind);
	ask_ends(OK, &behind);
	ask_ends(OK, &set.ask);
	ask_all_has(&set);
}

/* A poll would be 20 packets a second or more. */
Test(asking_sets_waits, it_does_not_poll_for_a_key_that_stays_held)
{
	static struct ask_all set;
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	unsigned before;

	keyset_make(&set.keys, N, "k");
	holds(client(NULL), &set.keys, 3);
	ask_all_for(&set, b, "task", .wait_ms = -1);
	dispatch_until(b, watchers(&world) == 1);
	before = proxy_packets(p);
	steadily(set.ask.calls == 0, 3000);
	cr_assert_lt(proxy_packets(p) - before, 30);
	ask_cancel(&set.ask);
	ask_ends(CANCELLED, &set.ask);
	proxy_stop(p);
}

static void times_out(bizlock *a, bizlock *b)
{
	static struct ask_all set;
	int64_t began = now_ms();

	keyset_make(&set.keys, N, "k");
	holds(a, &set.keys, 2);
	ask_all_for(&set, b, "task", .wait_ms = 700);
	ask_ends(TIMEOUT, &set.ask);
	cr_assert_geq(now_ms() - began, 700);
	cr_assert(strstr(set.ask.errmsg, "test/k-002: held by holder@"), "%s", set.ask.errmsg);
	expect_not_granted(&set.keys);
	cr_assert_eq(rows(), 1);
	expect_none(b, &set.keys, "task");
	expect(OK, a, bizlock_release(a, set.keys.keys[2], "holder", NULL));
}

Test(asking_sets_waits, a_wait_ends_in_time)
{
	bizlock *b = client(NULL);

	times_out(client(NULL), b);
	times_out(b, b);
}

Test(asking_sets_waits, what_a_dead_holder_had_is_taken_over_when_its_lease_ends)
{
	static struct ask_all set;
	bizlock *a = client(NULL), *b = client(NULL);

	keyset_make(&set.keys, N, "k");
	expect(OK, a, acquire(a, set.keys.ids[2], .lease_ms = 1500));
	ask_all_for(&set, b, "task", .wait_ms = -1);
	ask_ends(OK, &set.ask);
	for (size_t i = 0; i < N; i++)
		cr_assert_eq(set.keys.grants[i].flags, i == 2 ? BIZLOCK_TOOK_OVER : 0);
	expect_held(b, &set.keys, "task", 1);
}

/* ---- cancelled ------------------------------------------------------------------------------- */

/* After the cancel of a set: all of its keys are free, or will be in a moment. */
static void is_gone(struct ask_all *set)
{
	expect_not_granted(&set->keys);
	for (size_t i = 0; i < set->keys.n; i++)
		eventually(!row_of(&world, set->keys.keys[i]).there);
	expect_none(set->ask.b, &set->keys, set->ask.owner);
}

Test(asking_sets_waits, a_cancel_comes_before_its_first_step)
{
	static struct ask_all set;
	bizlock *b = client(NULL);

	keyset_make(&set.keys, N, "k");
	ask_all_for(&set, b, "task", .wait_ms = -1);
	ask_cancel(&set.ask);
	dispatch_until(b, set.ask.calls == 1);
	if (set.ask.rc == BIZLOCK_OK)
		ask_all_gives_back(&set);
	else
		is_gone(&set);
}

static void cancelled_while_it_waits(bizlock *a, bizlock *b)
{
	static struct ask_all set;

	keyset_make(&set.keys, N, "k");
	holds(a, &set.keys, 4);
	ask_all_for(&set, b, "task", .wait_ms = -1);
	steadily((dispatch_once(b), set.ask.calls == 0), 300);
	ask_cancel(&set.ask);
	ask_ends(CANCELLED, &set.ask);
	cr_assert_eq(rows(), 1);
	expect(OK, a, bizlock_release(a, set.keys.keys[4], "holder", NULL));
	is_gone(&set);
}

Test(asking_sets_waits, a_cancel_ends_a_wait)
{
	bizlock *b = client(NULL);

	cancelled_while_it_waits(client(NULL), b);
	cancelled_while_it_waits(b, b);
}

static bool sleeps_soon(bizlock *b)
{
	for (int64_t end = now_ms() + 500; doorbell_waiters(&world) != 1; dispatch_once(b))
		if (now_ms() > end)
			return false;
	return true;
}

/* Another client takes the key while it is watched, until the set sleeps at the doorbell. Returns
 * the client that has the key. */
static bizlock *sleeps_at_the_doorbell(struct ask_all *set)
{
	bizlock *has = client(NULL), *next = client(NULL), *b = client(NULL), *swap;

	keyset_make(&set->keys, N, "k");
	holds(has, &set->keys, 3);
	ask_all_for(set, b, "task", .wait_ms = -1);
	for (int64_t end = now_ms() + PATIENCE_MS; !sleeps_soon(b) && now_ms() < end;) {
		struct call call;

		call_start(&call, next, set->keys.ids[3], .wait_ms = -1, .owner = "holder");
		call_blocks(&call);
		if (doorbell_waiters(&world) == 2) { /* the set sleeps, perhaps before the call */
			bizlock_interrupt(next);
			cr_assert_eq(call_join(&call), BIZLOCK_CANCELLED);
			break;
		}
		expect(OK, has, bizlock_release(has, set->keys.keys[3], "holder", NULL));
		cr_assert_eq(call_join(&call), BIZLOCK_OK);
		swap = has;
		has = next;
		next = swap;
	}
	eventually(doorbell_waiters(&world) == 1);
	cr_assert_eq(set->ask.calls, 0);
	return has;
}

Test(asking_sets_waits, a_cancel_ends_a_sleep_at_the_doorbell)
{
	static struct ask_all set;
	bizlock *a = sleeps_at_the_doorbell(&set);

	ask_cancel(&set.ask);
	ask_ends(CANCELLED, &set.ask);
	cr_assert_eq(rows(), 1);
	expect(OK, a, bizlock_release(a, set.keys.keys[3], "holder", NULL));
	is_gone(&set);
}

Test(asking_sets_waits, a_release_ends_a_sleep_at_the_doorbell)
{
	static struct ask_all set;
	bizlock *a = sleeps_at_the_doorbell(&set);

	expect(OK, a, bizlock_release(a, set.keys.keys[3], "holder", NULL));
	ask_ends(OK, &set.ask);
	ask_all_has(&set);
	ask_all_gives_back(&set);
}

Test(asking_sets_waits, a_cancel_ends_polls)
{
	deadlocks_may_happen();
	cancelled_while_it_waits(client(NULL), client(OPTIONS("queue", "off")));
}

/* Its statement waits for a row that somebody is about to make. */
Test(asking_sets_waits, a_cancel_comes_while_its_statement_is_under_way)
{
	static struct ask_all set;
	bizlock *b = client(NULL);

	keyset_make(&set.keys, N, "k");
	db_run(world.admin, "START TRANSACTION");
	db_run(world.admin,
	       "INSERT INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout, gmt_create,"
	       " gmt_modified) VALUES ('k-003', 'test', 'nobody', 1, UTC_TIMESTAMP(6),"
	       " UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))");
	ask_all_for(&set, b, "task", .wait_ms = -1);
	steadily((dispatch_once(b), set.ask.calls == 0), 200);
	ask_cancel(&set.ask);
	db_run(world.admin, "ROLLBACK");
	ask_ends(CANCELLED, &set.ask);
	is_gone(&set);
}

/* Nobody was told yet: the cancel comes too late, or gives all of them back. */
Test(asking_sets_waits, a_cancel_comes_after_the_grant)
{
	static struct ask_all set;
	bizlock *b = client(NULL);

	keyset_make(&set.keys, N, "k");
	ask_all_for(&set, b, "task", .wait_ms = -1);
	eventually(is_readable(b));
	ask_cancel(&set.ask);
	ask_ends(OK, &set.ask);
	ask_all_has(&set);
	ask_all_gives_back(&set);
}

/* As fast as it goes, at any moment. */
Test(asking_sets_waits, a_cancel_at_any_moment_leaves_all_or_none)
{
	enum { ROUNDS = 200 };
	static struct ask_all set;
	bizlock *b = client(NULL);
	int granted = 0, cancelled = 0;

	keyset_make(&set.keys, N, "k");
	for (int round = 0; round < ROUNDS || !granted || !cancelled; round++) {
		ask_all_for(&set, b, "task", .wait_ms = -1);
		for (int spin = 0; spin < round * 2000; spin++)
			atomic_signal_fence(memory_order_seq_cst);
		if (round % 4 == 3)
			pause_ms(round / 16);
		ask_cancel(&set.ask);
		dispatch_until(b, set.ask.calls == 1);
		if (set.ask.rc == BIZLOCK_OK) {
			ask_all_has(&set);
			ask_all_gives_back(&set);
			granted++;
		} else {
			cr_assert_eq(set.ask.rc, BIZLOCK_CANCELLED, "%s", set.ask.errmsg);
			is_gone(&set);
			cancelled++;
		}
	}
}

/* ---- cancelled while it goes deeper ---------------------------------------------------------- */

/* The key that was held is fenced by a transaction: so the set has its other keys, and waits to go
 * deeper. A cancel gives these back, and leaves the level that was there. */
Test(asking_sets_waits, a_cancel_before_the_last_level_gives_the_new_keys_back)
{
	static struct ask_all set;
	bizlock *b = client(NULL);
	MYSQL *tx = tx_open();

	keyset_make(&set.keys, 3, "k");
	expect(OK, b, acquire_as(b, set.keys.ids[1], "task"));
	tx_begin(tx, 1);
	expect(OK, b, bizlock_fence(b, set.keys.keys[1], "task", tx));
	ask_all_for(&set, b, "task", .wait_ms = -1);
	dispatch_until(b, rows() == 3);
	steadily((dispatch_once(b), set.ask.calls == 0), 300);
	ask_cancel(&set.ask);
	ask_ends(CANCELLED, &set.ask);
	eventually(rows() == 1);
	tx_close(tx);
	cr_assert_eq(row_of(&world, set.keys.keys[1]).depth, 1);
	expect(OK, b, bizlock_release(b, set.keys.keys[1], "task", NULL));
	expect_none(b, &set.keys, "task");
}

/* The levels that it went deeper go back, too. */
Test(asking_sets_waits, a_cancel_after_some_levels_gives_these_back)
{
	static struct ask_all set;
	bizlock *b = client(NULL);
	MYSQL *tx = tx_open();

	keyset_make(&set.keys, 2, "k");
	expect(OK, b, keyset_acquire(b, &set.keys, .lease_ms = 60000, .owner = "task"));
	tx_begin(tx, 1);
	expect(OK, b, bizlock_fence(b, set.keys.keys[1], "task", tx));
	ask_all_for(&set, b, "task", .wait_ms = -1);
	dispatch_until(b, row_of(&world, set.keys.keys[0]).depth == 2);
	ask_cancel(&set.ask);
	ask_ends(CANCELLED, &set.ask);
	tx_close(tx);
	cr_assert_eq(row_of(&world, set.keys.keys[0]).depth, 1);
	cr_assert_eq(row_of(&world, set.keys.keys[1]).depth, 1);
	expect(OK, b, keyset_release(b, &set.keys, "task"));
}
