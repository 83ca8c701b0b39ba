/* Those who want a lock alone and those who want to share it stand in one line, in the order of
 * arrival. */
#define _GNU_SOURCE 1
#include <signal.h>
#include <stdio.h>

#include "cr_shared.h"

TestSuite(mixed_order, .init = world_begin, .fini = world_end, .timeout = 240);

#define LINE_MAX 12
#define A_WHILE_MS 50

/* One that waits, and what for: 'X' alone; 's' shares without a limit, '1' and '2' with that one.
 */
struct waiter {
	bizlock *b;
	char kind, owner[8];
	struct call call;
};

struct line {
	const char *kinds;
	struct waiter waiters[LINE_MAX];
	uint64_t alone_fence; /* the largest of those that had it alone, and of all */
	uint64_t fence;
};

static uint32_t flags_of(char kind)
{
	return kind == 'X' ? X : S;
}

static uint32_t limit_of(char kind)
{
	return kind == '1' || kind == '2' ? (uint32_t)(kind - '0') : 0;
}

/* b: whose the i-th is; NULL: a client of its own, at whose arrival i others wait at the server.
 */
static void arrive(struct line *line, unsigned i, bizlock *b)
{
	struct waiter *w = &line->waiters[i];

	w->b = b ? b : client(NULL);
	w->kind = line->kinds[i];
	snprintf(w->owner, sizeof(w->owner), "%c-%u", w->kind, i);
	wait_as(&w->call, w->b, w->owner, flags_of(w->kind), limit_of(w->kind));
	if (b)
		call_blocks(&w->call);
	else
		eventually(doorbell_waiters(&world) + shared_sleepers(&world) == i + 1);
}

/* The first ones that have the lock together. */
static unsigned group_at(const struct line *line, unsigned i)
{
	uint32_t limit = line->kinds[i] == 'X' ? 1 : limit_of(line->kinds[i]);
	unsigned n = 1;

	while ((limit == 0 || n < limit) && line->kinds[i + n] == line->kinds[i])
		n++;
	return n;
}

static bool is_any_done(const struct line *line, unsigned from)
{
	for (unsigned i = from; line->kinds[i]; i++)
		if (atomic_load(&line->waiters[i].call.done))
			return true;
	return false;
}

static void note_fence(struct line *line, const struct waiter *w, uint64_t before)
{
	uint64_t fence = w->call.grant.fence;

	cr_assert_gt(fence, w->kind == 'X' ? before : line->alone_fence, "%s", w->owner);
	if (fence > line->fence)
		line->fence = fence;
	if (w->kind == 'X')
		line->alone_fence = fence;
}

/* Each group has it together, and nobody behind it has it meanwhile. */
static void expect_served_in_order(struct line *line)
{
	for (unsigned i = 0, n; line->kinds[i]; i += n) {
		uint64_t before = line->fence;

		n = group_at(line, i);
		for (unsigned j = i; j < i + n; j++) {
			expect_got(&line->waiters[j].call);
			note_fence(line, &line->waiters[j], before);
		}
		steadily(!is_any_done(line, i + n), A_WHILE_MS);
		for (unsigned j = i; j < i + n; j++) {
			steadily(!is_any_done(line, i + n), 1);
			expect(OK, line->waiters[j].b,
			       release_as(line->waiters[j].b, line->waiters[j].owner));
		}
	}
	cr_assert_eq(rows_where("owner <> ''"), 0);
}

/* ---- across clients ------------------------------------------------------------------------ */

static void clients_are_served(const char *kinds, char holder)
{
	bizlock *b = client(NULL);
	struct line line = {.kinds = kinds};
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b, try_as(b, "holder", flags_of(holder), limit_of(holder), &grant));
	line.alone_fence = holder == 'X' ? grant.fence : 0;
	line.fence = grant.fence;
	for (unsigned i = 0; kinds[i]; i++)
		arrive(&line, i, NULL);
	expect(OK, b, release_as(b, "holder"));
	expect_served_in_order(&line);
}

Test(mixed_order, clients_are_served_as_they_came)
{
	clients_are_served("XXss", 'X');
}

/* The release deletes slot 0. A sharer that is first makes it anew before it gives the doorbell on
 * to whoever is next, and wants the lock alone. */
