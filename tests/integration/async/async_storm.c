/* Tasks of one client want a few keys, again and again, all by callbacks that start, release and
 * cancel as a random number says. At most one has a key, and every request is told once. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "cr_ask.h"
#include "crowd.h"
#include "swarm.h"

TestSuite(async_storm, .init = world_begin, .fini = world_end, .timeout = 480);

#define TASKS 100
#define KEYS 12
#define ACTIONS 2000

struct task {
	char owner[16];
	uint64_t request; /* its last one, which may have ended */
	int key;          /* that it has, or wants */
	bool has, busy;   /* busy: something is under way */
};

static bizlock *b;
static struct task tasks[TASKS];
static char ids[KEYS][8];
static uint64_t fences[KEYS];
static int holders[KEYS], actions, under_way, ended, granted, cancelled;
static unsigned seed;
static bool cancels_from_outside;  /* not by callbacks */
static atomic_uint_least64_t last; /* request */

static unsigned below(unsigned n)
{
	return (unsigned)rand_r(&seed) % n;
}

static void go_on(struct task *t);

static void released(void *arg, const bizlock_result *result)
{
	struct task *t = arg;

	cr_assert_eq(result->rc, BIZLOCK_OK, "%s", result->message);
	cr_assert_null(result->grant);
	t->busy = false;
	under_way--;
	ended++;
	go_on(t);
}

static void acquired(void *arg, const bizlock_result *result)
{
	struct task *t = arg;

	t->busy = false;
	under_way--;
	ended++;
	if (result->rc == BIZLOCK_OK) {
		cr_assert_eq(++holders[t->key], 1, "two have %s", ids[t->key]);
		cr_assert_gt(result->grant->fence, fences[t->key]);
		fences[t->key] = result->grant->fence;
		t->has = true;
		granted++;
	} else {
		cr_assert(result->rc == BIZLOCK_CANCELLED || result->rc == BIZLOCK_TIMEOUT, "%s",
		          result->message);
		cancelled += result->rc == BIZLOCK_CANCELLED;
	}
	go_on(t);
}

static void give_back(struct task *t)
{
	holders[t->key]--;
	t->has = false;
	t->busy = true;
	under_way++;
	expect(OK, b,
	       bizlock_release_start(b, KEY(ids[t->key]), t->owner, released, t, &t->request));
}

static void want(struct task *t)
{
	bizlock_acquire_opts opts = OPTS(.owner = t->owner, .wait_ms = -1);

	if (below(8) == 0)
		opts.wait_ms = 1 + below(20);
	t->key = (int)below(KEYS);
	t->busy = true;
	under_way++;
	expect(OK, b, bizlock_acquire_start(b, KEY(ids[t->key]), &opts, acquired, t, &t->request));
	atomic_store(&last, t->request);
}

/* Now and then it ends another one's wait, too. */
static void go_on(struct task *t)
{
	struct task *other = &tasks[below(TASKS)];

	if (!cancels_from_outside && other->request && below(4) == 0)
		expect(OK, b, bizlock_cancel(b, other->request));
	if (t->has)
		give_back(t);
	else if (actions++ < ACTIONS || !cancelled)
		want(t);
}

static void run_storm(void)
{
	seed = swarm_seed();
	printf("seed %u\n", seed);
	b = client(NULL);
	for (int i = 0; i < KEYS; i++)
		snprintf(ids[i], sizeof(ids[i]), "k-%d", i);
	for (int i = 0; i < TASKS; i++) {
		snprintf(tasks[i].owner, sizeof(tasks[i].owner), "task-%d", i);
		go_on(&tasks[i]);
	}
	for (int before = 0; under_way > 0; before = ended)
		dispatch_until(b, under_way == 0 || ended >= before + TASKS);
	cr_assert_geq(actions, ACTIONS);
	cr_assert_gt(granted, ACTIONS / 8);
	cr_assert_gt(cancelled, 0);
	/* What a cancelled request had got by then is given back in the background. */
	eventually(locks_there(&world) == 0);
}

Test(async_storm, of_callbacks)
{
	run_storm();
}

static atomic_bool over;

/* Some of them have ended, and some end meanwhile. */
static void *cancel_others(void *arg)
{
	unsigned mine = *(const unsigned *)arg;

	while (!atomic_load(&over)) {
		uint64_t newest = atomic_load(&last), back = (unsigned)rand_r(&mine) % TASKS;

		if (newest > back)
			expect(OK, b, bizlock_cancel(b, newest - back));
		pause_ms(1);
	}
	return NULL;
}

Test(async_storm, of_callbacks_and_another_thread_cancels)
{
	unsigned its_seed = swarm_seed();
	pthread_t thread;

	cancels_from_outside = true;
	cr_assert_eq(pthread_create(&thread, NULL, cancel_others, &its_seed), 0);
	run_storm();
	atomic_store(&over, true);
	pthread_join(thread, NULL);
}

/* ---- beside threads of other clients ------------------------------------------------------- */

static void take_turns(const char *key, int turns)
{
	struct ask a;

	for (int i = 0; i < turns; i++) {
		ask_for(&a, b, key, "task", .wait_ms = -1);
		ask_ends(OK, &a);
		ask_release(&a);
		ask_ends(OK, &a);
	}
}

/* Those sleep at the doorbell. One that is only watched comes behind them all, and would get the
 * lock once while each of them gets it twenty times. That it comes too late is seen in the first
 * turns. */
Test(async_storm, beside_threads_a_request_has_its_turn)
{
	enum { THREADS = 6, FIRST = 10, TURNS = 100 };
	static const struct crowd_plan plan = {.processes = THREADS,
	                                       .keys = 1,
	                                       .lease_ms = 60000,
	                                       .wait_ms = PATIENCE_MS,
	                                       .long_in = 1000,
	                                       .long_hold_ms = 2};
	struct crowd *crowd = crowd_start(&world, &plan, NULL);
	struct crowd_tale tale;
	char key[16];

	b = client(NULL);
	crowd_key(key, 0);
	take_turns(key, FIRST);
	crowd_pause(crowd);
	crowd_tell(crowd);
	crowd_resume(crowd);
	take_turns(key, TURNS);
	crowd_pause(crowd);
	tale = crowd_tell(crowd);
	cr_assert_lt(tale.acquired, 4 * THREADS * TURNS, "each of them had it %lu times",
	             tale.acquired / THREADS);
	cr_assert_eq(tale.overlaps + tale.backward, 0);
	cr_assert(crowd_end(crowd));
}
