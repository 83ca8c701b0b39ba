/* Many processes on few keys, as fast as they can. While one is inside nobody
 * else is; fences grow in the order of entry; the server counts no deadlock;
 * and on one key the least served gets nearly as much as the most served.
 *
 *     hammer [PROCESSES KEYS [SECONDS [SEED]]]
 *
 * Without arguments: 24 processes, on one key and then on eight. */
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
#include "world.h"

#define PROCESSES_MAX 200
#define KEYS_MAX 64
#define FAIR 0.8 /* least served / most served, on one key */
#define CHANCE 3 /* fewer turns than this say nothing */

struct setup {
	unsigned processes, keys, seconds, seed;
};

/* Shared by all processes. */
struct board {
	atomic_uint ready;
	atomic_bool go, stop;
	atomic_uint overlaps, backward, errors;
	struct {
		atomic_int inside;
		atomic_ullong fence; /* of the last worker that was inside */
	} keys[KEYS_MAX];
	atomic_ulong served[PROCESSES_MAX];
};

/* ---- a process ------------------------------------------------------------- */

static void be_inside(struct board *board, unsigned key, uint64_t fence)
{
	if (atomic_fetch_add(&board->keys[key].inside, 1) != 0)
		atomic_fetch_add(&board->overlaps, 1);
	if (atomic_exchange(&board->keys[key].fence, fence) >= fence)
		atomic_fetch_add(&board->backward, 1);
	usleep(100);
	atomic_fetch_sub(&board->keys[key].inside, 1);
}

static bool once(struct board *board, bizlock *b, unsigned key, unsigned process)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	char id[16];

	snprintf(id, sizeof(id), "key-%u", key);
	opts.lease_ms = 600000; /* no lease ends, even on a slow machine */
	if (bizlock_acquire(b, KEY(id), &opts, &grant) != BIZLOCK_OK)
		return false;
	be_inside(board, key, grant.fence);
	if (!atomic_load(&board->stop))
		atomic_fetch_add(&board->served[process], 1);
	return bizlock_release(b, KEY(id), NULL, NULL) == BIZLOCK_OK;
}

static void work(struct board *board, const struct world *w, const struct setup *setup,
                 unsigned process)
{
	unsigned random = setup->seed + process;
	bizlock *b = client_open(w, NULL);

	atomic_fetch_add(&board->ready, 1);
	eventually(atomic_load(&board->go));
	while (!atomic_load(&board->stop) && !atomic_load(&board->errors)) {
		unsigned key = (unsigned)rand_r(&random) % setup->keys;

		if (!once(board, b, key, process)) {
			fprintf(stderr, "process %u: %s\n", process, bizlock_errmsg(b));
			atomic_fetch_add(&board->errors, 1);
		}
	}
	bizlock_close(b);
}

static pid_t start(struct board *board, const struct world *w, const struct setup *setup,
                   unsigned process)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork failed");
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	work(board, w, setup, process);
	_exit(0);
}

/* ---- all of them ------------------------------------------------------------- */

static void run(struct board *board, const struct world *w, const struct setup *setup)
{
	pid_t pids[PROCESSES_MAX];
	int status;

	for (unsigned i = 0; i < setup->processes; i++)
		pids[i] = start(board, w, setup, i);
	eventually(atomic_load(&board->ready) == setup->processes);
	atomic_store(&board->go, true);
	for (int64_t end = now_ms() + setup->seconds * 1000; pause_before(end);)
		if (atomic_load(&board->errors))
			break;
	atomic_store(&board->stop, true);
	for (unsigned i = 0; i < setup->processes; i++)
		if (waitpid(pids[i], &status, 0) != pids[i] || status != 0)
			atomic_fetch_add(&board->errors, 1);
}

/* With a sanitizer all workers are so slow that few wait at a time. Then the scheduler decides
 * which of them is served. */
static bool fairness_counts(void)
{
	const char *sanitizer = getenv("BIZLOCK_SANITIZE");

	return !sanitizer || !*sanitizer;
}

static bool report(const struct board *board, const struct setup *setup, long long deadlocks)
{
	unsigned long least = board->served[0], most = 0, sum = 0;
	double fair;

	for (unsigned i = 0; i < setup->processes; i++) {
		unsigned long n = board->served[i];

		least = n < least ? n : least;
		most = n > most ? n : most;
		sum += n;
	}
	fair = most ? (double)least / (double)most : 0;
	printf("%u processes, %u keys, %u s, seed %u: %lu acquisitions (%lu a second)\n",
	       setup->processes, setup->keys, setup->seconds, setup->seed, sum,
	       sum / setup->seconds);
	printf("  overlaps %u, fences that went back %u, errors %u, deadlocks %lld\n",
	       board->overlaps, board->backward, board->errors, deadlocks);
	printf("  least served %lu, most served %lu: %.2f\n", least, most, fair);
	fflush(stdout);
	return sum > 0 && !board->overlaps && !board->backward && !board->errors &&
	       deadlocks == 0 &&
	       (setup->keys > 1 || !fairness_counts() ||
	        (double)(least + CHANCE) >= FAIR * (double)most);
}

static bool hammer(const struct setup *setup)
{
	struct server at = server_from_env();
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
	                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct world w;
	long long before;
	bool good;

	if (board == MAP_FAILED)
		die("mmap failed");
	world_make(&w, &at);
	world_migrate(&w);
	before = db_deadlocks(w.admin);
	run(board, &w, setup);
	good = report(board, setup, db_deadlocks(w.admin) - before);
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
	struct setup setup = {.seconds = given ? (unsigned)strtoul(given, NULL, 10) : 5};
	bool good;

	if (getrandom(&setup.seed, sizeof(setup.seed), 0) != sizeof(setup.seed))
		die("getrandom failed");
	setup.processes = number(argc, argv, 1, 24);
	setup.keys = number(argc, argv, 2, 1);
	setup.seconds = number(argc, argv, 3, setup.seconds);
	setup.seed = number(argc, argv, 4, setup.seed);
	if (!setup.processes || setup.processes > PROCESSES_MAX || !setup.keys ||
	    setup.keys > KEYS_MAX || !setup.seconds)
		die("usage: hammer [PROCESSES KEYS [SECONDS [SEED]]]");
	good = hammer(&setup);
	if (argc < 2) {
		setup.keys = 8;
		good = hammer(&setup) && good;
	}
	return good ? 0 : 1;
}
