/* What a set is worth: n keys by bizlock_acquire_all() and _release_all(), against n
 * single acquisitions and releases, by one thread.
 *
 *     sets [SECONDS]
 *
 * Rounds alternate, SECONDS in all; the figures are medians, in keys (not sets) that
 * were acquired and released in a second. The ratio is that of a round and its
 * neighbour, for machines that have other things to do. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>

#include "keyset.h"
#include "patience.h"
#include "world.h"

#define ROUNDS 7 /* of each kind and size; odd, for the median */

static const size_t sizes[] = {1, 8, 32, 128};

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

typedef int turn(bizlock *b, struct keyset *s);

static int together(bizlock *b, struct keyset *s)
{
	int rc = bizlock_acquire_all(b, s->keys, s->n, NULL, NULL);

	return rc == BIZLOCK_OK ? bizlock_release_all(b, s->keys, s->n, NULL) : rc;
}

/* All are held at a time, as a set is. */
static int one_by_one(bizlock *b, struct keyset *s)
{
	int rc = BIZLOCK_OK;

	for (size_t i = 0; i < s->n && rc == BIZLOCK_OK; i++)
		rc = bizlock_acquire(b, s->keys[i], NULL, NULL);
	for (size_t i = 0; i < s->n && rc == BIZLOCK_OK; i++)
		rc = bizlock_release(b, s->keys[i], NULL, NULL);
	return rc;
}

/* Pairs a second. Whole turns: a long one must not be cut short. */
static double rate(bizlock *b, struct keyset *s, turn *turn, unsigned ms)
{
	unsigned long pairs = 0;
	int64_t start = now_ms(), now = start;

	for (; now < start + ms; now = now_ms()) {
		if (turn(b, s) != BIZLOCK_OK)
			die("%s", bizlock_errmsg(b));
		pairs += s->n;
	}
	return (double)pairs * 1000 / (double)(now - start);
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

static void measure(bizlock *b, struct keyset *sets, unsigned ms)
{
	double all[SIZES][ROUNDS], single[SIZES][ROUNDS], ratio[SIZES][ROUNDS];

	for (size_t i = 0; i < SIZES; i++) { /* connections, statements, pages */
		rate(b, &sets[i], together, 1);
		rate(b, &sets[i], one_by_one, 1);
	}
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < SIZES; i++) {
			all[i][round] = rate(b, &sets[i], together, ms);
			single[i][round] = rate(b, &sets[i], one_by_one, ms);
			ratio[i][round] = all[i][round] / single[i][round];
		}
	for (size_t i = 0; i < SIZES; i++)
		printf("sets of %3zu, pairs a second: together %6.0f, one by one %6.0f,"
		       " ratio %.2f\n",
		       sets[i].n, median(all[i]), median(single[i]), median(ratio[i]));
}

int main(int argc, char **argv)
{
	static struct keyset sets[SIZES];
	unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 14;
	struct server at = server_from_env();
	char prefix[16];
	struct world w;
	bizlock *b;

	if (!seconds)
		die("usage: sets [SECONDS]");
	world_make(&w, &at);
	world_migrate(&w);
	b = client_open(&w, NULL);
	for (size_t i = 0; i < SIZES; i++) {
		snprintf(prefix, sizeof(prefix), "of-%zu", sizes[i]);
		keyset_make(&sets[i], sizes[i], prefix);
	}
	measure(b, sets, seconds * 1000 / (2 * ROUNDS * SIZES));
	bizlock_close(b);
	world_drop(&w);
	return 0;
}
