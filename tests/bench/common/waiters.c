#define _GNU_SOURCE 1
#include "waiters.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>

#include "patience.h"

#define STACK (256 * 1024)

static struct {
	const struct waiters_plan *plan;

	/* a thread for each */
	pthread_t *threads;
	sem_t *woken;

	/* one for all: a ring of the keys to try, each once, and of each key what it is */
	pthread_mutex_t mu;
	pthread_cond_t more;
	unsigned *ring, head, tail;
	enum { WAITS, TO_TRY, DONE } * state;
} w = {.mu = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static void *room(size_t size)
{
	void *ret = calloc(w.plan->keys, size);

	if (!ret)
		die("out of memory");
	return ret;
}

/* ---- a thread for each ----------------------------------------------------- */

static void wake_thread(unsigned key)
{
	sem_post(&w.woken[key]);
}

static void *wait_in_thread(void *arg)
{
	unsigned key = (unsigned)(uintptr_t)arg;

	atomic_fetch_add(w.plan->started, 1);
	while (!w.plan->way->attempt(key))
		sem_wait(&w.woken[key]);
	w.plan->got(key);
	w.plan->way->release(key);
	return NULL;
}

static void run_threads(void)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	for (unsigned i = 0; i < w.plan->keys; i++) {
		while (sem_trywait(&w.woken[i]) == 0) /* what came too late for the last run */
			;
		if (pthread_create(&w.threads[i], &attr, wait_in_thread, (void *)(uintptr_t)i) != 0)
			die("no thread");
	}
	for (unsigned i = 0; i < w.plan->keys; i++)
		pthread_join(w.threads[i], NULL);
	pthread_attr_destroy(&attr);
}

/* ---- one for all ----------------------------------------------------------- */

static void wake_loop(unsigned key)
{
	pthread_mutex_lock(&w.mu);
	if (w.state[key] == WAITS) {
		w.state[key] = TO_TRY;
		w.ring[w.tail++ % w.plan->keys] = key;
		pthread_cond_signal(&w.more);
	}
	pthread_mutex_unlock(&w.mu);
}

/* Not one that was taken since it was put into the ring. */
static unsigned next_to_try(void)
{
	unsigned key;

	pthread_mutex_lock(&w.mu);
	do {
		while (w.head == w.tail)
			pthread_cond_wait(&w.more, &w.mu);
		key = w.ring[w.head++ % w.plan->keys];
	} while (w.state[key] != TO_TRY);
	w.state[key] = WAITS;
	pthread_mutex_unlock(&w.mu);
	return key;
}

static void try_one(unsigned key, unsigned *left)
{
	if (!w.plan->way->attempt(key))
		return;
	w.plan->got(key);
	pthread_mutex_lock(&w.mu);
	w.state[key] = DONE;
	pthread_mutex_unlock(&w.mu);
	w.plan->way->release(key);
	--*left;
}

static void run_loop(void)
{
	unsigned left = w.plan->keys;

	pthread_mutex_lock(&w.mu);
	w.head = w.tail = 0;
	for (unsigned i = 0; i < w.plan->keys; i++)
		w.state[i] = WAITS;
	pthread_mutex_unlock(&w.mu);
	for (unsigned i = 0; i < w.plan->keys; i++) {
		try_one(i, &left);
		atomic_fetch_add(w.plan->started, 1);
	}
	while (left > 0)
		try_one(next_to_try(), &left);
}

void waiters_begin(const struct waiters_plan *plan)
{
	w.plan = plan;
	w.threads = room(sizeof(*w.threads));
	w.woken = room(sizeof(*w.woken));
	w.ring = room(sizeof(*w.ring));
	w.state = room(sizeof(*w.state));
	for (unsigned i = 0; i < plan->keys; i++)
		sem_init(&w.woken[i], 0, 0);
	plan->way->begin(plan->keys, plan->loop, plan->loop ? wake_loop : wake_thread);
}

void waiters_run(void)
{
	if (w.plan->loop)
		run_loop();
	else
		run_threads();
}

void waiters_end(void)
{
	w.plan->way->end();
	for (unsigned i = 0; i < w.plan->keys; i++)
		sem_destroy(&w.woken[i]);
	free(w.threads);
	free(w.woken);
	free(w.ring);
	free(w.state);
}
