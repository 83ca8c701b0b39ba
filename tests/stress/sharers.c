/* Many processes share a lock, and some want it alone: some wait for it, a few only try, and a few
 * want it together with another lock. Nobody is beside one that has it alone; never do more share
 * it than the limit; fences grow from one that had it alone to the next, and past all in between;
 * the server counts no deadlock; and nobody in line waits for much longer than it would take to
 * serve all in the order of arrival.
 *
 *     sharers [SHARERS ALONE LIMIT [SECONDS]]
 *
 * Without arguments: 24 and 3, without a limit and then with one of 4. */
#define _GNU_SOURCE 1
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "patience.h"
#include "world.h"

#define PROCESSES_MAX 200
#define PATIENT 20    /* times what the order of arrival would cost */
#define STALL_MS 4000 /* and what a busy machine may take */

struct setup {
	unsigned sharers, alone, limit, seconds;
};

enum kind { SHARES, WAITS, TRIES, TAKES_SET, KINDS };

/* Of those that are not in line. */
#define FEW 2

static unsigned count_of(const struct setup *setup, enum kind kind)
{
	if (kind == SHARES)
		return setup->sharers;
	return kind == WAITS || setup->alone == 0 ? setup->alone : FEW;
}

/* Shared by all processes. */
struct board {
	atomic_uint ready;
	atomic_bool go, stop;
	atomic_int sharing, alone, most;
	atomic_uint overlaps, too_many, backward, errors;
	atomic_ullong fence_alone, fence_shared; /* the largest so far */
	atomic_ulong times[KINDS];
	atomic_llong longest_ms[KINDS];
};

static void raise_to(atomic_ullong *to, unsigned long long fence)
{
	unsigned long long now = atomic_load(to);

	while (now < fence && !atomic_compare_exchange_weak(to, &now, fence)) {
	}
}

static void note_wait(atomic_llong *longest, long long ms)
{
	long long now = atomic_load(longest);

	while (now < ms && !atomic_compare_exchange_weak(longest, &now, ms)) {
	}
}

/* ---- a process ------------------------------------------------------------- */

static void be_alone(struct board *board, uint64_t fence)
{
	if (atomic_fetch_add(&board->alone, 1) != 0 || atomic_load(&board->sharing) != 0)
		atomic_fetch_add(&board->overlaps, 1);
	if (fence <= atomic_load(&board->fence_alone) || fence <= atomic_load(&board->fence_shared))
		atomic_fetch_add(&board->backward, 1);
	raise_to(&board->fence_alone, fence);
	usleep(100);
	atomic_fetch_sub(&board->alone, 1);
}

static void share(struct board *board, uint64_t fence, unsigned limit)
{
	int others = atomic_fetch_add(&board->sharing, 1);

	if (atomic_load(&board->alone) != 0)
		atomic_fetch_add(&board->overlaps, 1);
	if (limit && others >= (int)limit)
		atomic_fetch_add(&board->too_many, 1);
	if (fence <= atomic_load(&board->fence_alone))
		atomic_fetch_add(&board->backward, 1);
	raise_to(&board->fence_shared, fence);
	if (others + 1 > atomic_load(&board->most))
		atomic_store(&board->most, others + 1);
	usleep(100);
	atomic_fetch_sub(&board->sharing, 1);
}

static int acquire(bizlock *b, enum kind kind, unsigned limit, bizlock_grant ret[2])
{
	const bizlock_key keys[] = {KEY("k"), KEY("another")};
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	ret[0] = ret[1] = (bizlock_grant)BIZLOCK_GRANT_INIT;
	opts.lease_ms = 600000; /* no lease ends, even on a slow machine */
	opts.flags = kind == SHARES ? BIZLOCK_SHARED : 0;
	opts.limit = kind == SHARES ? limit : 0;
	opts.wait_ms = kind == TRIES ? 0 : -1;
	return kind == TAKES_SET ? bizlock_acquire_all(b, keys, 2, &opts, ret)
	                         : bizlock_acquire(b, keys[0], &opts, &ret[0]);
}

static bool once(struct board *board, bizlock *b, enum kind kind, unsigned limit)
{
	const bizlock_key keys[] = {KEY("k"), KEY("another")};
	int64_t began = now_ms();
	bizlock_grant grants[2];
	int rc = acquire(b, kind, limit, grants);

	if (kind == TRIES && rc == BIZLOCK_BUSY)
		return true;
	if (rc != BIZLOCK_OK)
		return false;
	note_wait(&board->longest_ms[kind], now_ms() - began);
	if (kind == SHARES)
		share(board, grants[0].fence, limit);
	else
		be_alone(board, grants[0].fence);
	atomic_fetch_add(&board->times[kind], 1);
	return bizlock_release_all(b, keys, kind == TAKES_SET ? 2 : 1, NULL) == BIZLOCK_OK;
}

