/* Do watched waits starve? Two processes want the same HOT keys all the time, a thread for each
 * key. One has nothing else to do, so that its threads wait directly, with a connection each. The
 * other one also waits for COLD keys, with its 16 connections, so that some of its waits are
 * watched. A third one holds the cold keys for ever. How often each thread was served, as a line of
 * JSON.
 *
 *     waits_fair MS [COLD] */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/meter.h"
#include "contenders/mysql.h"
#include "patience.h"

#define HOT 4
#define COLD_MAX 1000
#define HOLD_MS 1
#define STACK (256 * 1024)

enum { DIRECT, WATCHED, SIDES };

static struct shared {
	unsigned cold;
	atomic_bool held, counts, over;
	atomic_uint waiting; /* threads that wait for cold keys */
	atomic_uint began;   /* threads that were served once */
	atomic_uint_fast64_t served[SIDES][HOT];
} * all;

/* A thread's key. */
struct want {
	bizlock *b;
	atomic_uint_fast64_t *served;
	char id[16];
	pthread_t thread;
};

static void take(bizlock *b, const char *id)
{
	if (bizlock_acquire(b, (bizlock_key){"bench", id}, NULL, NULL) != BIZLOCK_OK)
		die("%s: %s", id, bizlock_errmsg(b));
}

/* For ever. */
static void *wait_for_cold(void *arg)
{
	const struct want *want = arg;

	atomic_fetch_add(&all->waiting, 1);
	take(want->b, want->id);
	die("%s: nobody has released it", want->id);
}

static void *want_hot(void *arg)
{
	const struct want *want = arg;

	for (bool first = true; !atomic_load(&all->over); first = false) {
		take(want->b, want->id);
		pause_ms(HOLD_MS);
		if (atomic_load(&all->counts))
			atomic_fetch_add(want->served, 1);
		if (bizlock_release(want->b, (bizlock_key){"bench", want->id}, NULL, NULL) !=
		    BIZLOCK_OK)
			die("%s: %s", want->id, bizlock_errmsg(want->b));
		if (first)
			atomic_fetch_add(&all->began, 1);
	}
	return NULL;
}

static void start_thread(struct want *want, void *(*run)(void *))
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	if (pthread_create(&want->thread, &attr, run, want) != 0)
		die("no thread");
	pthread_attr_destroy(&attr);
}

/* ---- the processes ------------------------------------------------------------ */

static void be_holder(void)
{
	bizlock *b = client_open(&bench_world, NULL);
	char id[16];

	for (unsigned i = 0; i < all->cold; i++) {
		snprintf(id, sizeof(id), "cold-%u", i);
		take(b, id);
	}
	atomic_store(&all->held, true);
	for (;;)
		pause();
}

static void want_all_hot(bizlock *b, int side)
{
	static struct want wants[HOT];

	for (int i = 0; i < HOT; i++) {
		wants[i].b = b;
		wants[i].served = &all->served[side][i];
		snprintf(wants[i].id, sizeof(wants[i].id), "hot-%d", i);
		start_thread(&wants[i], want_hot);
	}
	for (int i = 0; i < HOT; i++)
		pthread_join(wants[i].thread, NULL);
}

static void be_direct(void)
{
	want_all_hot(client_open(&bench_world, NULL), DIRECT);
}

/* The cold keys come first, and so have the connections. */
static void be_watched(void)
{
	static struct want cold[COLD_MAX];
	bizlock *b = client_open(&bench_world, NULL);

	for (unsigned i = 0; i < all->cold; i++) {
		cold[i].b = b;
		snprintf(cold[i].id, sizeof(cold[i].id), "cold-%u", i);
		start_thread(&cold[i], wait_for_cold);
	}
	eventually(atomic_load(&all->waiting) == all->cold);
	pause_ms(1000); /* until all have looked, and wait */
	want_all_hot(b, WATCHED);
}

/* ---- the one that measures ------------------------------------------------------ */

/* Children do not close their clients: what they still have ends with their schema. */
static pid_t start(void (*be)(void))
{
	pid_t pid = meter_fork();

	if (pid > 0)
		return pid;
	be();
	_exit(0);
}

static void end(pid_t pid, bool ends_itself)
{
	int status;

	if (!ends_itself)
		kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid || (ends_itself && status != 0))
		die("a process did not end well");
}

static void print(unsigned ms)
{
	uint64_t least = UINT64_MAX, most = 0, sum[SIDES] = {0};

	for (int i = 0; i < SIDES * HOT; i++) {
		uint64_t n = all->served[i / HOT][i % HOT];

		sum[i / HOT] += n;
		if (n < least)
			least = n;
		if (n > most)
			most = n;
	}
	printf("{\"work\":\"fair_waits\",\"ms\":%u,\"hot\":%d,\"cold\":%u,\"direct\":%llu,"
	       "\"watched\":%llu,\"least\":%llu,\"most\":%llu}\n",
	       ms, HOT, all->cold, (unsigned long long)sum[DIRECT],
	       (unsigned long long)sum[WATCHED], (unsigned long long)least,
	       (unsigned long long)most);
}

int main(int argc, char **argv)
{
	unsigned ms = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	pid_t holder, direct, watched;

	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		die("out of memory");
	all->cold = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 196;
	if (!ms || all->cold > COLD_MAX)
		die("usage: waits_fair MS [COLD]");
	bench_mysql_set_up();
	holder = start(be_holder);
	eventually(atomic_load(&all->held));
	watched = start(be_watched);
	direct = start(be_direct);
	eventually(atomic_load(&all->began) == SIDES * HOT);
	atomic_store(&all->counts, true);
	pause_ms(ms);
	atomic_store(&all->counts, false);
	atomic_store(&all->over, true);
	end(direct, true);
	end(watched, true);
	end(holder, false);
	print(ms);
	bench_mysql_tear_down();
	return 0;
}
