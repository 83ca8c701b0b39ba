/* More threads wait to have locks alone that others share than their client has connections. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_shared.h"

TestSuite(mixed_few, .init = world_begin, .fini = world_end, .timeout = 240);

#define N 12

struct waits {
	bizlock *b, *holder;
	char ids[N][8], owners[N][8];
	struct call calls[N];
};

/* Each of them is the first in line. */
static void begin(struct waits *w)
{
	w->b = client(OPTIONS("max_connections", "4"));
	w->holder = client(NULL);
	for (int i = 0; i < N; i++) {
		snprintf(w->ids[i], sizeof(w->ids[i]), "k-%d", i);
		snprintf(w->owners[i], sizeof(w->owners[i]), "w-%d", i);
		expect(OK, w->holder,
		       bizlock_acquire(w->holder, KEY(w->ids[i]),
		                       &OPTS(.flags = S, .owner = "r", .lease_ms = LEASE_MS),
		                       NULL));
		call_prepare(&w->calls[i], w->b, w->ids[i], .wait_ms = -1, .owner = w->owners[i]);
		w->calls[i].opts.lease_ms = LEASE_MS;
		call_go(&w->calls[i]);
	}
	eventually(rows_where("slot = 0 AND " LIVE) == N);
}

static void end(struct waits *w)
{
	for (int i = 0; i < N; i++) {
		expect(OK, w->holder, bizlock_release(w->holder, KEY(w->ids[i]), "r", NULL));
		expect_got(&w->calls[i]);
	}
}

/* Threads that sleep have a connection for up to a second. Some stay for what else there is to do.
 */
Test(mixed_few, their_client_works_meanwhile)
{
	enum { TIMES = 20 };
	int64_t took = 0, rounds = 0;
	struct waits w;

	begin(&w);
	works(w.b);
	for (int i = 0; i < TIMES; i++) {
		rounds += round_ms(w.holder);
		took -= now_ms();
		works(w.b);
		took += now_ms();
	}
	cr_assert_lt(took, TIMES * 200 + 6 * rounds, "%lld ms", (long long)took);
	end(&w);
}

/* Their places are renewed, and keep newcomers out. A machine that stands still for longer than a
 * second tells nothing. */
Test(mixed_few, they_keep_their_places)
{
	int64_t gap = 0, last;
	struct waits w;

	begin(&w);
	last = now_ms();
	for (int64_t end = last + 7000; pause_before(end) && gap < 1000; last = now_ms()) {
		long long places = rows_where("slot = 0 AND " LIVE);

		gap = now_ms() - last;
		cr_assert(places == N || gap >= 1000, "%lld", places);
	}
	for (int i = 0; i < N; i++)
		cr_assert_not(atomic_load(&w.calls[i].done));
	end(&w);
}
