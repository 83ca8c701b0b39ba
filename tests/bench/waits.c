/* Many waits at once: a process waits for all keys, and another one, which holds them, releases one
 * after the other, in random order. A line of JSON.
 *
 *     waits CONTENDER threads|loop KEYS GAP_MS [ROUNDS [TIMED]]
 *     waits CONTENDER idle KEYS MS
 *
 * threads: a thread waits for each key. loop: one for all. There are GAP_MS to twice that between
 * two releases. After the first TIMED of a round, the others come at once; by default, all are
 * timed. idle: what it costs when nothing is released for MS. Where the servers are: see run.sh. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/hist.h"
#include "common/meter.h"
#include "common/waiters.h"
#include "patience.h"

#define KEYS_MAX 20000

/* The server is at rest when it gets fewer requests than that in so many ms. It may never be, if
 * its clients poll. */
#define REST_REQUESTS 10
#define REST_MS 300
#define REST_TRIES 300

struct plan {
	const struct contender *contender;
	unsigned keys, gap_ms, rounds, timed, idle_ms;
	bool loop;
};

struct figures {
	struct hist wakeup;
	int64_t ns;
	long long requests;
	unsigned connections, waiting_connections; /* most at a time: of both processes, of one */
	int64_t server_ms, waiting_ms, holding_ms; /* processor time */
};

/* Each step of a round is counted by the number of the round. */
static struct shared {
	struct plan plan;
	atomic_uint held, started, go, done;
	_Atomic int64_t released[KEYS_MAX]; /* 0: not timed */
	pthread_mutex_t mu;
	struct figures figures;
} * all;

static pid_t holder, waiter;
static struct figures idle_time;
static bool rests = true; /* the server came to rest before each first release */

/* ---- the holder ------------------------------------------------------------ */

static void until(const atomic_uint *step, unsigned round)
{
	while (atomic_load(step) < round)
		pause_ms(1);
}

static void hold_all(void)
{
	for (unsigned i = 0; i < all->plan.keys; i++)
		if (!all->plan.contender->waits->attempt(i))
			die("%s: somebody else has key %u", all->plan.contender->name, i);
}

static void release_all(unsigned *order, unsigned *seed)
{
	unsigned n = all->plan.keys, gap = all->plan.gap_ms;

	for (unsigned i = n; i-- > 1;) {
		unsigned other = (unsigned)rand_r(seed) % (i + 1), key = order[i];

		order[i] = order[other];
		order[other] = key;
	}
	for (unsigned i = 0; i < n; i++) {
		bool timed = i < all->plan.timed;

		all->released[order[i]] = timed ? now_ns() : 0;
		all->plan.contender->waits->release(order[i]);
		if (timed)
			pause_ms(gap + (unsigned)rand_r(seed) % (gap + 1));
	}
}

static void be_holder(void)
{
	unsigned *order = calloc(all->plan.keys, sizeof(*order)), seed = 1;

	if (!order)
		die("out of memory");
	for (unsigned i = 0; i < all->plan.keys; i++)
		order[i] = i;
	all->plan.contender->waits->begin(all->plan.keys, false, NULL);
	for (unsigned round = 1; round <= all->plan.rounds; round++) {
		hold_all();
		atomic_store(&all->held, round);
		until(&all->go, round);
		release_all(order, &seed);
		until(&all->done, round);
	}
	all->plan.contender->waits->end();
	free(order);
}

/* ---- those that wait --------------------------------------------------------- */

static void got(unsigned key)
{
	int64_t now = now_ns(), released = all->released[key];

	pthread_mutex_lock(&all->mu);
	if (released)
		hist_add(&all->figures.wakeup, now - released);
	pthread_mutex_unlock(&all->mu);
}

static void be_waiter(void)
{
	struct waiters_plan plan = {.way = all->plan.contender->waits,
	                            .keys = all->plan.keys,
	                            .loop = all->plan.loop,
	                            .started = &all->started,
	                            .got = got};

	waiters_begin(&plan);
	for (unsigned round = 1; round <= all->plan.rounds; round++) {
		until(&all->held, round);
		waiters_run();
		atomic_store(&all->done, round);
	}
	waiters_end();
}

/* ---- the one that measures ---------------------------------------------------- */

static pid_t start(void (*be)(void))
{
	pid_t pid = meter_fork();

	if (pid > 0)
		return pid;
	be();
	_exit(0);
}

static bool any_has_ended(void)
{
	siginfo_t ended = {0};

	return waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid != 0;
}

static void look_at_connections(void)
{
	unsigned port = all->plan.contender->waits->port();
	unsigned waiting = connections_of(waiter, port);
	unsigned both = waiting + connections_of(holder, port);

	if (both > all->figures.connections)
		all->figures.connections = both;
	if (waiting > all->figures.waiting_connections)
		all->figures.waiting_connections = waiting;
}

