/* What a hold that is renewed every second costs all others: pairs a second of threads with keys of
 * their own, with such a hold and without, on a server that writes a binary log. A line of JSON for
 * each value of the option `combine` and each round.
 *
 *     beside_renewal ROUNDS MS
 *
 * The two alternate: their ratio is that of neighbours. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "own_server.h"
#include "patience.h"
#include "world.h"

#define THREADS 24
#define LEASE_MS 3000

struct lane {
	pthread_t thread;
	bizlock *b;
	const atomic_bool *over;
	unsigned number;
	unsigned long pairs;
};

static void *take_and_give_back(void *arg)
{
	struct lane *lane = arg;
	char id[16];
	bizlock_key key = {"bench", id};

	snprintf(id, sizeof(id), "own-%u", lane->number);
	while (!atomic_load(lane->over)) {
		if (bizlock_acquire(lane->b, key, NULL, NULL) != BIZLOCK_OK ||
		    bizlock_release(lane->b, key, NULL, NULL) != BIZLOCK_OK)
			die("%s", bizlock_errmsg(lane->b));
		lane->pairs++;
	}
	return NULL;
}

/* Pairs a second. */
static double rate(bizlock *b, unsigned ms)
{
	struct lane lanes[THREADS];
	atomic_bool over = false;
	unsigned long pairs = 0;
	int64_t start = now_ms();

	for (unsigned i = 0; i < THREADS; i++) {
		lanes[i] = (struct lane){.b = b, .over = &over, .number = i};
		if (pthread_create(&lanes[i].thread, NULL, take_and_give_back, &lanes[i]) != 0)
			die("no thread");
	}
	pause_ms(ms);
	atomic_store(&over, true);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(lanes[i].thread, NULL);
		pairs += lanes[i].pairs;
	}
	return (double)pairs * 1000 / (double)(now_ms() - start);
}

static uint64_t renewals(bizlock *b)
{
	bizlock_numbers n = BIZLOCK_NUMBERS_INIT;

	if (bizlock_stats(b, &n) != BIZLOCK_OK)
		die("%s", bizlock_errmsg(b));
	if (n.lost)
		die("the hold was lost");
	return n.renewals;
}

/* What a renewal does to the server may last: so it begins before the measurement. */
static double rate_beside_renewal(const struct world *w, bizlock *b, unsigned ms)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock *holder = client_open(w, NULL);
	bizlock_key key = {"bench", "held"};
	double got;

	opts.lease_ms = LEASE_MS;
	if (bizlock_acquire(holder, key, &opts, NULL) != BIZLOCK_OK)
		die("%s", bizlock_errmsg(holder));
	eventually(renewals(holder) > 0);
	got = rate(b, ms);
	if (bizlock_release(holder, key, NULL, NULL) != BIZLOCK_OK)
		die("%s", bizlock_errmsg(holder));
	bizlock_close(holder);
	return got;
}

static void measure(const struct world *w, const char *combine, int round, unsigned ms)
{
	bizlock *b =
	        client_open(w, (const char *[]){"combine", combine, "max_connections", "64", NULL});
	double alone, beside;

	rate(b, ms / 4); /* connections, statements, pages */
	alone = rate(b, ms);
	beside = rate_beside_renewal(w, b, ms);
	bizlock_close(b);
	printf("{\"work\":\"beside_renewal\",\"combine\":\"%s\",\"round\":%d,\"alone_s\":%.1f,"
	       "\"beside_s\":%.1f}\n",
	       combine, round, alone, beside);
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? (int)strtol(argv[1], NULL, 10) : 0;
	unsigned ms = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	static struct own_server server;
	struct world w;

	if (rounds < 1 || !ms)
		die("usage: beside_renewal ROUNDS MS");
	if (!own_server_possible())
		die("no BIZLOCK_SERVER_SH");
	own_server_start(&server, "--log-bin --server-id=1");
	world_make(&w, &server.at);
	world_migrate(&w);
	for (int round = 1; round <= rounds; round++) {
		measure(&w, "on", round, ms);
		measure(&w, "off", round, ms);
	}
	world_drop(&w);
	own_server_end(&server);
	return 0;
}
