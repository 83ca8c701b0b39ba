/* What the library costs above the statements themselves: acquire + release,
 * against a bare loop that sends the same INSERT and DELETE as text.
 *
 *     floor [THREADS [SECONDS]]
 *
 * Each thread has a key of its own; the bare ones a connection as well. Rounds
 * alternate, SECONDS in all; the figures are medians. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"
#include "world.h"

#define THREADS_MAX 256
#define ROUNDS 7 /* of each kind; odd, for the median */

#define NOW "UTC_TIMESTAMP(6)"
#define TAKEN_OVER(column) column " = IF(timeout <= " NOW ", VALUES(" column "), " column "), "
#define INSERT                                                                                     \
	"INSERT INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout, note, gmt_create,"     \
	" gmt_modified) VALUES ('%s', 'bench', '1@1.0@floor', 1, " NOW                             \
	" + INTERVAL 30000000 MICROSECOND, '', " NOW ", " NOW ") ON DUPLICATE KEY UPDATE "         \
	"fence = IF(timeout <= " NOW ", LAST_INSERT_ID(VALUES(fence)), fence + 0 * "               \
	"LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, " NOW ", timeout))), " TAKEN_OVER("owner")      \
	        TAKEN_OVER("reentrant") TAKEN_OVER("note") TAKEN_OVER("gmt_create")                \
	                TAKEN_OVER("gmt_modified") "timeout = IF(timeout <= " NOW                  \
	                                           ", VALUES(timeout), timeout)"
#define DELETE                                                                                     \
	"DELETE FROM biz_lock WHERE biz_id = '%s' AND biz_type = 'bench'"                          \
	" AND owner = '1@1.0@floor' AND fence = %llu"

struct lane {
	pthread_t thread;
	char id[16];
	MYSQL *db;  /* a bare lane's */
	bizlock *b; /* the others' */
	const atomic_bool *stop;
	unsigned long pairs;
};

static void query(MYSQL *db, const char *text, int length)
{
	if (mysql_real_query(db, text, (unsigned long)length) != 0)
		die("%s", mysql_error(db));
}

static void *run_bare(void *arg)
{
	struct lane *lane = arg;
	char text[2048];

	while (!atomic_load_explicit(lane->stop, memory_order_relaxed)) {
		query(lane->db, text, snprintf(text, sizeof(text), INSERT, lane->id));
		query(lane->db, text,
		      snprintf(text, sizeof(text), DELETE, lane->id,
		               (unsigned long long)mysql_insert_id(lane->db)));
		if (mysql_affected_rows(lane->db) != 1)
			die("bare: not deleted");
		lane->pairs++;
	}
	return NULL;
}

static void *run_bizlock(void *arg)
{
	struct lane *lane = arg;
	bizlock_key key = {"bench", lane->id};

	while (!atomic_load_explicit(lane->stop, memory_order_relaxed)) {
		if (bizlock_acquire(lane->b, key, NULL, NULL) != BIZLOCK_OK ||
		    bizlock_release(lane->b, key, NULL, NULL) != BIZLOCK_OK)
			die("bizlock: %s", bizlock_errmsg(lane->b));
		lane->pairs++;
	}
	return NULL;
}

/* Pairs a second. */
static double round_of(struct lane *lanes, unsigned threads, void *(*run)(void *), unsigned ms)
{
	atomic_bool stop = false;
	unsigned long pairs = 0;
	int64_t start = now_ms(), took;

	for (unsigned i = 0; i < threads; i++) {
		lanes[i].pairs = 0;
		lanes[i].stop = &stop;
		if (pthread_create(&lanes[i].thread, NULL, run, &lanes[i]) != 0)
			die("no thread");
	}
	pause_ms(ms);
	atomic_store(&stop, true);
	took = now_ms() - start;
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(lanes[i].thread, NULL);
		pairs += lanes[i].pairs;
	}
	return (double)pairs * 1000 / (double)took;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), by_size);
	return values[ROUNDS / 2];
}

static void measure(struct lane *bare, struct lane *lock, unsigned threads, unsigned seconds)
{
	unsigned ms = seconds * 1000 / (2 * ROUNDS);
	double floors[ROUNDS], rates[ROUNDS], floor, rate;

	round_of(bare, threads, run_bare, ms);
	round_of(lock, threads, run_bizlock, ms);
	for (int i = 0; i < ROUNDS; i++) {
		floors[i] = round_of(bare, threads, run_bare, ms);
		rates[i] = round_of(lock, threads, run_bizlock, ms);
	}
	floor = median(floors);
	rate = median(rates);
	printf("threads %u, pairs a second: bare %.0f, bizlock %.0f, ratio %.2f\n", threads, floor,
	       rate, rate / floor);
}

static void bench(unsigned threads, unsigned seconds)
{
	static struct lane bare[THREADS_MAX], lock[THREADS_MAX];
	struct server at = server_from_env();
	char connections[16];
	struct world w;
	bizlock *b;

	world_make(&w, &at);
	world_migrate(&w);
	snprintf(connections, sizeof(connections), "%u", threads);
	b = client_open(&w, OPTIONS("max_connections", connections));
	for (unsigned i = 0; i < threads; i++) {
		snprintf(bare[i].id, sizeof(bare[i].id), "bare-%u", i);
		snprintf(lock[i].id, sizeof(lock[i].id), "lock-%u", i);
		lock[i].b = b;
		bare[i].db = db_open(&at, w.schema);
		db_run(bare[i].db, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
	}
	measure(bare, lock, threads, seconds);
	for (unsigned i = 0; i < threads; i++)
		mysql_close(bare[i].db);
	bizlock_close(b);
	world_drop(&w);
}

int main(int argc, char **argv)
{
	unsigned threads = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
	unsigned seconds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 7;

	if (!threads || threads > THREADS_MAX || !seconds)
		die("usage: floor [THREADS [SECONDS]]");
	bench(threads, seconds);
	return 0;
}
