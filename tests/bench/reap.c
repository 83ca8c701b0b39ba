/* How fast bizlock_reap() is, and how long it holds others up.
 *
 *     reap [STALE [LIVE [PAUSE_MS]]]
 *
 * Fills biz_lock with STALE rows of dead holders (1,000,000) and LIVE locks that are held
 * (10,000) spread among them, then purges while four threads acquire and release: two of
 * them keys that nobody else wants, between the stale rows, and two the stale rows
 * themselves, taking them over. The same threads without a reaper come first, for
 * comparison: on a machine that has other things to do, they too wait. */
#define _GNU_SOURCE 1
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "patience.h"
#include "stale.h"
#include "world.h"

#define THREADS 4
#define ALONE_MS 5000
#define OVER_MS 7200000
#define TIMES_MAX 1000000

struct acquirer {
	pthread_t thread;
	bizlock *b;
	unsigned number, keys;
	unsigned random; /* state: what was drawn without a reaper is not drawn again */
	bool takes_over;
	atomic_bool *stop;
	uint32_t *us; /* of each acquire */
	size_t count;
	uint64_t took_over;
};

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void acquire_one(struct acquirer *a, unsigned i)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	char id[64];
	bizlock_key key = {"test", id};
	int64_t began;

	snprintf(id, sizeof(id), a->takes_over ? "k-%07u" : "k-%07u-%u", i, a->number);
	began = now_us();
	if (bizlock_acquire(a->b, key, NULL, &grant) != BIZLOCK_OK)
		die("acquire: %s", bizlock_errmsg(a->b));
	if (a->count < TIMES_MAX)
		a->us[a->count++] = (uint32_t)(now_us() - began);
	a->took_over += (grant.flags & BIZLOCK_TOOK_OVER) != 0;
	if (bizlock_release(a->b, key, NULL, NULL) != BIZLOCK_OK)
		die("release: %s", bizlock_errmsg(a->b));
}

static void *acquire_all(void *arg)
{
	struct acquirer *a = arg;

	while (!atomic_load(a->stop))
		acquire_one(a, (unsigned)rand_r(&a->random) % a->keys);
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void show(const char *what, struct acquirer *a)
{
	qsort(a->us, a->count, sizeof(*a->us), by_size);
	if (a->count > 0)
		printf("  %s: %zu acquired (%" PRIu64 " taken over), median %.1f ms, 99.9 %% below"
		       " %.1f ms, longest %.1f ms\n",
		       what, a->count, a->took_over, a->us[a->count / 2] / 1000.0,
		       a->us[a->count - 1 - a->count / 1000] / 1000.0,
		       a->us[a->count - 1] / 1000.0);
	a->count = 0;
	a->took_over = 0;
}

static void start(struct acquirer *all, atomic_bool *stop)
{
	atomic_store(stop, false);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&all[i].thread, NULL, acquire_all, &all[i]) != 0)
			die("no thread");
}

