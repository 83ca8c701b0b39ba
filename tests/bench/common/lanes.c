#define _GNU_SOURCE 1
#include "lanes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "meter.h"
#include "patience.h"

#define WARM_NS (200 * (int64_t)1000000) /* all lanes run this long before turns are counted */

struct lane {
	_Alignas(64) pthread_t thread;
	struct field *field;
	unsigned number;
	pid_t pid;
	char key[24];
	uint64_t pairs, to_itself;
	int64_t longest_ns;
	struct hist pair, acquire, handover;
};

/* Shared by the lanes, even where these are processes. */
struct field {
	struct lanes_plan plan;
	atomic_uint ready;
	atomic_bool go;
	_Atomic int64_t begin, end;
	atomic_uint inside; /* holders of the key that all want */
	_Atomic int64_t left_at;
	atomic_uint left_by;
	struct lane lanes[LANES_MAX];
};

static bool counts(const struct field *f, int64_t t)
{
	return t >= f->begin && t < f->end;
}

static void hold(struct field *f)
{
	if (f->plan.hold_us)
		usleep(f->plan.hold_us);
}

/* Called when the key that all want has a new holder. */
static void enter(struct field *f, struct lane *lane, int64_t now)
{
	unsigned before = atomic_load(&f->left_by);

	if (atomic_fetch_add(&f->inside, 1) != 0)
		die("%s: two held the key", f->plan.contender->name);
	if (!counts(f, now))
		return;
	if (before == lane->number)
		lane->to_itself++;
	else
		hist_add(&lane->handover, now - f->left_at);
}

static void leave(struct field *f, const struct lane *lane)
{
	atomic_fetch_sub(&f->inside, 1);
	atomic_store(&f->left_by, lane->number);
	atomic_store(&f->left_at, now_ns());
}

static void count_wait(struct field *f, struct lane *lane, int64_t from, int64_t to)
{
	if (to > f->end)
		to = f->end;
	if (to > f->begin && to - from > lane->longest_ns)
		lane->longest_ns = to - from;
}

static void take_turn(struct field *f, struct lane *lane, void *session)
{
	int64_t from = now_ns(), got, done;

	f->plan.contender->acquire(session);
	got = now_ns();
	if (f->plan.one_key)
		enter(f, lane, got);
	hold(f);
	if (f->plan.one_key)
		leave(f, lane);
	f->plan.contender->release(session);
	done = now_ns();
	count_wait(f, lane, from, got);
	if (!counts(f, got))
		return;
	lane->pairs += f->plan.contender->keys ? f->plan.contender->keys : 1;
	hist_add(&lane->acquire, got - from);
	hist_add(&lane->pair, done - from);
}

/* The first turn opens everything that is opened at its first use. */
static void run_lane(struct field *f, struct lane *lane)
{
	void *session = f->plan.contender->open(lane->key);

	take_turn(f, lane, session);
	atomic_fetch_add(&f->ready, 1);
	while (!atomic_load(&f->go))
		pause_ms(1);
	while (now_ns() < f->end)
		take_turn(f, lane, session);
	f->plan.contender->close(session);
}

/* ---- threads, processes -------------------------------------------------- */

static void *run_thread(void *arg)
{
	struct lane *lane = arg;

	run_lane(lane->field, lane);
	return NULL;
}

static void start_thread(struct lane *lane, void *(*run)(void *))
{
	if (pthread_create(&lane->thread, NULL, run, lane) != 0)
		die("no thread");
}

static void start_process(struct field *f, struct lane *lane)
{
	pid_t pid = meter_fork();

	if (pid > 0) {
		lane->pid = pid; /* not in the child, which shares this memory */
		return;
	}
	f->plan.contender->begin(1);
	run_lane(f, lane);
	f->plan.contender->end();
	_exit(0);
}

static struct field *field_new(const struct lanes_plan *plan)
{
	struct field *f =
	        mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (f == MAP_FAILED)
		die("out of memory");
	f->plan = *plan;
	f->begin = f->end = INT64_MAX;
	f->left_by = LANES_MAX;
	for (unsigned i = 0; i < plan->lanes; i++) {
		struct lane *lane = &f->lanes[i];

		lane->field = f;
		lane->number = i;
		snprintf(lane->key, sizeof(lane->key), plan->one_key ? "one" : "own-%u", i);
	}
	return f;
}

