/* Clients and routines on the same keys, as fast as they can: a third of the processes uses the
 * library, a third waits by CALL biz_lock_wait(), and tries, a third polls by CALL biz_lock_try().
 * Nobody is inside with an owner that has the lock alone; fences grow in the order of entry; the
 * server counts no deadlock; and on one key nobody that waits is passed by too many.
 *
 *     routines [PROCESSES KEYS SHARERS [SECONDS [SEED]]]
 *
 * SHARERS: one in so many acquisitions of a client shares the lock; 0: none. Without arguments: 12
 * processes on one key, on eight, and on two that are shared, too. */
#define _GNU_SOURCE 1
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "patience.h"
#include "routines.h"

#define PROCESSES_MAX 200
#define KEYS_MAX 64
#define LEASE_MS 600000 /* no lease ends, even on a slow machine */
#define ALONE 1000000   /* in `inside`; a sharer counts 1 */
#define PASSED_MAX 30   /* turns of each other process, while one waits */

enum kind { CLIENT, WAITS, POLLS, KINDS };

struct setup {
	unsigned processes, keys, sharers, seconds, seed;
};

/* Shared by all processes. */
struct board {
	atomic_uint ready;
	atomic_bool go, stop;
	atomic_uint overlaps, backward, errors;
	struct {
		atomic_long inside;
		atomic_ullong fence; /* of the last owner that had the lock alone */
		atomic_ulong turns;
	} keys[KEYS_MAX];
	atomic_ulong served[KINDS], most_passed[KINDS]; /* turns of others while one waited */
};

struct worker {
	struct board *board;
	const struct setup *setup;
	bizlock *b;
	MYSQL *db;
	enum kind kind;
	unsigned random;
	char owner[16];
};

static void be_inside(struct board *board, unsigned key, uint64_t fence, bool shared)
{
	long weight = shared ? 1 : ALONE;
	long before = atomic_fetch_add(&board->keys[key].inside, weight);

	if (before >= ALONE || (before > 0 && !shared))
		atomic_fetch_add(&board->overlaps, 1);
	if (!shared && atomic_exchange(&board->keys[key].fence, fence) >= fence)
		atomic_fetch_add(&board->backward, 1);
	if (shared && atomic_load(&board->keys[key].fence) >= fence)
		atomic_fetch_add(&board->backward, 1);
	usleep(100);
	atomic_fetch_sub(&board->keys[key].inside, weight);
}

static bool by_client(struct worker *w, unsigned key, const char *id)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	bool shared = w->setup->sharers && (unsigned)rand_r(&w->random) % w->setup->sharers == 0;

	opts.lease_ms = LEASE_MS;
	opts.flags = shared ? BIZLOCK_SHARED : 0;
	if (bizlock_acquire(w->b, KEY(id), &opts, &grant) != BIZLOCK_OK)
		return false;
	be_inside(w->board, key, grant.fence, shared);
	return bizlock_release(w->b, KEY(id), NULL, NULL) == BIZLOCK_OK;
}

static bool by_call(struct worker *w, unsigned key, const char *id)
{
	struct granted got;

	if (w->kind == WAITS)
		got = routine_wait(w->db, KEY(id), w->owner, LEASE_MS, 20000);
	else
		got = routine_try(w->db, KEY(id), w->owner, LEASE_MS);
	if (!got.fence) {
		usleep(1000 + (unsigned)rand_r(&w->random) % 4000);
		return w->kind == POLLS;
	}
	be_inside(w->board, key, got.fence, false);
	return routine_release(w->db, KEY(id), w->owner, got.fence);
}

static bool once(struct worker *w)
{
	unsigned key = (unsigned)rand_r(&w->random) % w->setup->keys;
	unsigned long before = atomic_load(&w->board->keys[key].turns), passed, most;
	char id[16];

	snprintf(id, sizeof(id), "key-%u", key);
	if (!(w->kind == CLIENT ? by_client(w, key, id) : by_call(w, key, id)))
		return false;
	passed = atomic_fetch_add(&w->board->keys[key].turns, 1) - before;
	most = atomic_load(&w->board->most_passed[w->kind]);
	while (passed > most &&
	       !atomic_compare_exchange_weak(&w->board->most_passed[w->kind], &most, passed))
		;
	atomic_fetch_add(&w->board->served[w->kind], 1);
	return true;
}

