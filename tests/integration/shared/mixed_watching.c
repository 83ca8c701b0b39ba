/* Holds of both kinds come and go, while a client watches the keys for those of its requests that
 * want them in the other way. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_ask.h"

TestSuite(mixed_watching, .init = world_begin, .fini = world_end, .timeout = 240);

#define S BIZLOCK_SHARED
#define X 0
#define LEASE_MS (20 * PATIENCE_MS)

/* A watcher that is not woken looks when its sleep is over. It sleeps longer and longer, up to a
 * second, and shortly again after it has missed something. So each release comes at the beginning
 * of a long sleep, of which a wake-up takes a part, beside what a busy machine takes for it. */
#define N 12
#define TURNS 2
#define LONG_MS 300
#define WAKE_MS 200
#define STEPS 4 /* of a wake-up, each of which takes no longer than a round */

struct waits {
	bizlock *b, *holder;
	char ids[N][8];
	struct ask asks[N];
};

static int try_key(bizlock *b, const char *id, const char *owner, uint32_t flags)
{
	return bizlock_acquire(b, KEY(id),
	                       &OPTS(.owner = owner, .flags = flags, .lease_ms = LEASE_MS), NULL);
}

static void give_back(struct waits *w, int i)
{
	expect(OK, w->holder, bizlock_release(w->holder, KEY(w->ids[i]), "holder", NULL));
}

static void begin(struct waits *w)
{
	*w = (struct waits){.b = client(NULL), .holder = client(NULL)};
	for (int i = 0; i < N; i++)
		snprintf(w->ids[i], sizeof(w->ids[i]), "k-%d", i);
}

static int answered(const struct waits *w)
{
	int n = 0;

	for (int i = 0; i < N; i++)
		n += w->asks[i].calls;
	return n;
}

/* How the holder has it at that turn. */
static uint32_t way(int i, int turn)
{
	return (i + turn) % 2 ? S : X;
}

static long long places(void)
{
	return db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE slot = 0 AND owner <> ''"
	                              " AND reentrant = 0");
}

/* Each request waits for what is held in the other way. */
static void all_wait(struct waits *w, int turn)
{
	for (int i = 0; i < N; i++)
		expect(OK, w->holder, try_key(w->holder, w->ids[i], "holder", way(i, turn)));
	for (int i = 0; i < N; i++)
		ask_for(&w->asks[i], w->b, w->ids[i], "task", .wait_ms = -1,
		        .flags = way(i, turn + 1));
	dispatch_until(w->b, places() == N / 2 && watchers(&world) == 1);
	cr_assert_eq(answered(w), 0);
}

Test(mixed_watching, each_release_wakes_who_wants_it_in_the_other_way)
{
	int64_t took = 0, rounds = 0;
	struct waits w;

	begin(&w);
	for (int turn = 0; turn < TURNS; turn++) {
		all_wait(&w, turn);
		for (int i = 0; i < N; i++) {
			rounds += round_ms(w.holder);
			dispatch_until(w.b, watchers_for(&world, LONG_MS) == 1);
			took -= now_ms();
			give_back(&w, i);
			ask_ends(OK, &w.asks[i]);
			took += now_ms();
		}
		for (int i = 0; i < N; i++)
			ask_release(&w.asks[i]);
		for (int i = 0; i < N; i++)
			ask_ends(OK, &w.asks[i]);
	}
	cr_assert_lt(took, TURNS * N * WAKE_MS + STEPS * rounds, "%lld ms", (long long)took);
}

/* The first of two that share each key leaves: those that want it alone are watched on. */
Test(mixed_watching, a_sharer_that_leaves_another_one_lets_nobody_in)
{
	bizlock *other = client(NULL);
	struct waits w;

	begin(&w);
	for (int i = 0; i < N; i++) {
		expect(OK, w.holder, try_key(w.holder, w.ids[i], "holder", S));
		expect(OK, other, try_key(other, w.ids[i], "other", S));
		ask_for(&w.asks[i], w.b, w.ids[i], "task", .wait_ms = -1, .flags = X);
	}
	dispatch_until(w.b, places() == N && watchers(&world) == 1);
	for (int i = 0; i < N; i++)
		give_back(&w, i);
	steadily((dispatch_once(w.b), answered(&w) == 0), 1500);
	for (int i = 0; i < N; i++)
		expect(OK, other, bizlock_release(other, KEY(w.ids[i]), "other", NULL));
	for (int i = 0; i < N; i++)
		ask_ends(OK, &w.asks[i]);
}

/* The holder gives each key back, and takes it at once in the other way if it is free still. Where
 * it is not, the request has it, or is about to. */
static void turn_all(struct waits *w, bool held[N], int turn)
{
	for (int i = 0; i < N; i++) {
		int rc;

		if (!held[i])
			continue;
		give_back(w, i);
		rc = try_key(w->holder, w->ids[i], "holder", way(i, turn));
		cr_assert(rc == BIZLOCK_OK || rc == BIZLOCK_BUSY, "%s", bizlock_errmsg(w->holder));
		held[i] = rc == BIZLOCK_OK;
		dispatch_once(w->b);
	}
}

/* The holder may be sooner than a request, which has to be woken first. Whatever
 * it finds then, in the end no request is forgotten. */
Test(mixed_watching, holds_that_come_and_go_make_it_forget_nobody)
{
	bool held[N];
	struct waits w;

	begin(&w);
	all_wait(&w, 0);
	for (int i = 0; i < N; i++)
		held[i] = true;
	for (int turn = 1; turn < 8; turn++)
		turn_all(&w, held, turn);
	for (int i = 0; i < N; i++) {
		if (held[i])
			give_back(&w, i);
		ask_ends(OK, &w.asks[i]);
	}
	cr_assert_eq(locks_there(&world), N);
	for (int i = 0; i < N; i++)
		expect(BUSY, w.holder, try_key(w.holder, w.ids[i], "holder", X));
}
