/* Requests of several keys among many others that want some of these keys: requests and threads, of
 * sets and of single keys, in two clients. At most one has a key, each gets on, and the server
 * counts no deadlock. */
#define _GNU_SOURCE 1
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cr_ask.h"
#include "cr_keyset.h"
#include "swarm.h"

TestSuite(asking_sets_crowd, .init = world_begin, .fini = world_end, .timeout = 480);

#define KEYS 12

/* Nothing happens for this long if sets wait for each other in a circle. */
#define STUCK_MS 60000

/* ---- who has which key ----------------------------------------------------------------------- */

static atomic_uint inside[KEYS];
static atomic_ullong fences[KEYS]; /* of the last holder */

static unsigned index_of(bizlock_key key)
{
	return (unsigned)strtoul(key.biz_id + 2, NULL, 10);
}

static void comes_in(const struct keyset *s)
{
	for (size_t i = 0; i < s->n; i++) {
		unsigned at = index_of(s->keys[i]);

		if (atomic_fetch_add(&inside[at], 1) != 0)
			die("two are inside of %s", s->keys[i].biz_id);
		if (atomic_exchange(&fences[at], s->grants[i].fence) >= s->grants[i].fence)
			die("the fence of %s went back", s->keys[i].biz_id);
	}
}

static void goes_out(const struct keyset *s)
{
	for (size_t i = 0; i < s->n; i++)
		atomic_fetch_sub(&inside[index_of(s->keys[i])], 1);
}

/* Up to `most` of the keys, in any order. */
static void choose(struct keyset *s, size_t most, unsigned *seed)
{
	keyset_make(s, KEYS, "k");
	keyset_shuffle(s, seed);
	s->n = 1 + (size_t)rand_r(seed) % most;
}

/* ---- requests -------------------------------------------------------------------------------- */

struct task {
	bizlock *b;
	char owner[24];
	size_t most; /* keys at once */
	struct keyset keys;
	uint64_t request; /* its last one, which may have ended */
	unsigned rounds;  /* in which it had all of its keys */
};

static struct task *tasks;
static unsigned tasks_count, under_way, cancelled, seed;
static unsigned cancel_in; /* one step in so many cancels the request of a task; 0: none */
static unsigned actions;   /* that are left */

static void want(struct task *t);

static void released(void *arg, const bizlock_result *result)
{
	under_way--;
	cr_assert_eq(result->rc, BIZLOCK_OK, "%s", result->message);
	want(arg);
}

static void acquired(void *arg, const bizlock_result *result)
{
	struct task *t = arg;

	under_way--;
	if (result->rc != BIZLOCK_OK) {
		cr_assert_eq(result->rc, BIZLOCK_CANCELLED, "%s", result->message);
		cancelled++;
		want(t);
		return;
	}
	t->rounds++;
	for (size_t i = 0; i < t->keys.n; i++)
		t->keys.grants[i] = *result->grants[i];
	comes_in(&t->keys);
	goes_out(&t->keys);
	under_way++;
	expect(OK, t->b,
	       bizlock_release_all_start(t->b, t->keys.keys, t->keys.n, t->owner, released, t,
	                                 &t->request));
}

static void want(struct task *t)
{
	bizlock_acquire_opts opts =
	        OPTS(.owner = t->owner, .wait_ms = -1, .lease_ms = 20 * PATIENCE_MS);
	const struct task *other = &tasks[(unsigned)rand_r(&seed) % tasks_count];

	if (cancel_in && (unsigned)rand_r(&seed) % cancel_in == 0 && other->request)
		expect(OK, other->b, bizlock_cancel(other->b, other->request));
	if (actions == 0)
		return;
	actions--;
	choose(&t->keys, t->most, &seed);
	under_way++;
	expect(OK, t->b,
	       bizlock_acquire_all_start(t->b, t->keys.keys, t->keys.n, &opts, acquired, t,
	                                 &t->request));
}

