/* Does a large table cost anything? Acquire and release of random keys, beside rows of
 * others. A line of JSON for each size and round.
 *
 *     growth ROUNDS MS ROWS...
 *
 * A schema for each size, so that rounds can alternate. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hist.h"
#include "common/many.h"
#include "common/meter.h"
#include "patience.h"

#define SIZES_MAX 8

struct table {
	struct world w;
	bizlock *b;
	unsigned rows;
};

static void run(struct table *t, unsigned ms, unsigned *random, struct hist *acquire,
                struct hist *pair)
{
	int64_t end = now_ms() + ms;

	while (now_ms() < end) {
		int64_t start = now_ns(), got;
		char id[40];
		bizlock_key key = {"bench", id};

		snprintf(id, sizeof(id), "%08x%08x", (unsigned)rand_r(random) * 2,
		         (unsigned)rand_r(random));
		if (bizlock_acquire(t->b, key, NULL, NULL) != BIZLOCK_OK)
			die("%s", bizlock_errmsg(t->b));
		got = now_ns();
		if (bizlock_release(t->b, key, NULL, NULL) != BIZLOCK_OK)
			die("%s", bizlock_errmsg(t->b));
		hist_add(acquire, got - start);
		hist_add(pair, now_ns() - start);
	}
}

static void measure(struct table *t, int round, unsigned ms, unsigned *random)
{
	static struct hist acquire, pair;

	memset(&acquire, 0, sizeof(acquire));
	memset(&pair, 0, sizeof(pair));
	run(t, ms / 10 + 1, random, &acquire, &pair);
	memset(&acquire, 0, sizeof(acquire));
	memset(&pair, 0, sizeof(pair));
	run(t, ms, random, &acquire, &pair);
	printf("{\"work\":\"growth\",\"rows\":%u,\"round\":%d,", t->rows, round);
	hist_print(stdout, "acquire_us", &acquire);
	fputc(',', stdout);
	hist_print(stdout, "pair_us", &pair);
	fputs("}\n", stdout);
}

int main(int argc, char **argv)
{
	int rounds = argc > 3 ? (int)strtol(argv[1], NULL, 10) : 0, sizes = argc - 3;
	unsigned ms = argc > 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0, random = 1;
	static struct table tables[SIZES_MAX];
	struct server at = server_from_env();

	if (rounds < 1 || !ms || sizes > SIZES_MAX)
		die("usage: growth ROUNDS MS ROWS...");
	for (int i = 0; i < sizes; i++) {
		struct table *t = &tables[i];

		t->rows = (unsigned)strtoul(argv[3 + i], NULL, 10);
		world_make(&t->w, &at);
		world_migrate(&t->w);
		many_rows(&t->w, t->rows, 86400);
		t->b = client_open(&t->w, NULL);
	}
	many_settle(&tables[0].w);
	for (int round = 1; round <= rounds; round++)
		for (int i = 0; i < sizes; i++)
			measure(&tables[i], round, ms, &random);
	for (int i = 0; i < sizes; i++) {
		bizlock_close(tables[i].b);
		world_drop(&tables[i].w);
	}
	return 0;
}
