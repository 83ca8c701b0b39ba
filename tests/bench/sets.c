/* What a set is worth: n keys by bizlock_acquire_all() and _release_all(), against n
 * single acquisitions and releases, by one thread. A line of JSON for each size and
 * round, in keys (not sets) that were acquired and released in a second.
 *
 *     sets ROUNDS MS
 *
 * The two alternate: their ratio is that of neighbours. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>

#include "keyset.h"
#include "patience.h"
#include "world.h"

static const size_t sizes[] = {1, 8, 32, 128};

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

typedef int turn(bizlock *b, struct keyset *s);

static int together(bizlock *b, struct keyset *s)
{
	int rc = bizlock_acquire_all(b, s->keys, s->n, NULL, NULL);

	return rc == BIZLOCK_OK ? bizlock_release_all(b, s->keys, s->n, NULL) : rc;
}

/* All keys are held at the same time, as those of a set are. */
static int one_by_one(bizlock *b, struct keyset *s)
{
	int rc = BIZLOCK_OK;

	for (size_t i = 0; i < s->n && rc == BIZLOCK_OK; i++)
		rc = bizlock_acquire(b, s->keys[i], NULL, NULL);
	for (size_t i = 0; i < s->n && rc == BIZLOCK_OK; i++)
		rc = bizlock_release(b, s->keys[i], NULL, NULL);
	return rc;
}

/* Pairs a second. It measures whole turns, because a long one must not be cut short. */
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

static void measure(bizlock *b, struct keyset *s, int round, unsigned ms)
{
	double all = rate(b, s, together, ms), single = rate(b, s, one_by_one, ms);

	printf("{\"work\":\"sets\",\"keys\":%zu,\"round\":%d,\"together_s\":%.1f,"
	       "\"one_by_one_s\":%.1f}\n",
	       s->n, round, all, single);
}

int main(int argc, char **argv)
{
	static struct keyset sets[SIZES];
	int rounds = argc > 2 ? (int)strtol(argv[1], NULL, 10) : 0;
	unsigned ms = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	struct server at = server_from_env();
	char prefix[16];
	struct world w;
	bizlock *b;

	if (rounds < 1 || !ms)
		die("usage: sets ROUNDS MS");
	world_make(&w, &at);
	world_migrate(&w);
	b = client_open(&w, NULL);
	for (size_t i = 0; i < SIZES; i++) {
		snprintf(prefix, sizeof(prefix), "of-%zu", sizes[i]);
		keyset_make(&sets[i], sizes[i], prefix);
		rate(b, &sets[i], together, 1); /* connections, statements, pages */
		rate(b, &sets[i], one_by_one, 1);
	}
	for (int round = 1; round <= rounds; round++)
		for (size_t i = 0; i < SIZES; i++)
			measure(b, &sets[i], round, ms);
	bizlock_close(b);
	world_drop(&w);
	return 0;
}
