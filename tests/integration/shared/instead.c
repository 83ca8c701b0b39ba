/* What docs/failures.md says to do instead of what there is not. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "cr_shared.h"

TestSuite(instead, .init = world_begin, .fini = world_end, .timeout = 240);

/* ---- several permits of a limit ----------------------------------------------------------------
 */

enum { COLLECTORS = 6, TAKEN = 3, LIMIT = 4, ROUNDS = 8 };

static atomic_int out, most;

struct collector {
	pthread_t thread;
	bizlock *b;
	char names[TAKEN][16];
};

static void note_taken(int n)
{
	int now = atomic_fetch_add(&out, n) + n, seen = atomic_load(&most);

	while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
		continue;
}

static void collect(struct collector *c)
{
	bizlock_acquire_opts opts =
	        OPTS(.wait_ms = PATIENCE_MS, .flags = S, .limit = LIMIT, .lease_ms = LEASE_MS);
	bizlock_acquire_opts gate = OPTS(.wait_ms = PATIENCE_MS, .owner = c->names[0]);

	expect(OK, c->b, bizlock_acquire(c->b, KEY("gate"), &gate, NULL));
	for (int i = 0; i < TAKEN; i++) {
		opts.owner = c->names[i];
		expect(OK, c->b, bizlock_acquire(c->b, KEY("k"), &opts, NULL));
		note_taken(1);
	}
	expect(OK, c->b, bizlock_release(c->b, KEY("gate"), c->names[0], NULL));
	for (int i = 0; i < TAKEN; i++) {
		atomic_fetch_sub(&out, 1);
		expect(OK, c->b, release_as(c->b, c->names[i]));
	}
}

static void *collect_rounds(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		collect(arg);
	return NULL;
}

static void *take_single_ones(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		bizlock_acquire_opts opts = OPTS(.wait_ms = PATIENCE_MS, .flags = S, .limit = LIMIT,
		                                 .lease_ms = LEASE_MS, .owner = "single");

		expect(OK, arg, bizlock_acquire(arg, KEY("k"), &opts, NULL));
		note_taken(1);
		atomic_fetch_sub(&out, 1);
		expect(OK, arg, release_as(arg, "single"));
	}
	return NULL;
}

Test(instead, who_wants_three_permits_of_four_gets_them)
{
	struct collector collectors[COLLECTORS];
	bizlock *clients[] = {client(NULL), client(NULL)};
	pthread_t single;

	for (unsigned i = 0; i < COLLECTORS; i++) {
		struct collector *c = &collectors[i];

		c->b = clients[i % 2];
		for (unsigned n = 0; n < TAKEN; n++)
			snprintf(c->names[n], sizeof(c->names[n]), "task-%u-%u", i, n);
		pthread_create(&c->thread, NULL, collect_rounds, c);
	}
	pthread_create(&single, NULL, take_single_ones, clients[0]);
	for (unsigned i = 0; i < COLLECTORS; i++)
		pthread_join(collectors[i].thread, NULL);
	pthread_join(single, NULL);
	cr_assert_leq(atomic_load(&most), LIMIT);
	cr_assert_geq(atomic_load(&most), TAKEN);
	cr_assert_eq(rows_where(LIVE), 0);
}

/* ---- several shared locks ----------------------------------------------------------------------
 */

Test(instead, a_set_is_shared_by_downgrades)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_key keys[] = {KEY("k"), KEY("k2"), KEY("k3")};
	bizlock_acquire_opts opts = OPTS(.owner = "w");

	expect(OK, b, bizlock_acquire_all(b, keys, 3, &opts, NULL));
	for (int i = 0; i < 3; i++)
		expect(OK, b, bizlock_downgrade(b, keys[i], "w"));
	opts.flags = BIZLOCK_SHARED;
	for (int i = 0; i < 3; i++)
		expect(OK, other, bizlock_acquire(other, keys[i], &opts, NULL));
	opts.flags = 0;
	opts.owner = "w2";
	expect(BUSY, other, bizlock_acquire_all(other, keys, 3, &opts, NULL));
	expect(OK, b, bizlock_release_all(b, keys, 3, "w"));
	expect(OK, other, bizlock_release_all(other, keys, 3, "w"));
	expect(OK, other, bizlock_acquire_all(other, keys, 3, &opts, NULL));
}

/* ---- what a holder can know --------------------------------------------------------------------
 */

static int count_waiter(void *arg, const bizlock_waiter *waiter)
{
	(void)waiter;
	++*(int *)arg;
	return 0;
}

Test(instead, a_holder_sees_who_waits)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct call call;
	int waiters = 0;

	expect(OK, b, try_as(b, "w", X, 0, NULL));
	expect(OK, b, bizlock_waiters(b, &KEY("k"), 1, count_waiter, &waiters));
	cr_assert_eq(waiters, 0);
	wait_as(&call, other, "w2", X, 0);
	call_blocks(&call);
	for (int64_t end = now_ms() + PATIENCE_MS; !waiters && pause_before(end);)
		expect(OK, b, bizlock_waiters(b, &KEY("k"), 1, count_waiter, &waiters));
	cr_assert_eq(waiters, 1);
	expect(OK, b, release_as(b, "w"));
	expect_got(&call);
}