/* Every second one wants a single key. */
static void tasks_begin(bizlock *const *clients, unsigned count, unsigned all)
{
	seed = swarm_seed();
	printf("seed %u\n", seed);
	tasks = calloc(count, sizeof(*tasks));
	tasks_count = count;
	actions = all;
	for (unsigned i = 0; i < count; i++) {
		tasks[i].b = clients[i / 2 % 2];
		tasks[i].most = i % 2 ? 1 : KEYS / 2;
		snprintf(tasks[i].owner, sizeof(tasks[i].owner), "task-%u", i);
	}
	for (unsigned i = 0; i < count; i++)
		want(&tasks[i]);
}

static void dispatch_both(bizlock *const *clients)
{
	struct pollfd fds[2];

	for (int i = 0; i < 2; i++)
		fds[i] = (struct pollfd){.fd = bizlock_fd(clients[i]), .events = POLLIN};
	poll(fds, 2, 50);
	for (int i = 0; i < 2; i++)
		expect(OK, clients[i], bizlock_dispatch(clients[i], NULL));
}

/* Dispatches to the end of the last request. */
static void tasks_end(bizlock *const *clients)
{
	int64_t end = now_ms() + STUCK_MS;

	for (unsigned before = 0; under_way > 0; dispatch_both(clients)) {
		if (actions + under_way != before)
			end = now_ms() + STUCK_MS;
		before = actions + under_way;
		if (now_ms() > end)
			die("%u requests are stuck", under_way);
	}
	free(tasks);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct worker {
	bizlock *b;
	char owner[24];
	size_t most;
	unsigned seed, rounds;
	int rc;
	pthread_t thread;
};

static atomic_bool over;

static void *work(void *arg)
{
	struct worker *w = arg;
	struct keyset s;

	while (!atomic_load(&over) && w->rc == BIZLOCK_OK) {
		choose(&s, w->most, &w->seed);
		w->rc = keyset_acquire(w->b, &s, .wait_ms = STUCK_MS, .lease_ms = 20 * PATIENCE_MS,
		                       .owner = w->owner);
		if (w->rc != BIZLOCK_OK)
			break;
		comes_in(&s);
		goes_out(&s);
		w->rc = keyset_release(w->b, &s, w->owner);
		w->rounds++;
	}
	return NULL;
}

/* Every second one wants a single key. */
static void workers_begin(struct worker *workers, unsigned count, bizlock *const *clients)
{
	for (unsigned i = 0; i < count; i++) {
		struct worker *w = &workers[i];

		*w = (struct worker){
		        .b = clients[i / 2 % 2], .most = i % 2 ? 1 : KEYS / 2, .seed = i + 1};
		snprintf(w->owner, sizeof(w->owner), "thread-%u", i);
		if (pthread_create(&w->thread, NULL, work, w) != 0)
			die("no thread");
	}
}

static void workers_end(struct worker *workers, unsigned count)
{
	atomic_store(&over, true);
	for (unsigned i = 0; i < count; i++) {
		pthread_join(workers[i].thread, NULL);
		cr_assert_eq(workers[i].rc, BIZLOCK_OK, "%s", bizlock_err_name(workers[i].rc));
		cr_assert_gt(workers[i].rounds, 0, "%s", workers[i].owner);
	}
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void storm(unsigned requests, unsigned threads, unsigned all)
{
	bizlock *clients[2] = {client(NULL), client(NULL)};
	struct worker workers[8];
	long long before;

	deadlocks_are_counted();
	before = db_deadlocks(world.admin);
	workers_begin(workers, threads, clients);
	tasks_begin(clients, requests, all);
	tasks_end(clients);
	workers_end(workers, threads);
	cr_assert_eq(db_deadlocks(world.admin) - before, 0);
	eventually(locks_there(&world) == 0);
}

Test(asking_sets_crowd, requests_of_two_clients)
{
	storm(40, 0, 2000);
}

Test(asking_sets_crowd, requests_and_threads)
{
	storm(12, 8, 1000);
}

Test(asking_sets_crowd, requests_that_are_cancelled_and_threads)
{
	cancel_in = 3;
	storm(24, 4, 1500);
	cr_assert_gt(cancelled, 0);
}

/* Far more than there are connections to sleep on. */
Test(asking_sets_crowd, many_sets_of_one_client)
{
	bizlock *b = client(NULL), *clients[2] = {b, b};

	tasks_begin(clients, 400, 1200);
	tasks_end(clients);
	cr_assert_eq(all_rows(&world), 0);
}

/* ---- one set among singles ------------------------------------------------------------------- */

static void gets_its_turn(bizlock *singles, bizlock *b)
{
	enum { TURNS = 20, THREADS = 3 };
	static struct ask_all set;
	struct worker workers[THREADS];

	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.b = singles, .most = 1, .seed = (unsigned)i};
		snprintf(workers[i].owner, sizeof(workers[i].owner), "thread-%d", i);
		cr_assert_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < TURNS; i++) {
		keyset_make(&set.keys, KEYS, "k");
		ask_all_for(&set, b, "set", .wait_ms = STUCK_MS);
		ask_ends(OK, &set.ask);
		comes_in(&set.keys);
		goes_out(&set.keys);
		ask_all_release(&set);
		ask_ends(OK, &set.ask);
	}
	workers_end(workers, THREADS);
}