static void work(struct board *board, const struct world *w, const struct setup *setup,
                 enum kind kind)
{
	bizlock *b = client_open(w, NULL);

	atomic_fetch_add(&board->ready, 1);
	eventually(atomic_load(&board->go));
	while (!atomic_load(&board->stop) && !atomic_load(&board->errors))
		if (!once(board, b, kind, setup->limit)) {
			fprintf(stderr, "%s\n", bizlock_errmsg(b));
			atomic_fetch_add(&board->errors, 1);
		}
	bizlock_close(b);
}

static pid_t start(struct board *board, const struct world *w, const struct setup *setup,
                   enum kind kind)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork failed");
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	work(board, w, setup, kind);
	_exit(0);
}

/* ---- all of them ------------------------------------------------------------- */

static void run(struct board *board, const struct world *w, const struct setup *setup)
{
	pid_t pids[PROCESSES_MAX];
	unsigned n = 0;
	int status;

	for (enum kind kind = SHARES; kind < KINDS; kind++)
		for (unsigned i = 0; i < count_of(setup, kind); i++)
			pids[n++] = start(board, w, setup, kind);
	eventually(atomic_load(&board->ready) == n);
	atomic_store(&board->go, true);
	for (int64_t end = now_ms() + setup->seconds * 1000; pause_before(end);)
		if (atomic_load(&board->errors))
			break;
	atomic_store(&board->stop, true);
	for (unsigned i = 0; i < n; i++)
		if (waitpid(pids[i], &status, 0) != pids[i] || status != 0)
			atomic_fetch_add(&board->errors, 1);
}

/* Whoever tries, or wants several, has no place in line. */
static bool report(const struct board *board, const struct setup *setup, long long deadlocks)
{
	long long longest = board->longest_ms[SHARES] > board->longest_ms[WAITS]
	                            ? board->longest_ms[SHARES]
	                            : board->longest_ms[WAITS];
	unsigned long sum = 0, all = 0;
	long long turn_ms;

	for (enum kind kind = SHARES; kind < KINDS; kind++) {
		sum += board->times[kind];
		all += count_of(setup, kind);
	}
	turn_ms = sum ? (long long)(all * setup->seconds * 1000 / sum) : 0;
	printf("%u sharers, %u alone, limit %u, %u s: shared %lu times (up to %d together), alone "
	       "%lu times, by tries %lu, in sets %lu\n",
	       setup->sharers, setup->alone, setup->limit, setup->seconds, board->times[SHARES],
	       board->most, board->times[WAITS], board->times[TRIES], board->times[TAKES_SET]);
	printf("  overlaps %u, above the limit %u, fences that went back %u, errors %u, deadlocks "
	       "%lld\n",
	       board->overlaps, board->too_many, board->backward, board->errors, deadlocks);
	printf("  a turn of all %lld ms; longest wait: shared %lld ms, alone %lld ms, sets %lld "
	       "ms\n",
	       turn_ms, board->longest_ms[SHARES], board->longest_ms[WAITS],
	       board->longest_ms[TAKES_SET]);
	fflush(stdout);
	return board->times[SHARES] > 0 && (board->times[WAITS] > 0 || !setup->alone) &&
	       !board->overlaps && !board->too_many && !board->backward && !board->errors &&
	       deadlocks == 0 && longest <= PATIENT * turn_ms + STALL_MS;
}

static bool share_for_a_while(const struct setup *setup)
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

	setup.sharers = number(argc, argv, 1, 24);
	setup.alone = number(argc, argv, 2, 3);
	setup.limit = number(argc, argv, 3, 0);
	setup.seconds = number(argc, argv, 4, setup.seconds);
	if (!setup.sharers || setup.sharers + setup.alone + 2 * FEW > PROCESSES_MAX ||
	    !setup.seconds)
		die("usage: sharers [SHARERS ALONE LIMIT [SECONDS]]");
	good = share_for_a_while(&setup);
	if (argc < 2) {
		setup.limit = 4;
		good = share_for_a_while(&setup) && good;
	}
	return good ? 0 : 1;
}
