#define _GNU_SOURCE 1
#include "many.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meter.h"
#include "patience.h"

#define THREADS 8
#define SETTLE_MS 60000

struct crew {
	bizlock *b;
	atomic_uint next;
	unsigned n;
	uint32_t lease_ms;
	bool release;
};

static int take(const struct crew *crew, bizlock_key key)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	opts.owner = MANY_OWNER;
	opts.lease_ms = crew->lease_ms;
	return bizlock_acquire(crew->b, key, &opts, NULL);
}

static void *work(void *arg)
{
	struct crew *crew = arg;
	char id[24];
	unsigned i;

	while ((i = atomic_fetch_add(&crew->next, 1)) < crew->n) {
		bizlock_key key = {"bench", id};

		snprintf(id, sizeof(id), "held-%u", i);
		if ((crew->release ? bizlock_release(crew->b, key, MANY_OWNER, NULL)
		                   : take(crew, key)) != BIZLOCK_OK)
			die("%s: %s", id, bizlock_errmsg(crew->b));
	}
	return NULL;
}

static void work_together(struct crew *crew)
{
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, crew) != 0)
			die("no thread");
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

void many_acquire(bizlock *b, unsigned n, uint32_t lease_ms)
{
	struct crew crew = {.b = b, .n = n, .lease_ms = lease_ms};

	work_together(&crew);
}

void many_release(bizlock *b, unsigned n)
{
	struct crew crew = {.b = b, .n = n, .release = true};

	work_together(&crew);
}

/* ---- rows ---------------------------------------------------------------- */

#define COLUMNS "(biz_id, biz_type, owner, reentrant, timeout, note, gmt_create, gmt_modified)"
#define VALUES                                                                                     \
	"LEFT(SHA2(CONCAT(%u + %s, '-row'), 256), 32), 'bench', '1@1.0@elsewhere', 1, "            \
	"UTC_TIMESTAMP(6) + "                                                                      \
	"INTERVAL %d SECOND, '', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)"
#define STEP 10000u

void many_rows(const struct world *w, unsigned n, int seconds)
{
	unsigned first = n < STEP ? n : STEP;

	db_run(w->admin, "CREATE TEMPORARY TABLE numbers (i INT UNSIGNED PRIMARY KEY)");
	db_run(w->admin,
	       "SET @i = -1; INSERT INTO numbers SELECT @i := @i + 1 FROM"
	       " information_schema.COLUMNS a, information_schema.COLUMNS b LIMIT %u",
	       first);
	for (unsigned i = 0; i < n; i += STEP)
		db_run(w->admin, "INSERT INTO biz_lock " COLUMNS " SELECT " VALUES " FROM numbers",
		       i, "i", seconds);
	db_run(w->admin, "DROP TEMPORARY TABLE numbers");
}

void many_pairs(bizlock *b, int64_t end, const atomic_bool *over, struct hist *acquire,
                struct hist *pair)
{
	static _Thread_local unsigned random = 1;

	while (now_ms() < end && !atomic_load(over)) {
		int64_t start = now_ns(), got;
		char id[40];
		bizlock_key key = {"bench", id};

		snprintf(id, sizeof(id), "%08x%08x", (unsigned)rand_r(&random) * 2,
		         (unsigned)rand_r(&random));
		if (bizlock_acquire(b, key, NULL, NULL) != BIZLOCK_OK)
			die("%s", bizlock_errmsg(b));
		got = now_ns();
		if (bizlock_release(b, key, NULL, NULL) != BIZLOCK_OK)
			die("%s", bizlock_errmsg(b));
		hist_add(acquire, got - start);
		hist_add(pair, now_ns() - start);
	}
}

static long long changed_pages(const struct world *w)
{
	char *text = db_text(w->admin, "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'");
	char *value = strchr(text, '|');
	long long n = value ? strtoll(value + 1, NULL, 10) : 0;

	free(text);
	return n;
}

void many_settle(const struct world *w)
{
	int64_t end = now_ms() + SETTLE_MS;

	db_run(w->admin, "SET @pages = @@GLOBAL.innodb_max_dirty_pages_pct, @low ="
	                 " @@GLOBAL.innodb_max_dirty_pages_pct_lwm;"
	                 "SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0;"
	                 "SET GLOBAL innodb_max_dirty_pages_pct = 0");
	while (changed_pages(w) > 50 && pause_before(end))
		;
	db_run(w->admin, "SET GLOBAL innodb_max_dirty_pages_pct = @pages;"
	                 "SET GLOBAL innodb_max_dirty_pages_pct_lwm = @low");
}
