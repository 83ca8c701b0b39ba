/* Does the reaper stand in the way? Acquire and release of random keys, before and
 * while it purges stale rows. Two lines of JSON.
 *
 *     purging ROWS MS */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/many.h"
#include "common/meter.h"
#include "patience.h"

#define PATIENCE (10 * PATIENCE_MS)

struct reaper {
	bizlock *b;
	atomic_bool over;
	uint64_t purged;
};

static void *reap(void *arg)
{
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	bizlock_reap_result result = BIZLOCK_REAP_RESULT_INIT;
	struct reaper *r = arg;

	if (bizlock_reap(r->b, &opts, &result) != BIZLOCK_OK)
		die("%s", bizlock_errmsg(r->b));
	r->purged = result.leases;
	atomic_store(&r->over, true);
	return NULL;
}

static void print(unsigned rows, uint64_t purged, int64_t ns, const struct hist *acquire,
                  const struct hist *pair)
{
	printf("{\"work\":\"purging\",\"rows\":%u,\"purged\":%llu,\"seconds\":%.2f,", rows,
	       (unsigned long long)purged, (double)ns / 1e9);
	hist_print(stdout, "acquire_us", acquire);
	fputc(',', stdout);
	hist_print(stdout, "pair_us", pair);
	fputs("}\n", stdout);
}

static void measure(bizlock *b, struct reaper *reaper, unsigned rows, unsigned ms)
{
	static struct hist acquire, pair;
	static const atomic_bool never;
	int64_t start = now_ns();
	pthread_t thread;

	many_pairs(b, now_ms() + ms, &never, &acquire, &pair);
	print(rows, 0, now_ns() - start, &acquire, &pair);
	memset(&acquire, 0, sizeof(acquire));
	memset(&pair, 0, sizeof(pair));
	start = now_ns();
	if (pthread_create(&thread, NULL, reap, reaper) != 0)
		die("no thread");
	many_pairs(b, now_ms() + PATIENCE, &reaper->over, &acquire, &pair);
	pthread_join(thread, NULL);
	print(rows, reaper->purged, now_ns() - start, &acquire, &pair);
	if (reaper->purged < rows)
		die("only %llu rows were purged", (unsigned long long)reaper->purged);
}

int main(int argc, char **argv)
{
	unsigned rows = argc > 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	unsigned ms = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	struct server at = server_from_env();
	struct reaper reaper = {0};
	struct world w;
	bizlock *b;

	if (!rows || !ms)
		die("usage: purging ROWS MS");
	world_make(&w, &at);
	world_migrate(&w);
	many_rows(&w, rows, -7200);
	many_settle(&w);
	b = client_open(&w, NULL);
	reaper.b = client_open(&w, NULL);
	measure(b, &reaper, rows, ms);
	bizlock_close(reaper.b);
	bizlock_close(b);
	world_drop(&w);
	return 0;
}
