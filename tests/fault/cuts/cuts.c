/* Every scenario again and again, each time with one fault at one place of its
 * traffic, and what must be true after each. The places are found by the test:
 * every packet boundary and some places inside each packet, on both sides.
 *
 *     cuts                                                  all of them, in parallel
 *     cuts SCENARIO                                         all of this one
 *     cuts SCENARIO requests|replies PACKET BYTE WHAT auto|off    one, as a failure names it
 *
 * WHAT: cut, cut-again:N, cut-ever, swallow, swallow-ever, delay, late, nothing.
 * BIZLOCK_FAULT_LONG=1: not just a sample.
 * BIZLOCK_FAULT_SEED: draws the same sample again. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <string.h>

#include "cuts.h"
#include "patience.h"
#include "swarm.h"

#define PROCESSES_MAX 16 /* mostly they wait for a timeout */
#define POINTS_MAX 65536
#define LEAST 2000 /* fewer runs than this are no test */
#define HANGS_S 60 /* a run that takes longer has hung */

struct result {
	bool done, fired, failed;
	unsigned char rc;
};

/* Shared by all processes. */
static struct board {
	unsigned count;
	struct point points[POINTS_MAX];
	struct result results[POINTS_MAX];
} * board;

/* ---- a process --------------------------------------------------------------- */

static struct bench bench;

static void begin(char schema[32])
{
	bench_open(&bench);
	snprintf(schema, 32, "%s", bench.world.schema);
}

static void end(void)
{
	bench_close(&bench);
}

static void run_job(unsigned job, char why[SWARM_WHY])
{
	struct run run;

	run_point(&bench, &board->points[job], &run);
	board->results[job] = (struct result){true, run.fired, false, (unsigned char)run.rc};
	snprintf(why, SWARM_WHY, "%s", run.why);
	if (run.why[0])
		bench_renew(&bench);
}

static const char *name_job(unsigned job)
{
	static char text[128];

	snprintf(text, sizeof(text), "cuts %s", point_text(&board->points[job]));
	return text;
}

static void fail_job(unsigned job)
{
	board->results[job].failed = true;
}

/* ---- the table ------------------------------------------------------------------ */

struct sums {
	unsigned tried[WHATS + 1], missed, failed, answers[16];
};

static void count(struct sums *sums, const struct point *p, const struct result *result)
{
	sums->tried[p->what] += result->fired;
	sums->missed += result->done && !result->fired;
	sums->failed += result->failed;
	if (result->done && result->rc < 16)
		sums->answers[result->rc]++;
}

static void print_sums(const char *name, const struct sums *sums)
{
	printf("%-14s", name);
	for (enum what what = 0; what < WHATS; what++)
		printf(" %*u", (int)strlen(what_names[what]) + 2, sums->tried[what]);
	printf(" %6u %6u ", sums->missed, sums->failed);
	for (int rc = 0; rc < 16; rc++)
		if (sums->answers[rc])
			printf(" %s %u", bizlock_err_name(rc) + strlen("BIZLOCK_"),
			       sums->answers[rc]);
	putchar('\n');
}

static unsigned print_table(void)
{
	struct sums total = {.missed = 0};
	unsigned tried = 0;

	printf("%-14s", "scenario");
	for (enum what what = 0; what < WHATS; what++)
		printf("   %s", what_names[what]);
	printf(" missed failed  answers\n");
	for (unsigned s = 0; s < scenario_count; s++) {
		struct sums sums = {.missed = 0};

		for (unsigned i = 0; i < board->count; i++) {
			if (board->points[i].scenario != s)
				continue;
			count(&sums, &board->points[i], &board->results[i]);
			count(&total, &board->points[i], &board->results[i]);
		}
		print_sums(scenarios[s].name, &sums);
	}
	print_sums("all", &total);
	for (enum what what = 0; what < WHATS; what++)
		tried += total.tried[what];
	return tried;
}

struct search {
	const char *only;
	unsigned seed;
};

static void find(void *arg)
{
	const struct search *s = arg;

	board->count = find_points(board->points, POINTS_MAX, s->only, swarm_long(), s->seed);
}

int main(int argc, char **argv)
{
	struct swarm swarm = {0, HANGS_S, begin, end, run_job, name_job, fail_job};
	unsigned least = argc == 1 ? LEAST : argc == 2, tried, failed;
	int64_t start = now_ms();

	board = swarm_share(sizeof(*board));
	if (argc == 7 && point_parse(&board->points[0], argv + 1)) {
		board->count = 1;
	} else if (argc <= 2) {
		struct search search = {argv[1], swarm_seed()};

		swarm_apart(find, &search);
		printf("%u points, seed %u\n", board->count, search.seed);
		fflush(stdout);
	} else {
		die("usage: cuts [SCENARIO [requests|replies PACKET BYTE WHAT auto|off]]");
	}
	swarm.jobs = board->count;
	failed = swarm_run(&swarm, PROCESSES_MAX);
	tried = print_table();
	printf("%u cuts tried in %lld s, %u failed\n", tried, (long long)(now_ms() - start) / 1000,
	       failed);
	if (tried < least)
		printf("fewer than %u: the test is worth nothing\n", least);
	return failed == 0 && tried >= least ? 0 : 1;
}
