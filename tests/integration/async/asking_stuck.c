/* One request hangs at the server: what becomes of the others. */
#include "cr_ask.h"
#include "cr_numbers.h"

#include <stdio.h>

TestSuite(asking_stuck, .init = world_begin, .fini = world_end, .timeout = 240);

struct stuck {
	struct proxy *p;
	bizlock *b;
};

/* The answer to its first packet never comes, for as long as the test lasts. */
static struct stuck begin_stuck(struct ask *hangs)
{
	struct fault fault = {.what = FAULT_SWALLOW, .side = FAULT_REPLIES};
	struct stuck s = {.p = proxy_start(&world.at, "127.0.0.1")};

	s.b = client_through(s.p, OPTIONS("io_timeout_ms", "60000"));
	works(s.b);
	proxy_arm(s.p, &fault);
	ask_for(hangs, s.b, "hangs", "hangs", .wait_ms = -1);
	eventually(proxy_fired(s.p) == 1);
	return s;
}

/* It hangs still: its statement was neither answered nor sent again. */
static void end_stuck(struct stuck *s, const struct ask *hangs)
{
	cr_assert_eq(hangs->calls, 0);
	cr_assert_eq(numbers_of(s->b).retried_lost, 0);
	proxy_stop(s->p);
}

Test(asking_stuck, free_keys_are_granted_and_given_back)
{
	enum { N = 100 };
	static struct ask hangs, asks[N];
	struct stuck s = begin_stuck(&hangs);

	for (int i = 0; i < N; i++) {
		char id[16];

		snprintf(id, sizeof(id), "k-%d", i);
		ask_once(&asks[i], s.b, id, "task");
	}
	for (int i = 0; i < N; i++)
		ask_ends(OK, &asks[i]);
	for (int i = 0; i < N; i++)
		ask_release(&asks[i]);
	for (int i = 0; i < N; i++)
		ask_ends(OK, &asks[i]);
	end_stuck(&s, &hangs);
}

Test(asking_stuck, sets_are_granted_and_given_back)
{
	enum { SETS = 20 };
	static struct ask_all sets[SETS];
	static struct ask hangs;
	struct stuck s = begin_stuck(&hangs);

	for (int i = 0; i < SETS; i++) {
		char prefix[16];

		snprintf(prefix, sizeof(prefix), "k-%d", i);
		keyset_make(&sets[i].keys, 5, prefix);
		ask_all_for(&sets[i], s.b, "task", .wait_ms = -1);
	}
	for (int i = 0; i < SETS; i++)
		ask_ends(OK, &sets[i].ask);
	for (int i = 0; i < SETS; i++)
		ask_all_release(&sets[i]);
	for (int i = 0; i < SETS; i++)
		ask_ends(OK, &sets[i].ask);
	end_stuck(&s, &hangs);
}

/* Beside it another request waits for "k", which `other` holds. */
static struct stuck begin_waiting(struct ask *hangs, struct ask *waits, bizlock *other,
                                  int64_t wait_ms)
{
	struct stuck s = begin_stuck(hangs);

	expect(OK, other, acquire_as(other, "k", "other"));
	ask_for(waits, s.b, "k", "task", .wait_ms = wait_ms);
	return s;
}

Test(asking_stuck, a_wait_is_cancelled)
{
	static struct ask hangs, waits;
	struct stuck s = begin_waiting(&hangs, &waits, client(NULL), -1);

	dispatch_until(s.b, watchers(&world) == 1);
	ask_cancel(&waits);
	ask_ends(CANCELLED, &waits);
	end_stuck(&s, &hangs);
}

/* From the next answer on, the server is away. */
static void take_away(struct proxy *p)
{
	struct fault cut = {.what = FAULT_CUT, .side = FAULT_REPLIES, .for_ever = true};

	proxy_arm(p, &cut);
}

/* The request has lost an answer, and tries again, until it is cancelled. */
static void is_cancelled_in_doubt(struct proxy *p, struct ask *a)
{
	eventually(numbers_of(a->b).retried_lost > 0);
	steadily(a->calls == 0, 300);
	ask_cancel(a);
	dispatch_until(a->b, a->calls > 0);
	cr_assert(a->rc == BIZLOCK_CANCELLED || a->rc == BIZLOCK_UNKNOWN, "%s", a->errmsg);
	proxy_arm(p, NULL);
}

/* Its rows may be there, and must go before it can try again. */
Test(asking_stuck, a_set_in_doubt_is_cancelled)
{
	static struct ask_all set;
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("io_timeout_ms", "60000"));

	works(b);
	keyset_make(&set.keys, 3, "set");
	take_away(p);
	ask_all_for(&set, b, "task", .wait_ms = -1);
	is_cancelled_in_doubt(p, &set.ask);
	eventually(locks_there(&world) == 0);
	proxy_stop(p);
}

Test(asking_stuck, a_reentry_in_doubt_is_cancelled)
{
	static struct ask first, again;
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("io_timeout_ms", "60000"));

	ask_for(&first, b, "k", "task", .wait_ms = -1);
	ask_ends(OK, &first);
	take_away(p);
	ask_for(&again, b, "k", "task", .wait_ms = -1);
	is_cancelled_in_doubt(p, &again);
	ask_release(&first);
	ask_ends(OK, &first);
	eventually(locks_there(&world) == 0);
	proxy_stop(p);
}

