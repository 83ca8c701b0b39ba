#define _GNU_SOURCE 1
#include "crowd.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "patience.h"

#define PROCESSES_MAX 64
#define KEYS_MAX 96
#define SPANS_MAX 4000000u
#define LOOK_MS 5 /* from one look at a hold to the next */

/* A hold, for the time in which its process believed in it. */
struct span {
	uint64_t fence;
	int64_t asked_us, start_us, end_us;
	unsigned key;
	bool lost;
};

/* Shared by all processes. */
struct crowd {
	struct crowd_plan plan;
	const char *const *options;
	pid_t pids[PROCESSES_MAX];
	atomic_bool pause, stop;
	atomic_uint ready, resting, owning, renewed, errors;
	atomic_ulong codes[16], lost, steps;
	atomic_ulong served[KEYS_MAX];
	atomic_uint count; /* of spans */
	/* Of the main process alone: */
	unsigned told;
	int64_t since_us;
	struct crowd_tale before;
	struct span last[KEYS_MAX]; /* with the largest fence so far */
	struct span spans[SPANS_MAX];
};

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- a process ------------------------------------------------------------- */

struct member {
	struct crowd *c;
	bizlock *b;
	unsigned number, random;
	bizlock_numbers counted; /* the part of these numbers that is in the sums already */
};

/* Answers that a fault excuses; all others are errors. */
static void count_answer(const struct member *m, const char *what, int rc)
{
	const unsigned legal = 1u << BIZLOCK_OK | 1u << BIZLOCK_TIMEOUT | 1u << BIZLOCK_LOST |
	                       1u << BIZLOCK_UNKNOWN | 1u << BIZLOCK_CONN;

	atomic_fetch_add(&m->c->codes[rc & 15], 1);
	if (legal >> rc & 1)
		return;
	fprintf(stderr, "process %u: %s: %s: %s\n", m->number, what, bizlock_err_name(rc),
	        bizlock_errmsg(m->b));
	atomic_fetch_add(&m->c->errors, 1);
}

static bool believe(const struct member *m, struct span *hold)
{
	int64_t now = now_us();
	char id[16];

	if (bizlock_left_ms(m->b, KEY(crowd_key(id, hold->key)), NULL) <= 0)
		return false;
	hold->end_us = now;
	return true;
}

static bool take(const struct member *m, unsigned key, struct span *ret)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	char id[16];
	int rc;

	opts.wait_ms = m->c->plan.wait_ms;
	opts.lease_ms = m->c->plan.lease_ms;
	*ret = (struct span){.key = key, .asked_us = now_us()};
	rc = bizlock_acquire(m->b, KEY(crowd_key(id, key)), &opts, &grant);
	ret->fence = grant.fence;
	ret->start_us = now_us();
	count_answer(m, "acquire", rc);
	if (rc == BIZLOCK_OK)
		atomic_fetch_add(&m->c->served[key], 1);
	else
		pause_ms(20); /* a server that is down refuses at once */
	return rc == BIZLOCK_OK;
}

static void give_back(const struct member *m, struct span *hold)
{
	bool believed = believe(m, hold);
	unsigned at;
	char id[16];
	int rc = bizlock_release(m->b, KEY(crowd_key(id, hold->key)), NULL, NULL);

	count_answer(m, "release", rc);
	hold->lost = rc == BIZLOCK_LOST || !believed;
	if (hold->lost)
		atomic_fetch_add(&m->c->lost, 1);
	if (!hold->end_us)
		return;
	at = atomic_fetch_add(&m->c->count, 1);
	if (at >= SPANS_MAX)
		die("more holds than there is room for");
	m->c->spans[at] = *hold;
}

static bool may_go_on(const struct crowd *c)
{
	return !atomic_load(&c->pause) && !atomic_load(&c->stop);
}

/* Most holds are as short as can be; some outlive their lease. */
static void hold_for_a_while(struct member *m, struct span *hold)
{
	const struct crowd_plan *plan = &m->c->plan;
	int64_t end = now_ms();

	if ((unsigned)rand_r(&m->random) % plan->long_in == 0)
		end += (unsigned)rand_r(&m->random) % plan->long_hold_ms;
	while (believe(m, hold) && now_ms() < end && may_go_on(m->c))
		pause_ms(LOOK_MS);
}

