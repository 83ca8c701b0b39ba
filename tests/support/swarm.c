#define _GNU_SOURCE 1
#include "swarm.h"

#include <bizlock.h>

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

#include "db.h"
#include "patience.h"

enum { DEATHS_MAX = 20, SHOWN_MAX = 1000 };

/* A search that takes longer has hung. It is done beside other tests, and takes minutes there. */
#define SEARCH_S 900

/* Shared by all processes. */
struct board {
	atomic_uint next, failures;
	struct {
		unsigned at; /* the job that is tried now */
		char schema[32];
	} workers[SWARM_MAX];
	char lines[SHOWN_MAX][SWARM_WHY + 128];
};

void swarm_say_why(char *why, size_t size, struct swarm_answer answer, const char *fmt,
                   va_list args)
{
	char text[512];

	vsnprintf(text, sizeof(text), fmt, args);
	snprintf(why, size, "%s [answered %s after %lld ms%s%s]", text, bizlock_err_name(answer.rc),
	         (long long)answer.took_ms, answer.errmsg[0] ? ": " : "", answer.errmsg);
}

void *swarm_share(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		die("mmap failed");
	return at;
}

unsigned swarm_seed(void)
{
	const char *given = getenv("BIZLOCK_FAULT_SEED");
	unsigned seed;

	if (given)
		return (unsigned)strtoul(given, NULL, 10);
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		die("getrandom failed");
	return seed;
}

bool swarm_long(void)
{
	const char *given = getenv("BIZLOCK_FAULT_LONG");

	return given && strcmp(given, "1") == 0;
}

/* ---- a process --------------------------------------------------------------- */

static void note_failure(const struct swarm *swarm, struct board *board, unsigned job,
                         const char *why)
{
	unsigned n = atomic_fetch_add(&board->failures, 1);

	swarm->failed(job);
	if (n >= SHOWN_MAX)
		return;
	snprintf(board->lines[n], sizeof(board->lines[n]), "%s\n    %s", swarm->name(job), why);
	printf("FAILED: %s\n", board->lines[n]);
	fflush(stdout);
}

static void work(const struct swarm *swarm, struct board *board, unsigned worker)
{
	alarm(swarm->hangs_s);
	swarm->begin(board->workers[worker].schema);
	for (unsigned job; (job = atomic_fetch_add(&board->next, 1)) < swarm->jobs;) {
		char why[SWARM_WHY] = "";

		board->workers[worker].at = job;
		alarm(swarm->hangs_s);
		swarm->run(job, why);
		if (why[0])
			note_failure(swarm, board, job, why);
	}
	swarm->end();
	board->workers[worker].schema[0] = '\0';
}

/* A process that ends by _exit() is not looked at by LeakSanitizer unless it asks for it. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static int leaks(void)
{
	return __lsan_do_recoverable_leak_check ? __lsan_do_recoverable_leak_check() : 0;
}

static pid_t start(const struct swarm *swarm, struct board *board, unsigned worker)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork failed");
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	work(swarm, board, worker);
	_exit(leaks());
}

/* ---- all of them --------------------------------------------------------------- */

void swarm_apart(void (*fn)(void *arg), void *arg)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(SEARCH_S);
		fn(arg);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		die("the jobs could not be found");
}

static void bury(const struct swarm *swarm, struct board *board, unsigned worker, int status)
{
	char why[96];

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		snprintf(why, sizeof(why), "it hangs");
	else
		snprintf(why, sizeof(why), "it died, by %s",
		         WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit()");
	note_failure(swarm, board, board->workers[worker].at, why);
	if (board->workers[worker].schema[0]) {
		struct server at = server_from_env();
		MYSQL *admin = db_open(&at, NULL);

		db_try(admin, "DROP DATABASE `%s`", board->workers[worker].schema);
		mysql_close(admin);
	}
}

static void run_all(const struct swarm *swarm, struct board *board, unsigned processes)
{
	unsigned running = 0, deaths = 0;
	pid_t pids[SWARM_MAX];

	for (; running < processes && running < swarm->jobs; running++)
		pids[running] = start(swarm, board, running);
	while (running > 0) {
		int status;
		pid_t pid = wait(&status);
		unsigned worker = 0;

		while (pids[worker] != pid)
			worker++;
		running--;
		if (status == 0)
			continue;
		bury(swarm, board, worker, status);
		if (++deaths == DEATHS_MAX)
			die("too many processes died");
		pids[worker] = start(swarm, board, worker);
		running++;
	}
}

unsigned swarm_run(const struct swarm *swarm, unsigned processes)
{
	struct board *board = swarm_share(sizeof(*board));
	unsigned failures;

	run_all(swarm, board, processes);
	failures = atomic_load(&board->failures);
	for (unsigned i = 0; i < failures && i < SHOWN_MAX; i++)
		printf("%s%s\n", i ? "" : "\n", board->lines[i]);
	munmap(board, sizeof(*board));
	return failures;
}