Test(asking_stuck, a_deadline_is_kept)
{
	static struct ask hangs, waits;
	struct stuck s = begin_waiting(&hangs, &waits, client(NULL), 300);

	ask_ends(TIMEOUT, &waits);
	end_stuck(&s, &hangs);
}

Test(asking_stuck, a_release_wakes_who_waits)
{
	static struct ask hangs, waits;
	bizlock *other = client(NULL);
	struct stuck s = begin_waiting(&hangs, &waits, other, -1);

	dispatch_until(s.b, watchers(&world) == 1);
	expect(OK, other, bizlock_release(other, KEY("k"), "other", NULL));
	ask_ends(OK, &waits);
	end_stuck(&s, &hangs);
}

Test(asking_stuck, nor_do_several_that_hang_stop_the_others)
{
	static struct ask hangs, more[4], free_one;
	struct stuck s = begin_stuck(&hangs);

	for (int i = 0; i < 4; i++) {
		struct fault fault = {.what = FAULT_SWALLOW, .side = FAULT_REPLIES};
		char id[16];

		snprintf(id, sizeof(id), "more-%d", i);
		proxy_arm(s.p, &fault);
		ask_for(&more[i], s.b, id, "task", .wait_ms = -1);
		eventually(proxy_fired(s.p) == 1);
	}
	ask_once(&free_one, s.b, "free", "task");
	ask_ends(OK, &free_one);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(more[i].calls, 0);
	end_stuck(&s, &hangs);
}

/* As many statements and dials as requests may have under way. */
Test(asking_stuck, a_cancel_is_answered_although_all_threads_wait)
{
	enum { SETS = 20 };
	static struct ask_all sets[SETS];
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(
	        p, OPTIONS("io_timeout_ms", "600000", "connect_timeout_ms", "600000"));

	works(b);
	proxy_hold_replies(p, true);
	for (int i = 0; i < SETS; i++) {
		char prefix[16];

		snprintf(prefix, sizeof(prefix), "k-%d", i);
		keyset_make(&sets[i].keys, 3, prefix);
		ask_all_for(&sets[i], b, "task", .wait_ms = -1);
	}
	steadily((dispatch_once(b), sets[0].ask.calls == 0), 500);
	ask_cancel(&sets[SETS - 1].ask);
	ask_ends(CANCELLED, &sets[SETS - 1].ask);
	cr_assert_eq(sets[SETS - 2].ask.calls, 0);
	proxy_hold_replies(p, false);
	for (int i = 0; i < SETS - 1; i++)
		ask_ends(OK, &sets[i].ask);
	proxy_stop(p);
}

/* ---- a silent server --------------------------------------------------------------------------
 */

#define SILENT_MS 2000

/* A dial takes as long as connect_timeout_ms allows. */
static bizlock *client_of_silent(struct proxy *p)
{
	return client_through(p, OPTIONS("io_timeout_ms", "2000", "connect_timeout_ms", "2000"));
}

/* Eight at a time would have to dial. */
static void expect_one_dial(int64_t start, int requests)
{
	int64_t took = now_ms() - start;

	cr_assert_lt(took, requests / 8 / 2 * SILENT_MS, "%lld ms", (long long)took);
}

Test(asking_stuck, one_dial_in_vain_is_enough)
{
	enum { SETS = 64 };
	static struct ask_all sets[SETS];
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_of_silent(p);
	int64_t start;

	works(b);
	proxy_hold_replies(p, true);
	start = now_ms();
	for (int i = 0; i < SETS; i++) {
		char prefix[16];

		snprintf(prefix, sizeof(prefix), "k-%d", i);
		keyset_make(&sets[i].keys, 3, prefix);
		ask_all_for(&sets[i], b, "task", .wait_ms = 1000);
	}
	for (int i = 0; i < SETS; i++) {
		dispatch_until(b, sets[i].ask.calls == 1);
		cr_assert(sets[i].ask.rc == BIZLOCK_CONN || sets[i].ask.rc == BIZLOCK_UNKNOWN, "%s",
		          sets[i].ask.errmsg);
	}
	expect_one_dial(start, SETS);
	proxy_hold_replies(p, false);
	proxy_stop(p);
}

/* Each of its keys is released by itself. Re-entered, it goes in no batch. */
Test(asking_stuck, one_dial_in_vain_is_enough_for_a_release_of_many)
{
	enum { N = 64 };
	static struct ask_all set;
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_of_silent(p);
	int64_t start;

	keyset_make(&set.keys, N, "k");
	for (int i = 0; i < 2; i++) {
		set.ask.calls = 0;
		ask_all_for(&set, b, "task", .wait_ms = -1);
		ask_ends(OK, &set.ask);
	}
	proxy_hold_replies(p, true);
	start = now_ms();
	ask_all_release(&set);
	dispatch_until(b, set.ask.calls == 1);
	cr_assert_neq(set.ask.rc, BIZLOCK_OK);
	expect_one_dial(start, N);
	proxy_hold_replies(p, false);
	proxy_stop(p);
}