static void start(struct field *f, void *(*run)(void *))
{
	if (!f->plan.processes)
		f->plan.contender->begin(f->plan.lanes);
	for (unsigned i = 0; i < f->plan.lanes; i++)
		if (f->plan.processes)
			start_process(f, &f->lanes[i]);
		else
			start_thread(&f->lanes[i], run);
}

static bool ended_well(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && status == 0;
}

static void join(struct field *f)
{
	for (unsigned i = 0; i < f->plan.lanes; i++)
		if (!f->plan.processes)
			pthread_join(f->lanes[i].thread, NULL);
		else if (!ended_well(f->lanes[i].pid))
			die("%s: a process did not end well", f->plan.contender->name);
	if (!f->plan.processes)
		f->plan.contender->end();
}

/* ---- work ---------------------------------------------------------------- */

static void add_up(const struct field *f, struct lanes_tale *ret)
{
	ret->least = UINT64_MAX;
	for (unsigned i = 0; i < f->plan.lanes; i++) {
		const struct lane *lane = &f->lanes[i];

		ret->pairs += lane->pairs;
		ret->to_itself += lane->to_itself;
		if (lane->pairs < ret->least)
			ret->least = lane->pairs;
		if (lane->pairs > ret->most)
			ret->most = lane->pairs;
		if (lane->longest_ns > ret->longest_ns)
			ret->longest_ns = lane->longest_ns;
		hist_merge(&ret->pair, &lane->pair);
		hist_merge(&ret->acquire, &lane->acquire);
		hist_merge(&ret->handover, &lane->handover);
	}
}

/* The question is a request itself, so the second answer is one too large. -1: nobody counts. */
static long long requests_of(const struct contender *c)
{
	return c->requests ? c->requests() : 0;
}

void lanes_run(const struct lanes_plan *plan, struct lanes_tale *ret)
{
	struct field *f = field_new(plan);
	int64_t begin;

	start(f, run_thread);
	eventually(atomic_load(&f->ready) == plan->lanes);
	begin = now_ns() + WARM_NS;
	f->begin = begin;
	f->end = begin + plan->ms * (int64_t)1000000;
	atomic_store(&f->go, true);
	sleep_until(begin);
	ret->server_cpu_ms = -server_cpu_ms();
	ret->own_cpu_ms = -own_cpu_ms();
	ret->requests = -requests_of(plan->contender);
	sleep_until(f->end);
	ret->requests += requests_of(plan->contender) - 1;
	ret->server_cpu_ms += server_cpu_ms();
	ret->own_cpu_ms += own_cpu_ms();
	if (plan->processes)
		ret->own_cpu_ms = -1;
	ret->seconds = (double)plan->ms / 1000;
	join(f);
	add_up(f, ret);
	munmap(f, sizeof(*f));
}

/* ---- rest ---------------------------------------------------------------- */

static void *wait_in_thread(void *arg)
{
	struct lane *lane = arg;
	const struct contender *c = lane->field->plan.contender;
	void *session = c->open(lane->key);

	if (lane->number > 0)
		eventually(atomic_load(&lane->field->inside) > 0);
	atomic_fetch_add(&lane->field->ready, 1);
	c->acquire(session);
	if (lane->number == 0) {
		atomic_store(&lane->field->inside, 1);
		while (!atomic_load(&lane->field->go))
			pause_ms(50); /* rarely, because this process's own CPU time is measured */
	}
	c->release(session);
	c->close(session);
	return NULL;
}

void lanes_rest(const struct lanes_plan *plan, struct lanes_rest *ret)
{
	struct field *f = field_new(plan);

	start(f, wait_in_thread);
	eventually(atomic_load(&f->ready) == plan->lanes);
	pause_ms(1000); /* until all lanes have looked, and wait */
	*ret = (struct lanes_rest){.seconds = (double)plan->ms / 1000,
	                           .requests = -requests_of(plan->contender),
	                           .server_cpu_ms = -server_cpu_ms(),
	                           .own_cpu_ms = -own_cpu_ms()};
	pause_ms(plan->ms);
	ret->server_cpu_ms += server_cpu_ms();
	ret->own_cpu_ms += own_cpu_ms();
	ret->requests += requests_of(plan->contender) - 1;
	atomic_store(&f->go, true);
	join(f);
	munmap(f, sizeof(*f));
}
