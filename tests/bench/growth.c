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

#include "common/many.h"
#include "patience.h"

#define SIZES_MAX 8

struct table {
	struct world w;
	bizlock *b;
	unsigned rows;
};

static void measure(const struct table *t, int round, unsigned ms)
{
	static const atomic_bool never;
	static struct hist acquire, pair;

	many_pairs(t->b, now_ms() + ms / 10, &never, &acquire, &pair);
	memset(&acquire, 0, sizeof(acquire));
	memset(&pair, 0, sizeof(pair));
	many_pairs(t->b, now_ms() + ms, &never, &acquire, &pair);
	printf("{\"work\":\"growth\",\"rows\":%u,\"round\":%d,", t->rows, round);
	hist_print(stdout, "acquire_us", &acquire);
	fputc(',', stdout);
	hist_print(stdout, "pair_us", &pair);
	fputs("}\n", stdout);
}

int main(int argc, char **argv)
{
	int rounds = argc > 3 ? (int)strtol(argv[1], NULL, 10) : 0, sizes = argc - 3;
	unsigned ms = argc > 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
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
			measure(&tables[i], round, ms);
	for (int i = 0; i < sizes; i++) {
		bizlock_close(tables[i].b);
		world_drop(&tables[i].w);
	}
	return 0;
}
