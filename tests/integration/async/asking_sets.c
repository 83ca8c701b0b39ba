/* Requests of several keys: what they ask for and get, what becomes of it, and a close. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <string.h>

#include "cr_ask.h"
#include "cr_keyset.h"
#include "cr_numbers.h"

TestSuite(asking_sets, .init = world_begin, .fini = world_end, .timeout = 240);

#define N 6

/* ---- what is asked for, and answered --------------------------------------------------------- */

static void are_granted(size_t n, const char *const *options)
{
	static struct ask_all a;
	bizlock *b = client(options);

	keyset_make(&a.keys, n, "k");
	keyset_reverse(&a.keys);
	ask_all_for(&a, b, "task", .wait_ms = -1);
	cr_assert_eq(a.ask.calls, 0);
	ask_ends(OK, &a.ask);
	ask_all_has(&a);
	cr_assert_eq(a.ask.grant.fence, a.keys.grants[0].fence);
	ask_all_gives_back(&a);
	cr_assert_eq(all_rows(&world), 0);
	cr_assert_not(is_readable(b));
}

Test(asking_sets, all_are_granted_and_given_back)
{
	are_granted(1, NULL);
	are_granted(2, NULL);
	are_granted(N, NULL);
	are_granted(KEYSET_MAX, NULL);
}

Test(asking_sets, with_few_connections_or_without_batches_too)
{
	are_granted(N, OPTIONS("max_connections", "1"));
	are_granted(N, OPTIONS("combine", "off"));
	are_granted(N, OPTIONS("queue", "off"));
}

/* One packet takes them all, and one batch gives them back: a few packets, and not two a key. */
Test(asking_sets, they_cost_a_few_packets)
{
	enum { KEYS = 100 };
	static struct ask_all a;
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("combine", "on"));
	unsigned before;

	keyset_make(&a.keys, KEYS, "k");
	works(b);
	before = proxy_packets(p);
	ask_all_for(&a, b, "task", .wait_ms = -1);
	ask_ends(OK, &a.ask);
	ask_all_gives_back(&a);
	cr_assert_lt(proxy_packets(p) - before, KEYS / 4);
	proxy_stop(p);
}

static void never(void *arg, const bizlock_result *result)
{
	(void)arg;
	(void)result;
	cr_assert_fail("nothing was started");
}

static void refused(bizlock *b, const bizlock_key *keys, size_t n, const char *owner,
                    const char *word)
{
	bizlock_acquire_opts opts = OPTS(.owner = owner);
	uint64_t request = 0;

	expect(INVALID, b, bizlock_acquire_all_start(b, keys, n, &opts, never, NULL, &request));
	expect_message(b, word);
	expect(INVALID, b, bizlock_release_all_start(b, keys, n, owner, never, NULL, &request));
	expect_message(b, word);
	cr_assert_eq(request, 0);
}

Test(asking_sets, arguments_are_checked_at_once)
{
	bizlock_acquire_opts opts = OPTS(.owner = "task", .flags = BIZLOCK_SHARED);
	bizlock *b = client(NULL), *closed = client_new(&world, NULL);
	bizlock_key bad[] = {KEY("a"), KEY("")}, twice[] = {KEY("a"), KEY("b"), KEY("a")};
	static struct keyset many;
	unsigned calls;

	keyset_make(&many, KEYSET_MAX + 1, "k");
	refused(b, many.keys, 0, "task", "n is 0");
	refused(b, many.keys, many.n, "task", "n is 257");
	refused(b, NULL, 2, "task", "keys is NULL");
	refused(b, bad, 2, "task", "keys[1]");
	refused(b, twice, 3, "task", "test/a is there twice");
	refused(b, many.keys, 2, NULL, "owner is NULL");
	refused(b, many.keys, 2, "17", "owner");
	expect(INVALID, b, bizlock_acquire_all_start(b, many.keys, 2, &opts, never, NULL, NULL));
	expect_message(b, "BIZLOCK_SHARED");
	opts.flags = 0;
	expect(INVALID, b, bizlock_acquire_all_start(b, many.keys, 2, &opts, NULL, NULL, NULL));
	expect(MISUSE, closed,
	       bizlock_acquire_all_start(closed, many.keys, 2, &opts, never, NULL, NULL));
	expect(MISUSE, closed,
	       bizlock_release_all_start(closed, many.keys, 2, "task", never, NULL, NULL));
	expect(OK, b, bizlock_dispatch(b, &calls));
	cr_assert_eq(calls, 0);
	bizlock_close(closed);
}

Test(asking_sets, who_does_not_wait_is_told_which_key_is_held)
{
	static struct ask_all a;
	bizlock *other = client(NULL), *b = client(NULL);

	keyset_make(&a.keys, N, "k");
	expect(OK, other, acquire_as(other, a.keys.ids[3], "holder"));
	ask_all_for(&a, b, "task", .wait_ms = 0);
	ask_ends(BUSY, &a.ask);
	cr_assert(strstr(a.ask.errmsg, "acquire_all: test/k-003: held by holder@"), "%s",
	          a.ask.errmsg);
	expect_not_granted(&a.keys);
	cr_assert_eq(rows(), 1);
}