/* Each client counts for itself; the sums of all are kept up to date. */
static void add_up(struct member *m)
{
	bizlock_numbers n = BIZLOCK_NUMBERS_INIT;

	if (bizlock_stats(m->b, &n) != BIZLOCK_OK)
		die("stats: %s", bizlock_errmsg(m->b));
	atomic_fetch_add(&m->c->steps, n.clock_steps - m->counted.clock_steps);
	atomic_fetch_add(&m->c->renewed, n.renewals > 0 && m->counted.renewals == 0);
	m->counted = n;
}

static bool take_own(struct member *m, struct span *ret)
{
	if (!take(m, m->c->plan.keys + m->number, ret))
		return false;
	atomic_fetch_add(&m->c->owning, 1);
	return true;
}

/* False: the process has no hold of its own any more. */
static bool give_back_own(struct member *m, struct span *own)
{
	atomic_fetch_sub(&m->c->owning, 1);
	give_back(m, own);
	return false;
}

/* Takes turns at the keys that all want. The process keeps its own key until that is lost. */
static void take_turns(struct member *m)
{
	struct crowd *c = m->c;
	bool has_own = false;
	struct span own, hold;

	while (may_go_on(c)) {
		if (has_own && !believe(m, &own))
			has_own = give_back_own(m, &own);
		if (!has_own)
			has_own = take_own(m, &own);
		if (take(m, (unsigned)rand_r(&m->random) % c->plan.keys, &hold)) {
			hold_for_a_while(m, &hold);
			give_back(m, &hold);
		}
		add_up(m);
	}
	if (has_own)
		give_back_own(m, &own);
}

static void rest(struct crowd *c)
{
	atomic_fetch_add(&c->resting, 1);
	while (atomic_load(&c->pause) && !atomic_load(&c->stop))
		pause_ms(LOOK_MS);
	atomic_fetch_sub(&c->resting, 1);
}

static void work(struct crowd *c, const struct world *w, unsigned number)
{
	const struct server *at =
	        c->plan.servers ? &c->plan.servers[number % c->plan.servers_count] : &w->at;
	struct world own = world_by_way_of(w, at);
	struct member m = {.c = c,
	                   .b = client_open(&own, c->options),
	                   .number = number,
	                   .random = c->plan.seed + number};

	atomic_fetch_add(&c->ready, 1);
	while (!atomic_load(&c->stop)) {
		take_turns(&m);
		add_up(&m);
		rest(c);
	}
	bizlock_close(m.b);
}

/* ---- all of them ------------------------------------------------------------- */

struct crowd *crowd_start(const struct world *w, const struct crowd_plan *plan,
                          const char *const *options)
{
	struct crowd *c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE,
	                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (c == MAP_FAILED || plan->processes > PROCESSES_MAX ||
	    plan->keys + plan->processes > KEYS_MAX)
		die("no room for such a crowd");
	c->plan = *plan;
	c->options = options;
	c->since_us = now_us();
	for (unsigned i = 0; i < plan->processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork failed");
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			work(c, w, i);
			_exit(0);
		}
		c->pids[i] = pid; /* not by the child: c is shared */
	}
	eventually(atomic_load(&c->ready) == plan->processes);
	return c;
}

void crowd_pause(struct crowd *c)
{
	atomic_store(&c->pause, true);
	eventually(atomic_load(&c->resting) == c->plan.processes);
}

void crowd_resume(struct crowd *c)
{
	c->since_us = now_us();
	atomic_store(&c->pause, false);
	eventually(atomic_load(&c->resting) == 0);
}

int64_t crowd_goes_on(struct crowd *c, int64_t ms)
{
	unsigned long before[KEYS_MAX];
	int64_t start = now_ms();
	unsigned key = 0;

	for (unsigned i = 0; i < c->plan.keys; i++)
		before[i] = atomic_load(&c->served[i]);
	while (key < c->plan.keys) {
		if (atomic_load(&c->served[key]) > before[key])
			key++;
		else if (!pause_before(start + ms))
			return -1;
	}
	return now_ms() - start;
}