Test(asking_sets_crowd, a_set_gets_its_turn_among_threads_of_another_client)
{
	gets_its_turn(client(NULL), client(NULL));
}

Test(asking_sets_crowd, a_set_gets_its_turn_among_threads_of_its_client)
{
	bizlock *b = client(NULL);

	gets_its_turn(b, b);
}

/* ---- many sets for one key ------------------------------------------------------------------- */

enum { SETS = 100 };
static struct ask_all sets[SETS];

/* Each wants a key of its own, and "shared". */
static void ask_for_shared(bizlock *b, int first, int end)
{
	for (int i = first; i < end; i++) {
		char owner[24];

		snprintf(owner, sizeof(owner), "task-%d", i);
		keyset_make(&sets[i].keys, 2, owner);
		sets[i].keys.keys[1] = KEY("shared");
		ask_all_for(&sets[i], b, owner, .wait_ms = -1);
	}
}

/* Those that were granted give back, in their turn. */
static int give_back(int first, int end)
{
	int count = 0;

	for (int i = first; i < end; i++) {
		struct ask *a = &sets[i].ask;

		if (a->calls == 0)
			continue;
		cr_assert_eq(a->rc, BIZLOCK_OK, "%s", a->errmsg);
		a->calls = 0;
		count++;
		expect(OK, a->b, keyset_release(a->b, &sets[i].keys, a->owner));
	}
	return count;
}

static void have_their_turns(bizlock *b, int first, int end)
{
	for (int left = end - first; left > 0;) {
		int before = left;

		dispatch_until(b, (left -= give_back(first, end)) < before);
		for (int i = 0; i < SETS; i++)
			cr_assert(i < end || sets[i].ask.calls == 0, "%d was not its turn", i);
	}
}

static atomic_uint in_line;

static void count_in_line(void *arg, const bizlock_trace *line)
{
	(void)arg;
	if (strstr(line->text, "waits behind"))
		atomic_fetch_add(&in_line, 1);
}

/* A release wakes one of them, and not all, which would look in vain. Those that began to wait
 * earlier come first. */
Test(asking_sets_crowd, many_sets_that_wait_for_one_key_have_it_in_order)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *other = client(NULL), *b = client_through(p, NULL);
	unsigned before, packets;

	expect(OK, other, acquire_as(other, "shared", "holder"));
	expect(OK, b, bizlock_on_trace(b, count_in_line, NULL));
	ask_for_shared(b, 0, SETS / 2);
	dispatch_until(b, watchers(&world) == 1 && atomic_load(&in_line) == SETS / 2 - 1);
	ask_for_shared(b, SETS / 2, SETS);
	dispatch_until(b, atomic_load(&in_line) == SETS - 1);
	expect(OK, b, bizlock_on_trace(b, NULL, NULL));
	cr_assert_eq(sets[0].ask.calls, 0);
	before = proxy_packets(p);
	expect(OK, other, bizlock_release(other, KEY("shared"), "holder", NULL));
	have_their_turns(b, 0, SETS / 2);
	have_their_turns(b, SETS / 2, SETS);
	packets = proxy_packets(p) - before;
	cr_assert_lt(packets, 20 * SETS, "%u packets", packets);
	proxy_stop(p);
}
