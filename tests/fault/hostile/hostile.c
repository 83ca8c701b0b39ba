/* A server that lies: everything that a client does, again and again, each time with one lie in the
 * place of one packet of the server's replies, or of all packets of a kind from there on. The lies
 * are found by the test: an honest run of each scenario shows which packets there are, and lies.c
 * which lies can be told of each.
 *
 *     hostile                                     a sample of them, in parallel
 *     hostile SCENARIO                            all of this one
 *     hostile SCENARIO PACKET LIE once|ever SEED  one, as a failure names it
 *
 * Nobody may crash, hang, or take more than was asked for; and after a lie that can be noticed no
 * call says BIZLOCK_OK unless what it says is so.
 *
 * BIZLOCK_FAULT_LONG=1: all of them. BIZLOCK_FAULT_SEED: draws the same sample again. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hostile.h"
#include "patience.h"
#include "swarm.h"

enum { POINTS_MAX = 400000, PROCESSES = 16, HANGS_S = 60 };
enum { LEAST = 2500 };    /* fewer lies than this are no test */
enum { SAMPLE = 2800 };   /* in a short run */
enum { ALIKE = 3 };       /* of packets of one kind in a row: the first two and the last */
enum { SLOW_ONE_IN = 6 }; /* a sample takes fewer of those that only a timeout ends */

struct point {
	unsigned short scenario, lie, packet;
	bool ever, told, failed;
	unsigned char rc, kind;
	unsigned seed;
};

static struct board {
	unsigned count;
	struct point points[POINTS_MAX];
} * board;

static struct bench bench;
static const char *only;
static unsigned seed;

/* ---- finding them ---------------------------------------------------------------------- */

/* How long an answer may take on the caller's own connection, is the caller's affair. Requests that
 * a batch leaves in doubt are asked for one after the other, each in a time of its own. */
static bool can_be_told(const struct lie *lie, enum kind kind, const struct run *honest)
{
	bool has_time = honest->tx || honest->scenario->client == TOGETHER;

	return lie->kinds & 1u << kind && !(lie_trickles(lie) && has_time);
}

static void add_lies(unsigned scenario, unsigned packet, const struct run *honest)
{
	enum kind kind = honest->seen.trace.kinds[packet];

	for (unsigned lie = 0; lie < lie_count; lie++)
		for (int ever = 0; can_be_told(&lies[lie], kind, honest) && ever < 2; ever++) {
			if (board->count == POINTS_MAX)
				die("more than %d lies", POINTS_MAX);
			board->points[board->count++] =
			        (struct point){.scenario = (unsigned short)scenario,
			                       .lie = (unsigned short)lie,
			                       .packet = (unsigned short)packet,
			                       .ever = ever,
			                       .kind = (unsigned char)kind,
			                       .seed = (unsigned)rand_r(&seed)};
		}
}

static bool is_of_use(const struct trace *t, unsigned i)
{
	bool like_before =
	        i >= 2 && t->kinds[i] == t->kinds[i - 1] && t->kinds[i] == t->kinds[i - 2];

	return !like_before || i + 1 == t->count || t->kinds[i + 1] != t->kinds[i];
}

/* On a busy machine a thread may start its requests too slowly for them to meet. */
static bool parted(const struct run *r)
{
	return r->scenario->client == TOGETHER && r->seen.requests >= MANY;
}

static void run_honestly(unsigned scenario, struct run *ret)
{
	unsigned tries = 0;

	do {
		run_plan(&bench, &scenarios[scenario], &(struct plan){.lie = NULL}, ret);
		if (ret->why[0])
			die("%s: %s", scenarios[scenario].name, ret->why);
	} while (parted(ret) && ++tries < 10);
	if (parted(ret))
		die("%s: its requests do not travel together", scenarios[scenario].name);
	if (ret->seen.trace.count == TRACE_MAX)
		die("%s: too many packets", scenarios[scenario].name);
}

static void explore(unsigned scenario)
{
	static struct run run;

	run_honestly(scenario, &run);
	for (unsigned i = 0; i < run.seen.trace.count; i++)
		if (is_of_use(&run.seen.trace, i))
			add_lies(scenario, i, &run);
}

static void find_lies(void *arg)
{
	(void)arg;
	bench_open(&bench);
	for (unsigned i = 0; i < scenario_count; i++)
		if (!only || strcmp(only, scenarios[i].name) == 0)
			explore(i);
	bench_close(&bench);
}

static void shuffle(void)
{
	for (unsigned i = board->count; i > 1; i--) {
		struct point *a = &board->points[i - 1];
		struct point *b = &board->points[(unsigned)rand_r(&seed) % i], c = *a;

		*a = *b;
		*b = c;
	}
}

/* So that the slow ones do not all come at the same time, they are shuffled in any case. */
static void draw_sample(void)
{
	unsigned n = 0;

	shuffle();
	for (unsigned i = 0; i < board->count && n < SAMPLE; i++) {
		bool slow = lies[board->points[i].lie].slow;

		if (!slow || rand_r(&seed) % SLOW_ONE_IN == 0)
			board->points[n++] = board->points[i];
	}
	board->count = n;
}