bool crowd_settles(struct crowd *c, int64_t ms)
{
	int64_t end = now_ms() + ms;

	while (atomic_load(&c->renewed) < c->plan.processes ||
	       atomic_load(&c->owning) < c->plan.processes)
		if (!pause_before(end))
			return false;
	return true;
}

bool crowd_notices(struct crowd *c, unsigned long steps, int64_t ms)
{
	int64_t end = now_ms() + ms;

	while (atomic_load(&c->steps) - c->before.steps < steps)
		if (!pause_before(end))
			return false;
	return true;
}

bool crowd_end(struct crowd *c)
{
	unsigned processes = c->plan.processes;
	bool good = true;
	int status;

	atomic_store(&c->stop, true);
	for (unsigned i = 0; i < processes; i++)
		if (waitpid(c->pids[i], &status, 0) != c->pids[i] || status != 0)
			good = false;
	munmap(c, sizeof(*c));
	return good;
}

/* ---- what happened ----------------------------------------------------------- */

static int by_key_and_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->start_us > y->start_us) - (x->start_us < y->start_us);
}

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return (x->start_us > y->start_us) - (x->start_us < y->start_us);
}

static void print_span(const char *what, const struct span *s)
{
	fprintf(stderr, "%s: key %u, fence %" PRIu64 ", asked for at %.6f, held %.6f to %.6f s%s\n",
	        what, s->key, s->fence, (double)s->asked_us / 1e6, (double)s->start_us / 1e6,
	        (double)s->end_us / 1e6, s->lost ? ", lost" : "");
}

/* last: of the holds that began before s, the one with the largest fence. A hold may be lost before
 * its process hears that it has begun. So the fence of a lost hold has gone back only if the
 * process of `last` had its answer before s was asked for. */
static void compare(struct crowd_tale *tale, struct span *last, const struct span *s)
{
	int64_t both = (s->end_us < last->end_us ? s->end_us : last->end_us) - s->start_us;

	if (both > 0) {
		tale->overlaps++;
		if (both > tale->overlap_us)
			tale->overlap_us = both;
	} else if (s->fence <= last->fence && (!s->lost || s->asked_us > last->start_us)) {
		tale->backward++;
		print_span("the fence is not larger", s);
		print_span("  than that of", last);
	}
	if (s->fence > last->fence)
		*last = *s;
}

static int64_t longest_gap(struct span *spans, unsigned count, int64_t since_us)
{
	int64_t gap = 0;

	qsort(spans, count, sizeof(*spans), by_start);
	for (unsigned i = 0; i < count; i++) {
		if (spans[i].start_us - since_us > gap)
			gap = spans[i].start_us - since_us;
		since_us = spans[i].start_us;
	}
	return gap;
}

struct crowd_tale crowd_tell(struct crowd *c)
{
	struct crowd_tale tale = {.acquired = atomic_load(&c->codes[0])}, *before = &c->before;
	unsigned count = atomic_load(&c->count) - c->told;
	struct span *spans = c->spans + c->told;

	qsort(spans, count, sizeof(*spans), by_key_and_start);
	for (unsigned i = 0; i < count; i++)
		compare(&tale, &c->last[spans[i].key], &spans[i]);
	tale.gap_us = longest_gap(spans, count, c->since_us);
	tale.acquired = count;
	tale.lost = atomic_load(&c->lost) - before->lost;
	tale.steps = atomic_load(&c->steps) - before->steps;
	tale.errors = atomic_load(&c->errors) - before->errors;
	for (int i = 0; i < 16; i++) {
		tale.codes[i] = atomic_load(&c->codes[i]) - before->codes[i];
		before->codes[i] += tale.codes[i];
	}
	before->lost += tale.lost;
	before->steps += tale.steps;
	before->errors += tale.errors;
	c->told += count;
	return tale;
}