Test(mixed_order, a_sharer_keeps_its_place_before_one_that_wants_it_alone)
{
	enum { TIMES = 20 };
	bizlock *b = client(NULL), *first = client(NULL), *second = client(NULL);

	for (int i = 0; i < TIMES; i++) {
		struct call sharer, alone;

		expect(OK, b, try_as(b, "holder", X, 0, NULL));
		wait_as(&sharer, first, "sharer", S, 0);
		eventually(doorbell_waiters(&world) == 1);
		wait_as(&alone, second, "alone", X, 0);
		eventually(doorbell_waiters(&world) == 2);
		expect(OK, b, release_as(b, "holder"));
		eventually(atomic_load(&sharer.done) || atomic_load(&alone.done));
		cr_assert_not(atomic_load(&alone.done), "passed at time %d", i);
		expect_got(&sharer);
		expect(OK, first, release_as(first, "sharer"));
		expect_got(&alone);
		expect(OK, second, release_as(second, "alone"));
	}
}

/* ---- within a client ----------------------------------------------------------------------- */

/* Behind one that wants it alone a sharer lines up at once, before it asks the server. */
Test(mixed_order, threads_of_a_client_are_served_as_they_came)
{
	bizlock *b = client(NULL);
	struct line line = {.kinds = "XssX1X22Xs"};

	expect(OK, b, try_as(b, "holder", X, 0, NULL));
	for (unsigned i = 0; line.kinds[i]; i++)
		arrive(&line, i, b);
	expect(OK, b, release_as(b, "holder"));
	expect_served_in_order(&line);
}

/* The holder is a sharer of another client. */
Test(mixed_order, threads_behind_a_sharer_are_served_as_they_came)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct line line = {.kinds = "XXsX22XX"};

	expect(OK, other, try_as(other, "holder", S, 0, NULL));
	for (unsigned i = 0; line.kinds[i]; i++)
		arrive(&line, i, b);
	steadily(!is_any_done(&line, 0), A_WHILE_MS);
	expect(OK, other, release_as(other, "holder"));
	expect_served_in_order(&line);
}

/* ---- who goes, and who hangs --------------------------------------------------------------- */

/* A sharer has it; one that wants it alone is the first in line, and a sharer waits behind it. */
struct behind {
	bizlock *holder, *first_b, *b;
	struct call first, late;
};

static void begin_behind(struct behind *x, int64_t wait_ms)
{
	*x = (struct behind){.holder = client(NULL), .first_b = client(NULL), .b = client(NULL)};
	expect(OK, x->holder, try_as(x->holder, "r", S, 0, NULL));
	call_prepare(&x->first, x->first_b, "k", .wait_ms = wait_ms, .owner = "first");
	x->first.opts.flags = X;
	x->first.opts.lease_ms = LEASE_MS;
	call_go(&x->first);
	eventually(rows_where("slot = 0 AND " LIVE) == 1 || atomic_load(&x->first.done));
	wait_as(&x->late, x->b, "late", S, 0);
	eventually(doorbell_waiters(&world) == 1 || atomic_load(&x->first.done));
}

/* The holder has it still. The lease of a place would be over after seconds: so one that was not
 * given up is made to last, now that nobody renews it any more. */
static void late_one_gets_in(struct behind *x)
{
	db_run(world.admin,
	       "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR"
	       " WHERE %s AND owner <> ''",
	       slot_0_where(KEY("k")));
	expect_got(&x->late);
	expect(OK, x->holder, bizlock_verify(x->holder, KEY("k"), "r"));
	expect(OK, x->b, bizlock_verify(x->b, KEY("k"), "late"));
	expect(OK, x->holder, try_as(x->holder, "later", S, 0, NULL));
}

Test(mixed_order, one_whose_time_is_up_lets_sharers_in)
{
	struct behind x;

	begin_behind(&x, 3000);
	cr_assert_eq(call_join(&x.first), BIZLOCK_TIMEOUT, "%s", x.first.errmsg);
	cr_assert(strstr(x.first.errmsg, "held by r@"), "%s", x.first.errmsg);
	late_one_gets_in(&x);
}

Test(mixed_order, one_that_is_interrupted_lets_sharers_in)
{
	struct behind x;

	begin_behind(&x, -1);
	steadily(!atomic_load(&x.late.done), A_WHILE_MS);
	bizlock_interrupt(x.first_b);
	cr_assert_eq(call_join(&x.first), BIZLOCK_CANCELLED, "%s", x.first.errmsg);
	late_one_gets_in(&x);
}