static void stop_and_show(struct acquirer *all, atomic_bool *stop)
{
	atomic_store(stop, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(all[i].thread, NULL);
	for (int i = 0; i < THREADS; i++)
		show(all[i].takes_over ? "stale keys" : "new keys  ", &all[i]);
}

static long long status_of(MYSQL *db, const char *name)
{
	char *line = db_text(db, "SHOW GLOBAL STATUS LIKE '%s'", name);
	const char *value = strchr(line, '|');
	long long n = value ? strtoll(value + 1, NULL, 10) : 0;

	free(line);
	return n;
}

static int count_batch(void *arg, const bizlock_reap_result *so_far)
{
	(void)so_far;
	++*(unsigned *)arg;
	return 0;
}

/* Waits for rows are what a reaper is to blame for; for the processor and the disk all
 * of them wait. */
static void reap(bizlock *b, MYSQL *db, unsigned between_ms)
{
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	bizlock_reap_result got = BIZLOCK_REAP_RESULT_INIT;
	long long waits = status_of(db, "Innodb_row_lock_waits");
	long long waited = status_of(db, "Innodb_row_lock_time");
	int64_t began = now_us(), took;
	unsigned batches = 0;

	opts.pause_ms = between_ms;
	opts.progress = count_batch;
	opts.arg = &batches;
	if (bizlock_reap(b, &opts, &got) != BIZLOCK_OK)
		die("reap: %s", bizlock_errmsg(b));
	took = now_us() - began;
	printf("purged %" PRIu64 " of %" PRIu64 " rows (estimated %" PRIu64 "), %" PRIu64
	       " passed over, in %u batches and %.1f s: %.0f rows a second\n",
	       got.leases, got.looked_at, got.rows, got.passed_over, batches, (double)took / 1e6,
	       (double)got.leases * 1e6 / (double)took);
	printf("waits for rows: %lld, %lld ms in all\n",
	       status_of(db, "Innodb_row_lock_waits") - waits,
	       status_of(db, "Innodb_row_lock_time") - waited);
}

static unsigned number_or(int argc, char **argv, int i, unsigned otherwise)
{
	return argc > i ? (unsigned)strtoul(argv[i], NULL, 10) : otherwise;
}

/* Every so many of the stale rows gets a live one after it. */
static void fill(struct world *w, unsigned stale, unsigned live)
{
	stale_leases(w->admin, "k", stale, OVER_MS);
	if (live > 0)
		db_run(w->admin,
		       "INSERT INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout,"
		       " gmt_create, gmt_modified) SELECT CONCAT(biz_id, '-live'), biz_type, owner,"
		       " 1, UTC_TIMESTAMP(6) + INTERVAL 1 DAY, gmt_create, gmt_modified FROM"
		       " biz_lock WHERE MOD(fence, %u) = 0 ORDER BY biz_id LIMIT %u",
		       stale / live ? stale / live : 1, live);
}

static void begin(struct acquirer *all, const struct world *w, unsigned keys, atomic_bool *stop)
{
	for (unsigned i = 0; i < THREADS; i++) {
		all[i] = (struct acquirer){.b = client_open(w, NULL),
		                           .number = i,
		                           .keys = keys,
		                           .random = i + 1,
		                           .takes_over = i % 2,
		                           .stop = stop,
		                           .us = calloc(TIMES_MAX, sizeof(uint32_t))};
		if (!all[i].us)
			die("out of memory");
	}
}

static void end(struct acquirer *all)
{
	for (int i = 0; i < THREADS; i++) {
		bizlock_close(all[i].b);
		free(all[i].us);
	}
}

int main(int argc, char **argv)
{
	unsigned stale = number_or(argc, argv, 1, 1000000), live = number_or(argc, argv, 2, 10000);
	struct acquirer all[THREADS];
	struct server at = server_from_env();
	atomic_bool stop;
	struct world w;
	bizlock *b;

	if (!stale)
		die("usage: reap [STALE [LIVE [PAUSE_MS]]]");
	world_make(&w, &at);
	world_migrate(&w);
	fill(&w, stale, live);
	b = client_open(&w, NULL);
	begin(all, &w, stale, &stop);
	printf("without a reaper, %d s:\n", ALONE_MS / 1000);
	start(all, &stop);
	pause_ms(ALONE_MS);
	stop_and_show(all, &stop);
	start(all, &stop);
	reap(b, w.admin, number_or(argc, argv, 3, 0));
	stop_and_show(all, &stop);
	printf("%lld rows left, %lld of them live\n",
	       db_number(w.admin, "SELECT COUNT(*) FROM biz_lock"),
	       db_number(w.admin, "SELECT COUNT(*) FROM biz_lock"
	                          " WHERE timeout > UTC_TIMESTAMP(6)"));
	end(all);
	bizlock_close(b);
	world_drop(&w);
	return 0;
}