/* The processes end when all steps are done. */
static void watch_until(const atomic_uint *step, unsigned n)
{
	while (atomic_load(step) < n) {
		look_at_connections();
		if (any_has_ended() && atomic_load(step) < n)
			die("%s: a process has ended", all->plan.contender->name);
		pause_ms(20);
	}
}

/* The server's requests so far, without the questions that are asked here. */
static long long requests(void)
{
	static long long asked, cost = -1;
	const struct contender_waits *way = all->plan.contender->waits;

	if (cost < 0) {
		cost = -way->requests();
		cost += way->requests();
	}
	return way->requests() - cost * ++asked;
}

/* False: it has not come to rest. */
static bool rest(void)
{
	for (int i = 0; i < REST_TRIES; i++) {
		long long before = requests();

		pause_ms(REST_MS);
		look_at_connections();
		if (requests() - before < REST_REQUESTS)
			return true;
	}
	return false;
}

/* Called with -1 and then with 1, it leaves what was used between the two. */
static void count(struct figures *f, int sign)
{
	f->ns += sign * now_ns();
	f->requests += sign * requests();
	f->server_ms += sign * server_cpu_ms();
	f->waiting_ms += waiter ? sign * child_cpu_ms(waiter) : 0;
	f->holding_ms += holder ? sign * child_cpu_ms(holder) : 0;
}

static void idle(void)
{
	memset(&idle_time, 0, sizeof(idle_time));
	count(&idle_time, -1);
	pause_ms(all->plan.idle_ms);
	count(&idle_time, 1);
	idle_time.connections = all->figures.connections;
	idle_time.waiting_connections = all->figures.waiting_connections;
}

static void run_rounds(void)
{
	for (unsigned round = 1; round <= all->plan.rounds; round++) {
		watch_until(&all->held, round);
		watch_until(&all->started, round * all->plan.keys);
		rests = rests && rest();
		if (all->plan.idle_ms)
			idle();
		atomic_store(&all->go, round);
		watch_until(&all->done, round);
	}
}

static bool ended_well(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && status == 0;
}

static void measure(void)
{
	count(&all->figures, -1);
	holder = start(be_holder);
	waiter = start(be_waiter);
	run_rounds();
	count(&all->figures, 1);
	if (!ended_well(holder) || !ended_well(waiter))
		die("%s: a process did not end well", all->plan.contender->name);
}

static void print(const struct figures *f)
{
	const struct plan *plan = &all->plan;

	printf("{\"contender\":\"%s\",\"work\":\"%s\",\"loop\":%s,\"keys\":%u,\"rounds\":%u,"
	       "\"timed\":%u,\"gap_ms\":%u,",
	       plan->contender->name, plan->idle_ms ? "idle_waits" : "waits",
	       plan->loop ? "true" : "false", plan->keys, plan->rounds, plan->timed, plan->gap_ms);
	hist_print(stdout, "wakeup_us", &f->wakeup);
	printf(",\"rested\":%s,\"seconds\":%.2f,\"requests\":%lld,\"connections\":%u,"
	       "\"waiting_connections\":%u,\"server_cpu_ms\":%lld,\"client_cpu_ms\":%lld,"
	       "\"holder_cpu_ms\":%lld}\n",
	       rests ? "true" : "false", (double)f->ns / 1e9, f->requests, f->connections,
	       f->waiting_connections, (long long)f->server_ms, (long long)f->waiting_ms,
	       (long long)f->holding_ms);
}

static unsigned number(const char *text, unsigned otherwise)
{
	return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static void read_plan(struct plan *plan, int argc, char **argv)
{
	const char *kind = argc > 4 ? argv[2] : "";

	plan->contender = argc > 4 ? contender_find(argv[1]) : NULL;
	plan->keys = number(argc > 4 ? argv[3] : NULL, 0);
	plan->loop = strcmp(kind, "loop") == 0;
	plan->rounds = number(argc > 5 ? argv[5] : NULL, 1);
	plan->timed = number(argc > 6 ? argv[6] : NULL, plan->keys);
	if (strcmp(kind, "idle") == 0) {
		plan->idle_ms = number(argv[4], 0);
		plan->timed = 0;
	} else {
		plan->gap_ms = number(argc > 4 ? argv[4] : NULL, 0);
	}
	if (!plan->keys || plan->keys > KEYS_MAX || !(plan->gap_ms || plan->idle_ms))
		die("usage: waits CONTENDER threads|loop KEYS GAP_MS [ROUNDS [TIMED]]\n"
		    "       waits CONTENDER idle KEYS MS");
	if (!plan->contender || !plan->contender->waits)
		die("waits: no such contender: %s", argv[1]);
}

static void share(void)
{
	pthread_mutexattr_t attr;

	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		die("out of memory");
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&all->mu, &attr);
	pthread_mutexattr_destroy(&attr);
}

int main(int argc, char **argv)
{
	share();
	read_plan(&all->plan, argc, argv);
	all->plan.contender->set_up();
	measure();
	print(all->plan.idle_ms ? &idle_time : &all->figures);
	all->plan.contender->tear_down();
	return 0;
}