/* ---- some of the keys are held already ------------------------------------------------------- */

Test(asking_sets, what_is_held_already_is_one_level_deeper)
{
	static struct ask_all set;
	bizlock *b = client(NULL);

	keyset_make(&set.keys, N, "k");
	expect(OK, b, acquire_as(b, set.keys.ids[2], "task"));
	expect(OK, b, acquire_as(b, set.keys.ids[4], "task"));
	ask_all_for(&set, b, "task", .wait_ms = -1);
	ask_ends(OK, &set.ask);
	for (size_t i = 0; i < N; i++) {
		unsigned depth = i == 2 || i == 4 ? 2 : 1;

		cr_assert_eq(set.keys.grants[i].depth, depth);
		cr_assert_eq(row_of(&world, set.keys.keys[i]).depth, depth);
		cr_assert_eq(row_of(&world, set.keys.keys[i]).fence, set.keys.grants[i].fence);
	}
	ask_all_release(&set);
	ask_ends(OK, &set.ask);
	cr_assert_eq(rows(), 2);
	ask_all_release(&set);
	ask_ends(NOT_OWNER, &set.ask);
	cr_assert(strstr(set.ask.errmsg, "release_all: test/k-000: task@"), "%s", set.ask.errmsg);
	cr_assert_eq(rows(), 0);
}

/* ---- released -------------------------------------------------------------------------------- */

Test(asking_sets, the_first_error_of_a_release_is_told_and_the_others_are_free)
{
	static struct ask_all set;
	bizlock *a = client(NULL), *b = client(NULL);

	keyset_make(&set.keys, N, "k");
	keyset_reverse(&set.keys);
	ask_all_for(&set, b, "task", .wait_ms = -1);
	ask_ends(OK, &set.ask);
	expect(OK, b, bizlock_release(b, set.keys.keys[4], "task", NULL));
	expect(OK, a, bizlock_break(a, set.keys.keys[1], set.keys.grants[1].fence));
	ask_all_release(&set);
	ask_ends(LOST, &set.ask);
	cr_assert(strstr(set.ask.errmsg, "release_all: test/k-004: the hold is over"), "%s",
	          set.ask.errmsg);
	cr_assert_eq(rows(), 0);
	expect_none(b, &set.keys, "task");
}

Test(asking_sets, threads_and_requests_give_back_each_others_sets)
{
	static struct ask_all set;
	bizlock *b = client(NULL);

	keyset_make(&set.keys, N, "k");
	ask_all_for(&set, b, "task", .wait_ms = -1);
	ask_ends(OK, &set.ask);
	expect(OK, b, keyset_release(b, &set.keys, "task"));
	expect(OK, b, keyset_acquire(b, &set.keys, .lease_ms = 60000, .owner = "task"));
	ask_all_gives_back(&set);
	cr_assert_eq(all_rows(&world), 0);
}

/* A release wakes who waits for any of the keys, in this client or another. */
Test(asking_sets, a_release_wakes_the_waiters_of_each_key)
{
	static struct ask_all set;
	static struct ask asks[N];
	bizlock *a = client(NULL), *b = client(NULL);

	keyset_make(&set.keys, N, "k");
	ask_all_for(&set, b, "task", .wait_ms = -1);
	ask_ends(OK, &set.ask);
	for (int i = 0; i < N; i++)
		ask_for(&asks[i], i % 2 ? a : b, set.keys.ids[i], "next", .wait_ms = -1);
	steadily((dispatch_once(a), dispatch_once(b), asks[0].calls + asks[1].calls == 0), 300);
	ask_all_gives_back(&set);
	for (int i = 0; i < N; i++)
		ask_ends(OK, &asks[i]);
}

/* ---- what becomes of held sets --------------------------------------------------------------- */

Test(asking_sets, a_set_is_renewed)
{
	static struct ask_all set;
	bizlock *b = client(NULL);
	uint32_t lease_ms = busy_lease_ms(b, 1000);

	keyset_make(&set.keys, N, "k");
	ask_all_for(&set, b, "task", .wait_ms = -1, .lease_ms = lease_ms);
	ask_ends(OK, &set.ask);
	pause_ms(3 * lease_ms);
	ask_all_has(&set);
	ask_all_gives_back(&set);
}

/* Each of its keys is told, and behind the grant: there is no descriptor, so a thread of the
 * client's would tell them at any time. */
