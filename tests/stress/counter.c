/* Dozens of processes count in an ordinary table by reading, pausing and
 * writing, with nothing but the lock around it, while they are killed at random
 * and started again. The count must come out exact. Every third process takes the
 * lock by CALL, as a program in another language.
 *
 *     counter [PROCESSES [SECONDS [SEED]]]
 *
 * Each increment is written to a journal in the same transaction of the
 * worker's own connection: so an increment counts if it was committed, whether
 * or not its process lived to tell. A lost update is a number written twice. */
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

#include "patience.h"
#include "routines.h"

#define PROCESSES_MAX 200
#define LEASE_MS 1500
/* A worker that was held up, and has less than this of its lease left, does not write. A write may
 * take this long before the next holder can read. */
#define MARGIN_MS 1000

struct setup {
	unsigned processes, seconds, seed;
};

/* Shared by all processes. */
struct board {
	atomic_bool stop;
	atomic_uint holder; /* the worker that is inside, + 1; 0: none */
	atomic_ulong done, takeovers, gave_up, stalled, errors;
};

/* ---- a worker --------------------------------------------------------------- */

/* The hold of a client, or of a program that knows only when its lease ends. */
struct hold {
	bizlock *b; /* NULL: by CALL */
	uint64_t fence;
	int64_t end_ms; /* of now_ms() */
};

static int64_t left_ms(const struct hold *h)
{
	return h->b ? bizlock_left_ms(h->b, KEY("counter"), NULL) : h->end_ms - now_ms();
}

static void increment(struct board *board, const struct hold *h, MYSQL *db, unsigned pause_us)
{
	long long n = db_number(db, "SELECT n FROM counter");

	usleep(pause_us);
	if (left_ms(h) < MARGIN_MS) {
		atomic_fetch_add(&board->gave_up, 1);
		return;
	}
	db_run(db, "START TRANSACTION");
	db_run(db, "UPDATE counter SET n = %lld", n + 1);
	db_run(db, "INSERT INTO journal (n, fence) VALUES (%lld, %llu)", n + 1,
	       (unsigned long long)h->fence);
	db_run(db, "COMMIT");
	atomic_fetch_add(&board->done, 1);
	if (left_ms(h) <= 0)
		atomic_fetch_add(&board->stalled, 1);
}

static bool once(struct board *board, bizlock *b, MYSQL *db, unsigned worker, unsigned pause_us)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct hold hold = {.b = b};
	int rc;

	opts.lease_ms = LEASE_MS;
	opts.flags = BIZLOCK_NO_RENEW;
	if (bizlock_acquire(b, KEY("counter"), &opts, &grant) != BIZLOCK_OK)
		return false;
	hold.fence = grant.fence;
	atomic_store(&board->holder, worker + 1);
	if (grant.flags & BIZLOCK_TOOK_OVER)
		atomic_fetch_add(&board->takeovers, 1);
	increment(board, &hold, db, pause_us);
	atomic_store(&board->holder, 0);
	rc = bizlock_release(b, KEY("counter"), NULL, NULL);
	return rc == BIZLOCK_OK || rc == BIZLOCK_LOST;
}

/* A lease counts from before the call that began it, and the wait came before that: so it renews.
 */
static void once_by_call(struct board *board, MYSQL *db, unsigned worker, unsigned pause_us)
{
	struct hold hold = {.b = NULL};
	char owner[32];

	snprintf(owner, sizeof(owner), "worker-%u", worker);
	hold.fence = routine_wait(db, KEY("counter"), owner, LEASE_MS, 10000).fence;
	if (!hold.fence)
		return;
	atomic_store(&board->holder, worker + 1);
	hold.end_ms = now_ms() + LEASE_MS;
	if (routine_renew(db, KEY("counter"), owner, hold.fence, LEASE_MS))
		increment(board, &hold, db, pause_us);
	atomic_store(&board->holder, 0);
	routine_release(db, KEY("counter"), owner, hold.fence);
}

static void work(struct board *board, const struct world *w, unsigned worker, unsigned seed)
{
	bizlock *b = worker % 3 == 0 ? NULL : client_open(w, NULL);
	MYSQL *db = db_open(&w->at, w->schema);

	while (!atomic_load(&board->stop)) {
		unsigned pause_us = 500 + (unsigned)rand_r(&seed) % 2500;

		if (!b)
			once_by_call(board, db, worker, pause_us);
		else if (!once(board, b, db, worker, pause_us)) {
			fprintf(stderr, "worker %u: %s\n", worker, bizlock_errmsg(b));
			atomic_fetch_add(&board->errors, 1);
			break;
		}
	}
	mysql_close(db);
	bizlock_close(b);
}

static pid_t start(struct board *board, const struct world *w, unsigned worker, unsigned seed)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork failed");
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	work(board, w, worker, seed);
	_exit(0);
}

/* ---- all of them -------------------------------------------------------------- */

/* In half of the cases the worker that is inside, else any worker. */
static unsigned choose_victim(struct board *board, unsigned processes, unsigned *random)
{
	unsigned holder = atomic_load(&board->holder);

	if (holder && rand_r(random) % 2 == 0)
		return holder - 1;
	return (unsigned)rand_r(random) % processes;
}

