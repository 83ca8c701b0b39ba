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

/* Their places are renewed, and keep newcomers out. */
Test(mixed_few, they_keep_their_places)
{
	struct waits w;

	begin(&w);
	for (int64_t end = now_ms() + 7000; pause_before(end);)
		cr_assert_eq(rows_where("slot = 0 AND " LIVE), N);
	for (int i = 0; i < N; i++)
		cr_assert_not(atomic_load(&w.calls[i].done));
	end(&w);
}