Test(asking_sets, each_key_that_is_lost_is_told_once_and_behind_the_grant)
{
	static struct ask_all set;
	static struct losses lost;
	bizlock *b = client(NULL);

	keyset_make(&set.keys, N, "k");
	losses_watch(&lost, b);
	ask_all_for(&set, b, "task", .wait_ms = -1, .lease_ms = 300, .flags = BIZLOCK_NO_RENEW);
	eventually(numbers_of(b).lost == N);
	steadily(atomic_load(&lost.count) == 0, 200);
	expect(OK, b, bizlock_dispatch(b, NULL));
	cr_assert_eq(set.ask.calls, 1);
	cr_assert_eq(set.ask.rc, BIZLOCK_OK);
	eventually(atomic_load(&lost.count) == N);
	steadily(atomic_load(&lost.count) == N, 200);
	for (size_t i = 0; i < N; i++) {
		size_t told = 0;

		for (size_t j = 0; j < N; j++)
			told += strcmp(lost.list[j].id, set.keys.ids[i]) == 0 &&
			        lost.list[j].fence == set.keys.grants[i].fence;
		cr_assert_eq(told, 1, "%s", set.keys.ids[i]);
	}
	ask_all_release(&set);
	ask_ends(LOST, &set.ask);
}

/* The first one has waited in vain for the table. So the others ask first whether the table is
 * locked, and the time of most is over by then: no other session is to blame. */
Test(asking_sets, nobody_is_blamed_for_a_table_that_was_locked)
{
	enum { SETS = 64 };
	static struct ask_all first, sets[SETS];
	MYSQL *admin = db_open(&world.at, world.schema);
	bizlock *b = client(NULL);

	works(b);
	db_run(admin, "LOCK TABLES biz_lock WRITE");
	keyset_make(&first.keys, N, "first");
	ask_all_for(&first, b, "task", .wait_ms = 1);
	ask_ends(TIMEOUT, &first.ask);
	cr_assert(strstr(first.ask.errmsg, "locked by another session"), "%s", first.ask.errmsg);
	db_run(admin, "UNLOCK TABLES");
	for (int i = 0; i < SETS; i++) {
		char prefix[16];

		snprintf(prefix, sizeof(prefix), "k-%d", i);
		keyset_make(&sets[i].keys, N, prefix);
		ask_all_for(&sets[i], b, "task", .wait_ms = 1);
	}
	for (int i = 0; i < SETS; i++) {
		dispatch_until(b, sets[i].ask.calls == 1);
		cr_assert_null(strstr(sets[i].ask.errmsg, "locked"), "%s", sets[i].ask.errmsg);
	}
	mysql_close(admin);
}

/* ---- a close --------------------------------------------------------------------------------- */

Test(asking_sets, a_close_answers_what_waits_and_gives_back_what_was_not_told)
{
	static struct ask_all waits, untold, told;
	bizlock *other = client(NULL), *b = client_open(&world, OPTIONS("release_on_close", "off"));

	keyset_make(&told.keys, N, "told");
	ask_all_for(&told, b, "task", .wait_ms = -1);
	ask_ends(OK, &told.ask);
	keyset_make(&waits.keys, N, "waits");
	expect(OK, other, acquire_as(other, waits.keys.ids[1], "holder"));
	ask_all_for(&waits, b, "task", .wait_ms = -1);
	keyset_make(&untold.keys, N, "untold");
	ask_all_for(&untold, b, "task", .wait_ms = -1);
	eventually(rows() == N + 1 + N);
	bizlock_close(b);
	cr_assert_eq(waits.ask.calls, 1);
	cr_assert_eq(waits.ask.rc, BIZLOCK_CANCELLED);
	cr_assert_eq(untold.ask.calls, 1);
	cr_assert_eq(untold.ask.rc, BIZLOCK_CANCELLED);
	expect_not_granted(&untold.keys);
	cr_assert_eq(rows(), N + 1);
}

/* A close takes no longer than io_timeout_ms, and leaves what it could not give back by then; a
 * busy machine takes its time. */
Test(asking_sets, a_close_comes_at_any_moment)
{
	enum { SETS = 40 };
	static struct ask_all sets[SETS];

	for (int round = 0; round < 10; round++) {
		bizlock *b = client_open(&world, OPTIONS("io_timeout_ms", "60000"));
		int all = 0;

		for (int i = 0; i < SETS; i++) {
			char prefix[8], owner[16];

			snprintf(prefix, sizeof(prefix), "k%d", i / 4);
			snprintf(owner, sizeof(owner), "task-%d", i);
			keyset_make(&sets[i].keys, N, prefix);
			ask_all_for(&sets[i], b, owner, .wait_ms = -1);
		}
		for (int i = 0; i < round; i++)
			dispatch_once(b);
		for (int i = 0; i < SETS; i++)
			if (sets[i].ask.calls == 1 && sets[i].ask.rc == BIZLOCK_OK && i % 3)
				ask_all_release(&sets[i]);
		bizlock_close(b);
		for (int i = 0; i < SETS; i++)
			all += sets[i].ask.calls;
		cr_assert_eq(all, SETS);
		cr_assert_eq(locks_there(&world), 0);
	}
}