/* The others may have nothing to wait for by then. */
static void sharers_pass(int signal)
{
	struct peer first = peer_start(&world, NULL);
	bizlock *b = client(NULL), *other = client(NULL);
	struct call late;

	expect(OK, b, try_as(b, "r", S, 0, NULL));
	peer_ask_acquire(&first, "k", .wait_ms = -1, .lease_ms = LEASE_MS);
	eventually(shared_sleepers(&world) == 1);
	expect(BUSY, other, try_as(other, "late", S, 0, NULL));
	peer_signal(&first, signal);
	wait_as(&late, other, "late", S, 0);
	expect_got(&late);
	expect(OK, b, bizlock_verify(b, KEY("k"), "r"));
	expect(OK, b, release_as(b, "r"));
	expect(OK, other, release_as(other, "late"));
	if (signal == SIGSTOP) {
		peer_signal(&first, SIGCONT);
		expect_answer(OK, peer_answer(&first));
		expect(BUSY, b, try_as(b, "r", S, 0, NULL));
		expect_answer(OK, peer_release(&first, "k"));
	}
	peer_end(&first);
	expect(OK, b, try_as(b, "w", X, 0, NULL));
}

Test(mixed_order, one_whose_client_has_died_is_passed)
{
	sharers_pass(SIGKILL);
}

Test(mixed_order, one_whose_client_stands_still_is_passed)
{
	sharers_pass(SIGSTOP);
}

/* ---- one doorbell -------------------------------------------------------------------------- */

/* The first in line sleeps for a sixth of the lease of its place, which is 5 s. Where others sleep,
 * too, on MariaDB, that is three quarters of it, until a named lock is free. If it becomes free
 * sooner the sleep is shorter; but there is a window in which it does not. */
#define PLACE_SLEEP_MS (5000 / 6 * 3 / 4)

/* Its name is taken and given back, it sleeps, it looks; and its place may be renewed. */
#define SLEEP_PACKETS 5

#define WINDOW_MS (4 * PLACE_SLEEP_MS)

static unsigned packets_in_window(struct proxy *p, const struct call *call)
{
	unsigned before = proxy_packets(p);

	steadily(!atomic_load(&call->done), WINDOW_MS);
	return proxy_packets(p) - before;
}

/* Whoever polls looks 50 times a second, and sends more than that in each window. */
static void waits_without_polls(uint32_t held, uint32_t wanted, unsigned most)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client(NULL), *other = client_through(p, NULL);
	struct call call;

	expect(OK, b, try_as(b, "holder", held, 0, NULL));
	wait_as(&call, other, "waiter", wanted, 0);
	eventually(doorbell_waiters(&world) + shared_sleepers(&world) == 1);
	eventually(packets_in_window(p, &call) <= most);
	expect(OK, b, release_as(b, "holder"));
	expect_got(&call);
	expect(OK, other, release_as(other, "waiter"));
	proxy_stop(p);
}

/* One sleep more may begin, or end, in the window. */
Test(mixed_order, one_that_wants_it_alone_does_not_poll)
{
	waits_without_polls(S, X, (WINDOW_MS / PLACE_SLEEP_MS + 1) * SLEEP_PACKETS);
}

/* It sleeps at the doorbell, to the end of the holder's lease. */
Test(mixed_order, a_sharer_does_not_poll)
{
	waits_without_polls(X, S, 0);
}

#define STEPS 6 /* of a turn, each of which takes no longer than a round */

/* Whoever is not woken sleeps for a second, or to the end of a lease. Each waiter's client is new,
 * because one that has slept in vain a few times would poll. */
Test(mixed_order, each_release_wakes_one_of_the_other_kind)
{
	enum { TIMES = 8 };
	bizlock *b = client(NULL);
	int64_t took = 0, rounds = 0;

	for (int i = 0; i < TIMES; i++) {
		bizlock *next = client_open(&world, NULL);
		struct call call;

		rounds += round_ms(b);
		expect(OK, b, try_as(b, "holder", i % 2 ? X : S, 0, NULL));
		wait_as(&call, next, "next", i % 2 ? S : X, 0);
		eventually(doorbell_waiters(&world) + shared_sleepers(&world) == 1);
		took -= now_ms();
		expect(OK, b, release_as(b, "holder"));
		expect_got(&call);
		took += now_ms();
		expect(OK, next, release_as(next, "next"));
		bizlock_close(next);
	}
	cr_assert_lt(took, TIMES * 100 + STEPS * rounds, "%lld ms", (long long)took);
}
