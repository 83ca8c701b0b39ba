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
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuts.h"
#include "patience.h"

#define PROCESSES_MAX 16 /* mostly they wait for a timeout */
#define POINTS_MAX 65536
#define LEAST 2000 /* fewer runs than this are no test */
#define HANGS_S 60 /* a run that takes longer has hung */
#define DEATHS_MAX 20
#define SHOWN_MAX 1000

struct result {
	bool done, fired, failed;
	unsigned char rc;
};

/* Shared by all processes. */
struct board {
	unsigned count;
	atomic_uint next, failures;
	struct {
		unsigned at; /* the point that is tried now */
		char schema[32];
	} workers[PROCESSES_MAX];
	struct point points[POINTS_MAX];
	struct result results[POINTS_MAX];
	char lines[SHOWN_MAX][TEXT + 128];
};

/* ---- a process --------------------------------------------------------------- */

static void note_failure(struct board *board, unsigned i, const char *why)
{
	unsigned n = atomic_fetch_add(&board->failures, 1);

	board->results[i].failed = true;
	if (n >= SHOWN_MAX)
		return;
	snprintf(board->lines[n], sizeof(board->lines[n]), "cuts %s\n    %s",
	         point_text(&board->points[i]), why);
	printf("FAILED: %s\n", board->lines[n]);
	fflush(stdout);
}

static void work(struct board *board, unsigned worker)
{
	struct bench bench;
	struct run run;

	alarm(HANGS_S);
	bench_open(&bench);
	snprintf(board->workers[worker].schema, sizeof(board->workers[worker].schema), "%s",
	         bench.world.schema);
	for (unsigned i; (i = atomic_fetch_add(&board->next, 1)) < board->count;) {
		board->workers[worker].at = i;
		alarm(HANGS_S);
		run_point(&bench, &board->points[i], &run);
		board->results[i] = (struct result){true, run.fired, false, (unsigned char)run.rc};
		if (run.why[0]) {
			note_failure(board, i, run.why);
			bench_renew(&bench);
		}
	}
	bench_close(&bench);
	board->workers[worker].schema[0] = '\0';
}

static pid_t start(struct board *board, unsigned worker)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork failed");
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	work(board, worker);
	_exit(0);
}

/* ---- all of them --------------------------------------------------------------- */

/* A process of its own, because one that forks should have no threads. */
static void explore(struct board *board, const char *only, bool all, unsigned seed)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(2 * HANGS_S);
		board->count = find_points(board->points, POINTS_MAX, only, all, seed);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		die("the points could not be found");
}

static void bury(struct board *board, unsigned worker, int status)
{
	char why[96];

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		snprintf(why, sizeof(why), "it hangs");
	else
		snprintf(why, sizeof(why), "it died, by %s",
		         WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit()");
	note_failure(board, board->workers[worker].at, why);
	if (board->workers[worker].schema[0]) {
		struct server at = server_from_env();
		MYSQL *admin = db_open(&at, NULL);

		db_try(admin, "DROP DATABASE `%s`", board->workers[worker].schema);
		mysql_close(admin);
	}
}

static void run_all(struct board *board, unsigned processes)
{
	unsigned running = 0, deaths = 0;
	pid_t pids[PROCESSES_MAX];

	for (; running < processes && running < board->count; running++)
		pids[running] = start(board, running);
	while (running > 0) {
		int status;
		pid_t pid = wait(&status);
		unsigned worker = 0;

		while (pids[worker] != pid)
			worker++;
		running--;
		if (status == 0)
			continue;
		bury(board, worker, status);
		if (++deaths == DEATHS_MAX)
			die("too many processes died");
		pids[worker] = start(board, worker);
		running++;
	}
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

static unsigned print_table(const struct board *board)
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

static bool report(struct board *board, unsigned least, int64_t took_ms)
{
	unsigned failures = atomic_load(&board->failures);
	unsigned tried = print_table(board);

	for (unsigned i = 0; i < failures && i < SHOWN_MAX; i++)
		printf("%s%s\n", i ? "" : "\n", board->lines[i]);
	printf("%u cuts tried in %lld s, %u failed\n", tried, (long long)took_ms / 1000, failures);
	fflush(stdout);
	if (tried < least)
		printf("fewer than %u: the test is worth nothing\n", least);
	return failures == 0 && tried >= least;
}

static unsigned draw_seed(void)
{
	const char *given = getenv("BIZLOCK_FAULT_SEED");
	unsigned seed;

	if (given)
		return (unsigned)strtoul(given, NULL, 10);
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		die("getrandom failed");
	return seed;
}

int main(int argc, char **argv)
{
	const char *given = getenv("BIZLOCK_FAULT_LONG");
	bool all = given && strcmp(given, "1") == 0;
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
	                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t start = now_ms();

	if (board == MAP_FAILED)
		die("mmap failed");
	if (argc == 7 && point_parse(&board->points[0], argv + 1)) {
		board->count = 1;
	} else if (argc <= 2) {
		unsigned seed = draw_seed();

		explore(board, argv[1], all, seed);
		printf("%u points, seed %u\n", board->count, seed);
		fflush(stdout);
	} else {
		die("usage: cuts [SCENARIO [requests|replies PACKET BYTE WHAT auto|off]]");
	}
	run_all(board, all ? PROCESSES_MAX : PROCESSES_MAX / 2);
	return report(board, argc == 1 ? LEAST : argc == 2, now_ms() - start) ? 0 : 1;
}
