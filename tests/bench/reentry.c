/* What re-entry costs: counted in memory, and by the row. Lines of JSON.
 *
 *     reentry [MS]
 *
 * In memory a call is too short for the clock: runs of them are timed. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/hist.h"
#include "common/meter.h"
#include "contenders/mysql.h"
#include "patience.h"

#define RUN 1000

static const bizlock_key key = {"bench", "reentry"};

static void take(bizlock *b, uint32_t flags)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	opts.flags = flags;
	if (bizlock_acquire(b, key, &opts, NULL) != BIZLOCK_OK)
		die("acquire: %s", bizlock_errmsg(b));
}

static void leave(bizlock *b)
{
	if (bizlock_release(b, key, NULL, NULL) != BIZLOCK_OK)
		die("release: %s", bizlock_errmsg(b));
}

/* n levels deeper and back: ns for each. */
static void go(bizlock *b, uint32_t flags, int n, struct hist *deeper, struct hist *back)
{
	int64_t start = now_ns(), middle;

	for (int i = 0; i < n; i++)
		take(b, flags);
	middle = now_ns();
	for (int i = 0; i < n; i++)
		leave(b);
	hist_add(deeper, (middle - start) / n);
	hist_add(back, (now_ns() - middle) / n);
}

/* What none can do without: two uncontended mutexes and a look at the clock. */
static void add_ruler(struct hist *ruler)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	int64_t start = now_ns();
	struct timespec now;

	for (int i = 0; i < RUN; i++) {
		for (int pair = 0; pair < 2; pair++) {
			pthread_mutex_lock(&mutex);
			pthread_mutex_unlock(&mutex);
		}
		clock_gettime(CLOCK_BOOTTIME, &now);
	}
	hist_add(ruler, (now_ns() - start) / RUN);
}

static void measure(bizlock *b, uint32_t flags, unsigned ms)
{
	static struct hist deeper, back, ruler;
	int n = flags ? RUN : 1;
	int64_t end;
	long long requests;

	memset(&deeper, 0, sizeof(deeper));
	memset(&back, 0, sizeof(back));
	memset(&ruler, 0, sizeof(ruler));
	take(b, flags);
	go(b, flags, n, &deeper, &back);
	requests = bench_mysql_requests();
	for (end = now_ms() + ms; now_ms() < end;) {
		go(b, flags, n, &deeper, &back);
		add_ruler(&ruler);
	}
	requests = bench_mysql_requests() - requests - 1;
	leave(b);
	printf("{\"work\":\"reentry\",\"local\":%s,\"deeper_ns\":%.1f,\"back_ns\":%.1f,"
	       "\"ruler_ns\":%.1f,\"statements\":%.3f}\n",
	       flags ? "true" : "false", 1000 * hist_us(&deeper, 0.5), 1000 * hist_us(&back, 0.5),
	       1000 * hist_us(&ruler, 0.5),
	       (double)requests / (double)((deeper.n - 1) * (unsigned)n * 2));
}

int main(int argc, char **argv)
{
	unsigned ms = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 500;
	bizlock *b;

	bench_mysql_set_up();
	b = client_open(&bench_world, NULL);
	measure(b, BIZLOCK_LOCAL_REENTRY, ms);
	measure(b, 0, ms);
	bizlock_close(b);
	bench_mysql_tear_down();
	return 0;
}