static void work(struct board *board, const struct world *world, const struct setup *setup,
                 unsigned process)
{
	struct worker w = {.board = board,
	                   .setup = setup,
	                   .kind = (enum kind)(process % KINDS),
	                   .random = setup->seed + process};

	snprintf(w.owner, sizeof(w.owner), "sql-%u", process);
	if (w.kind == CLIENT)
		w.b = client_open(world, NULL);
	else
		w.db = db_open(&world->at, world->schema);
	atomic_fetch_add(&board->ready, 1);
	eventually(atomic_load(&board->go));
	while (!atomic_load(&board->stop) && !atomic_load(&board->errors)) {
		if (once(&w))
			continue;
		fprintf(stderr, "process %u: %s\n", process,
		        w.b ? bizlock_errmsg(w.b) : "not granted, or not released");
		atomic_fetch_add(&board->errors, 1);
	}
	bizlock_close(w.b);
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

/* A machine that is busy, or a sanitizer, may let a process stand still for many turns. */
static bool was_served_in_turn(const struct board *board, const struct setup *setup)
{
	unsigned long most = PASSED_MAX * setup->processes;
	const char *sanitizer = getenv("BIZLOCK_SANITIZE");

	return setup->keys > 1 || (sanitizer && *sanitizer) ||
	       (board->most_passed[CLIENT] <= most && board->most_passed[WAITS] <= most);
}

static bool report(const struct board *board, const struct setup *setup, long long deadlocks)
{
	bool all_served = true;

	printf("%u processes, %u keys, one in %u shared, %u s, seed %u\n", setup->processes,
	       setup->keys, setup->sharers, setup->seconds, setup->seed);
	printf("  overlaps %u, fences that went back %u, errors %u, deadlocks %lld\n",
	       board->overlaps, board->backward, board->errors, deadlocks);
	for (int kind = 0; kind < KINDS; kind++) {
		static const char *const names[] = {"by the library", "by wait", "by try"};

		printf("  %s: %lu turns, passed by %lu at most\n", names[kind], board->served[kind],
		       board->most_passed[kind]);
		all_served &= board->served[kind] > 0;
	}
	fflush(stdout);
	return all_served && !board->overlaps && !board->backward && !board->errors &&
	       deadlocks == 0 && was_served_in_turn(board, setup);
}

static bool storm(const struct setup *setup)
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
	world_migrate_routines(&w);
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
	static const struct setup ours[] = {{12, 1, 0, 0, 0}, {12, 8, 0, 0, 0}, {12, 2, 4, 0, 0}};
	const char *given = getenv("BIZLOCK_STRESS_SECONDS");
	unsigned seconds = given ? (unsigned)strtoul(given, NULL, 10) : 5, seed;
	bool good = true;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		die("getrandom failed");
	for (size_t i = 0; i < (argc > 1 ? 1 : sizeof(ours) / sizeof(ours[0])); i++) {
		struct setup setup = {.processes = number(argc, argv, 1, ours[i].processes),
		                      .keys = number(argc, argv, 2, ours[i].keys),
		                      .sharers = number(argc, argv, 3, ours[i].sharers),
		                      .seconds = number(argc, argv, 4, seconds),
		                      .seed = number(argc, argv, 5, seed)};

		if (setup.processes < KINDS || setup.processes > PROCESSES_MAX || !setup.keys ||
		    setup.keys > KEYS_MAX || !setup.seconds)
			die("usage: routines [PROCESSES KEYS SHARERS [SECONDS [SEED]]]");
		good = storm(&setup) && good;
	}
	return good ? 0 : 1;
}