static void reap(struct board *board, pid_t pid, bool killed)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		die("waitpid failed");
	if (status != 0 && !(killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
		atomic_fetch_add(&board->errors, 1);
}

/* A short run goes on until a takeover was seen: the lease of a killed worker may outlast it. */
static bool is_over(struct board *board, int64_t end_ms)
{
	if (now_ms() < end_ms)
		return false;
	return atomic_load(&board->takeovers) > 0 || now_ms() >= end_ms + PATIENCE_MS;
}

static unsigned run(struct board *board, const struct world *w, const struct setup *setup)
{
	unsigned random = setup->seed, kills = 0;
	pid_t pids[PROCESSES_MAX];

	for (unsigned i = 0; i < setup->processes; i++)
		pids[i] = start(board, w, i, (unsigned)rand_r(&random));
	for (int64_t end = now_ms() + setup->seconds * 1000; !is_over(board, end);) {
		unsigned victim;

		pause_ms(50 + (unsigned)rand_r(&random) % 100);
		if (atomic_load(&board->errors))
			break;
		victim = choose_victim(board, setup->processes, &random);
		kill(pids[victim], SIGKILL);
		reap(board, pids[victim], true);
		pids[victim] = start(board, w, victim, (unsigned)rand_r(&random));
		kills++;
	}
	atomic_store(&board->stop, true);
	for (unsigned i = 0; i < setup->processes; i++)
		reap(board, pids[i], false);
	return kills;
}

/* How often the journal, in the order of writing, has a number that does not follow the one before,
 * or a fence that is not larger. */
static unsigned long breaks_in_journal(const struct world *w, unsigned long *ret_rows)
{
	char *journal = db_text(w->admin, "SELECT n, fence FROM journal ORDER BY id"), *rest;
	unsigned long long n, fence, last_n = 0, last_fence = 0;
	unsigned long breaks = 0, rows = 0;

	for (char *line = strtok_r(journal, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		if (sscanf(line, "%llu|%llu", &n, &fence) != 2)
			die("journal: %s", line);
		if (n != last_n + 1 || fence <= last_fence) {
			printf("  after %llu (fence %llu) came %llu (fence %llu)\n", last_n,
			       last_fence, n, fence);
			breaks++;
		}
		last_n = n;
		last_fence = fence;
		rows++;
	}
	free(journal);
	*ret_rows = rows;
	return breaks;
}

static bool report(const struct board *board, const struct world *w, const struct setup *setup,
                   unsigned kills, long long deadlocks)
{
	unsigned long rows, breaks = breaks_in_journal(w, &rows);
	unsigned long counted = (unsigned long)db_number(w->admin, "SELECT n FROM counter");

	printf("%u processes, %u s, seed %u: %u killed, %lu takeovers\n", setup->processes,
	       setup->seconds, setup->seed, kills, board->takeovers);
	printf("  counter %lu, journal %lu, reported %lu, breaks %lu\n", counted, rows, board->done,
	       breaks);
	printf("  gave up in time %lu, errors %lu, deadlocks %lld\n", board->gave_up, board->errors,
	       deadlocks);
	if (board->stalled)
		printf("  no verdict: %lu writes took longer than their lease; give the machine"
		       " less to do\n",
		       board->stalled);
	return counted > 0 && counted == rows && breaks == 0 && board->done <= rows &&
	       rows <= board->done + kills && board->takeovers > 0 && !board->errors &&
	       !board->stalled && deadlocks == 0;
}

static bool count(const struct setup *setup)
{
	struct server at = server_from_env();
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
	                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct world w;
	long long before;
	unsigned kills;
	bool good;

	if (board == MAP_FAILED)
		die("mmap failed");
	world_make(&w, &at);
	world_migrate_routines(&w);
	db_run(w.admin, "CREATE TABLE counter (n BIGINT NOT NULL) ENGINE=InnoDB;"
	                "INSERT INTO counter VALUES (0);"
	                "CREATE TABLE journal (id BIGINT AUTO_INCREMENT PRIMARY KEY,"
	                " n BIGINT NOT NULL, fence BIGINT UNSIGNED NOT NULL) ENGINE=InnoDB");
	before = db_deadlocks(w.admin);
	kills = run(board, &w, setup);
	good = report(board, &w, setup, kills, db_deadlocks(w.admin) - before);
	world_drop(&w);
	munmap(board, sizeof(*board));
	return good;
}

static unsigned number(int argc, char **argv, int i, unsigned otherwise)
{
	return argc > i ? (unsigned)strtoul(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
	const char *given = getenv("BIZLOCK_STRESS_SECONDS");
	struct setup setup = {.seconds = given ? (unsigned)strtoul(given, NULL, 10) : 12};

	if (getrandom(&setup.seed, sizeof(setup.seed), 0) != sizeof(setup.seed))
		die("getrandom failed");
	setup.processes = number(argc, argv, 1, 36);
	setup.seconds = number(argc, argv, 2, setup.seconds);
	setup.seed = number(argc, argv, 3, setup.seed);
	if (!setup.processes || setup.processes > PROCESSES_MAX || !setup.seconds)
		die("usage: counter [PROCESSES [SECONDS [SEED]]]");
	return count(&setup) ? 0 : 1;
}