/* ---- one -------------------------------------------------------------------------------- */

static const char *name_job(unsigned job)
{
	static char text[128];
	const struct point *p = &board->points[job];

	snprintf(text, sizeof(text), "hostile %s %u %s %s %u", scenarios[p->scenario].name,
	         p->packet, lies[p->lie].name, p->ever ? "ever" : "once", p->seed);
	return text;
}

static void fail_job(unsigned job)
{
	board->points[job].failed = true;
}

static void run_job(unsigned job, char why[SWARM_WHY])
{
	static struct run run;
	struct point *p = &board->points[job];

	run_plan(&bench, &scenarios[p->scenario],
	         &(struct plan){&lies[p->lie], p->packet, p->ever, p->seed}, &run);
	p->told = run.seen.shots > 0;
	p->rc = (unsigned char)run.rc;
	if (run.why[0])
		snprintf(why, SWARM_WHY, "told of a packet %s: %s", kind_names[p->kind], run.why);
}

static void begin(char schema[32])
{
	bench_open(&bench);
	snprintf(schema, 32, "%s", bench.world.schema);
}

static void end(void)
{
	bench_close(&bench);
}

static bool parse(char **words)
{
	struct point *p = &board->points[0];

	while (p->scenario < scenario_count && strcmp(words[0], scenarios[p->scenario].name) != 0)
		p->scenario++;
	p->packet = (unsigned short)strtoul(words[1], NULL, 10);
	while (p->lie < lie_count && strcmp(words[2], lies[p->lie].name) != 0)
		p->lie++;
	p->ever = strcmp(words[3], "ever") == 0;
	p->seed = (unsigned)strtoul(words[4], NULL, 10);
	board->count = 1;
	return p->scenario < scenario_count && p->lie < lie_count;
}

/* ---- the table ------------------------------------------------------------------------------ */

static unsigned print_scenario(unsigned scenario)
{
	unsigned told = 0, missed = 0, failed = 0, answers[16] = {0};

	for (unsigned i = 0; i < board->count; i++) {
		const struct point *p = &board->points[i];

		if (p->scenario != scenario)
			continue;
		told += p->told;
		missed += !p->told;
		failed += p->failed;
		answers[p->rc % 16]++;
	}
	printf("%-15s %6u %6u %6u ", scenarios[scenario].name, told, missed, failed);
	for (int rc = 0; rc < 16; rc++)
		if (answers[rc])
			printf(" %s %u", bizlock_err_name(rc) + strlen("BIZLOCK_"), answers[rc]);
	putchar('\n');
	return told;
}

static unsigned print_table(void)
{
	unsigned told = 0;

	printf("%-15s   lies missed failed  answers\n", "scenario");
	for (unsigned i = 0; i < scenario_count; i++)
		told += print_scenario(i);
	return told;
}

/* A connector that is told to make room for 2^32 columns gets none, and says so. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__lsan_default_options(void);
const char *__lsan_default_suppressions(void);

const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1:max_allocation_size_mb=1024";
}

const char *__tsan_default_options(void)
{
	return __asan_default_options();
}

const char *__lsan_default_options(void)
{
	return "print_suppressions=0";
}

/* What Connector/C has read of a head of an answer that it then finds to be none, it forgets. Where
 * its function ends in a jump to another, the stack names the one of ours that has called it. Rows
 * that bizlock does not free come from other functions. */
const char *__lsan_default_suppressions(void)
{
	return "leak:mysql_stmt_execute\nleak:mysql_stmt_prepare\nleak:mysql_real_query\n"
	       "leak:mysql_read_query_result\nleak:mysql_next_result\nleak:bl_session_send\n"
	       "leak:next_answer\nleak:tx_query\n";
}

int main(int argc, char **argv)
{
	struct swarm swarm = {0, HANGS_S, begin, end, run_job, name_job, fail_job};
	int64_t start = now_ms();
	unsigned told, failed;

	board = swarm_share(sizeof(*board));
	seed = swarm_seed();
	if (argc == 6 && parse(argv + 1)) {
		only = argv[1];
	} else if (argc <= 2) {
		only = argv[1];
		printf("seed %u\n", seed);
		swarm_apart(find_lies, NULL);
		printf("%u lies found\n", board->count);
		if (!only && !swarm_long())
			draw_sample();
		else
			shuffle();
		fflush(stdout);
	} else {
		die("usage: hostile [SCENARIO [PACKET LIE once|ever SEED]]");
	}
	swarm.jobs = board->count;
	failed = swarm_run(&swarm, PROCESSES);
	told = print_table();
	printf("%u lies told in %lld s, %u failed\n", told, (long long)(now_ms() - start) / 1000,
	       failed);
	if (!only && told < LEAST)
		printf("fewer than %d: the test is worth nothing\n", LEAST);
	return failed == 0 && (only || told >= LEAST) ? 0 : 1;
}
