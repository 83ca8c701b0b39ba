/* Processes that want any of some keys, in any order, with bizlock_acquire_all().
 * While one is inside nobody else has any of its keys; fences grow in the order of
 * entry; there is no error; and everybody gets on. With the queue no deadlock forms in the
 * server; without it some may, and nobody may hear of them.
 *
 *     sets [PROCESSES [SECONDS [SEED [QUEUE]]]]
 *
 * QUEUE: auto or off. Without arguments: sixteen processes, with it and without. */
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

#include "keyset.h"
#include "patience.h"
#include "world.h"

#define PROCESSES_MAX 100
#define KEYS 24
#define SET_MAX 16
#define LEASE_MS 600000 /* no lease ends, even on a slow machine */
#define STUCK_MS 60000  /* a wait this long is one in a circle */

struct setup {
	unsigned processes, seconds, seed;
	const char *queue;
};

/* Shared by all processes. */
struct board {
	atomic_uint ready;
	atomic_bool go, stop;
	atomic_uint overlaps, backward, errors;
	struct {
		atomic_int inside;
		atomic_ullong fence; /* of the last process that was inside */
	} keys[KEYS];
	atomic_ulong served[PROCESSES_MAX], locked[PROCESSES_MAX];
};

/* ---- a process ------------------------------------------------------------- */

static unsigned number_of(bizlock_key key)
{
	return (unsigned)strtoul(strchr(key.biz_id, '-') + 1, NULL, 10);
}

static void be_inside(struct board *board, const struct keyset *s, unsigned us)
{
	for (size_t i = 0; i < s->n; i++) {
		unsigned key = number_of(s->keys[i]);
		uint64_t fence = s->grants[i].fence;

		if (atomic_fetch_add(&board->keys[key].inside, 1) != 0)
			atomic_fetch_add(&board->overlaps, 1);
		if (atomic_exchange(&board->keys[key].fence, fence) >= fence)
			atomic_fetch_add(&board->backward, 1);
	}
	usleep(us);
	for (size_t i = 0; i < s->n; i++)
		atomic_fetch_sub(&board->keys[number_of(s->keys[i])].inside, 1);
}

static bool once(struct board *board, bizlock *b, unsigned *random, unsigned process)
{
	struct keyset s;

	keyset_make(&s, KEYS, "key");
	keyset_shuffle(&s, random);
	s.n = 1 + (size_t)rand_r(random) % SET_MAX;
	if (keyset_acquire(b, &s, .wait_ms = STUCK_MS, .lease_ms = LEASE_MS) != BIZLOCK_OK)
		return false;
	be_inside(board, &s, (unsigned)rand_r(random) % 1000);
	if (!atomic_load(&board->stop)) {
		atomic_fetch_add(&board->served[process], 1);
		atomic_fetch_add(&board->locked[process], s.n);
	}
	return keyset_release(b, &s, NULL) == BIZLOCK_OK;
}

static void work(struct board *board, const struct world *w, const struct setup *setup,
                 unsigned process)
{
	unsigned random = setup->seed + process;
	bizlock *b = client_open(w, OPTIONS("queue", setup->queue));

	atomic_fetch_add(&board->ready, 1);
	eventually(atomic_load(&board->go));
	while (!atomic_load(&board->stop) && !atomic_load(&board->errors))
		if (!once(board, b, &random, process)) {
			fprintf(stderr, "process %u: %s\n", process, bizlock_errmsg(b));
			atomic_fetch_add(&board->errors, 1);
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

static bool report(const struct board *board, const struct setup *setup, long long deadlocks,
                   long long left)
{
	unsigned long least = board->served[0], most = 0, sets = 0, keys = 0;

	for (unsigned i = 0; i < setup->processes; i++) {
		unsigned long n = board->served[i];

		least = n < least ? n : least;
		most = n > most ? n : most;
		sets += n;
		keys += board->locked[i];
	}
	printf("%u processes, %u s, queue %s, seed %u: %lu sets of %lu keys (%lu sets a second)\n",
	       setup->processes, setup->seconds, setup->queue, setup->seed, sets, keys,
	       sets / setup->seconds);
	printf("  overlaps %u, fences that went back %u, errors %u, rows left %lld,"
	       " deadlocks %lld\n",
	       board->overlaps, board->backward, board->errors, left, deadlocks);
	printf("  least served %lu, most served %lu\n", least, most);
	fflush(stdout);
	if (strcmp(setup->queue, "auto") == 0 && deadlocks > 0)
		return false;
	return sets > 0 && !board->overlaps && !board->backward && !board->errors && left == 0;
}

static bool crowd(const struct setup *setup)
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
	good = report(board, setup, db_deadlocks(w.admin) - before,
	              db_number(w.admin, "SELECT COUNT(*) FROM biz_lock"));
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
	struct setup setup = {.seconds = given ? (unsigned)strtoul(given, NULL, 10) : 5,
	                      .queue = "auto"};
	bool good;

	if (getrandom(&setup.seed, sizeof(setup.seed), 0) != sizeof(setup.seed))
		die("getrandom failed");
	setup.processes = number(argc, argv, 1, 16);
	setup.seconds = number(argc, argv, 2, setup.seconds);
	setup.seed = number(argc, argv, 3, setup.seed);
	if (argc > 4)
		setup.queue = argv[4];
	if (!setup.processes || setup.processes > PROCESSES_MAX || !setup.seconds)
		die("usage: sets [PROCESSES [SECONDS [SEED [QUEUE]]]]");
	good = crowd(&setup);
	if (argc < 2) {
		setup.queue = "off";
		good = crowd(&setup) && good;
	}
	return good ? 0 : 1;
}
