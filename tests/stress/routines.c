/* The library and the routines on the same keys, as fast as they can, by programs in C, Python and
 * PHP. Nobody is inside with an owner that has the lock alone; fences grow in the order of entry;
 * the server counts no deadlock; and on one key nobody that waits is passed by too many. With
 * kills, processes are killed, most of them while they have a lock, and others take their places.
 *
 *     routines [KINDS PROCESSES KEYS SHARERS KILLS [SECONDS [SEED]]]
 *
 * KINDS: a letter for each kind of process, in turn: l, acquires by the library; w, waits by CALL
 * biz_lock_wait(), and tries; t, polls by CALL biz_lock_try(); y, waits in Python; h, waits in PHP.
 * SHARERS: one in so many acquisitions of the library shares the lock; 0: none. KILLS: one every so
 * many milliseconds; 0: none. */
#define _GNU_SOURCE 1
#include <inttypes.h>
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
#define KEYS_MAX 64
#define LEASE_MS 600000     /* no lease ends, even on a slow machine */
#define SHORT_LEASE_MS 4000 /* that of processes that may be killed */
#define PASSED_MAX 10       /* turns of each other process, while one waits */

struct setup {
	const char *kinds;
	unsigned processes, keys, sharers, kill_every_ms, seconds, seed;
};

/* Where a process is: the number of a key, from 1 on, and whether it shares the lock; 0: nowhere.
 */
#define SHARED_BIT 0x8000u

/* Shared by all processes. */
struct board {
	atomic_uint ready;
	atomic_bool go, stop;
	atomic_uint overlaps, backward, errors, too_slow;
	atomic_uint inside[PROCESSES_MAX];
	struct {
		atomic_ullong fence; /* of the last owner that had the lock alone */
		atomic_ulong turns;
	} keys[KEYS_MAX];
	atomic_ulong served[PROCESSES_MAX], most_passed[PROCESSES_MAX]; /* turns of others while
	                                                                   this one waited */
	unsigned killed, killed_inside;
};

struct worker {
	struct board *board;
	const struct setup *setup;
	unsigned process;
	char kind;
	bizlock *b;
	MYSQL *db;
	FILE *orders, *answers; /* of a program in another language */
	uint32_t lease_ms;
	unsigned random;
	char owner[32];
};

/* ---- inside ------------------------------------------------------------------ */

/* Of two that are inside at once, the later one sees the other. Without renewal a process that
 * stands still for its lease is rightly overtaken. */
static void be_inside(struct worker *w, unsigned key, uint64_t fence, bool shared)
{
	struct board *board = w->board;
	int64_t until = now_ms() + w->lease_ms / 2;

	atomic_store(&board->inside[w->process], (key + 1) | (shared ? SHARED_BIT : 0));
	for (unsigned i = 0; i < w->setup->processes; i++) {
		unsigned other = atomic_load(&board->inside[i]);

		if (i != w->process && (other & ~SHARED_BIT) == key + 1 &&
		    !(shared && (other & SHARED_BIT)))
			atomic_fetch_add(&board->overlaps, 1);
	}
	if (shared ? atomic_load(&board->keys[key].fence) >= fence
	           : atomic_exchange(&board->keys[key].fence, fence) >= fence)
		atomic_fetch_add(&board->backward, 1);
	usleep(w->setup->kill_every_ms ? 5000 : 100);
	atomic_store(&board->inside[w->process], 0);
	if (now_ms() > until)
		atomic_fetch_add(&board->too_slow, 1);
}

static bool by_library(struct worker *w, unsigned key, const char *id)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	bool shared = w->setup->sharers && (unsigned)rand_r(&w->random) % w->setup->sharers == 0;

	opts.lease_ms = w->lease_ms;
	opts.flags = shared ? BIZLOCK_SHARED : 0;
	if (bizlock_acquire(w->b, KEY(id), &opts, &grant) != BIZLOCK_OK)
		return false;
	be_inside(w, key, grant.fence, shared);
	return bizlock_release(w->b, KEY(id), NULL, NULL) == BIZLOCK_OK;
}

static bool by_call(struct worker *w, unsigned key, const char *id)
{
	struct granted got;

	if (w->kind == 'w')
		got = routine_wait(w->db, KEY(id), w->owner, w->lease_ms, PATIENCE_MS);
	else
		while (got = routine_try(w->db, KEY(id), w->owner, w->lease_ms), !got.fence) {
			if (atomic_load(&w->board->stop))
				return true;
			usleep(1000 + (unsigned)rand_r(&w->random) % 4000);
		}
	if (!got.fence)
		return false;
	be_inside(w, key, got.fence, false);
	return routine_release(w->db, KEY(id), w->owner, got.fence);
}

/* ---- programs in other languages ----------------------------------------------- */

/* The first python3 may be one that does not look where Debian's packages are. */
static const char *command_of(char kind)
{
	return kind == 'h' ? "exec php \"$BIZLOCK_SQL_DIR/../tests/stress/caller.php\" \"$0\""
	                   : "set -- \"$BIZLOCK_SQL_DIR/../tests/stress/caller.py\" \"$0\";"
	                     "if python3 -c 'import pymysql' 2>&-; then exec python3 \"$@\"; fi;"
	                     "exec /usr/bin/python3 \"$@\"";
}

static void start_program(struct worker *w, const char *schema)
{
	int orders[2], answers[2];
	pid_t pid;

	if (pipe(orders) != 0 || pipe(answers) != 0)
		die("no pipe");
	pid = fork();
	if (pid < 0)
		die("fork failed");
	if (pid == 0) {
		dup2(orders[0], STDIN_FILENO);
		dup2(answers[1], STDOUT_FILENO);
		close(orders[1]);
		close(answers[0]);
		execl("/bin/sh", "sh", "-c", command_of(w->kind), schema, (char *)NULL);
		_exit(127);
	}
	close(orders[0]);
	close(answers[1]);
	w->orders = fdopen(orders[1], "w");
	w->answers = fdopen(answers[0], "r");
}

static uint64_t ask_program(struct worker *w, const char *what, const char *id, uint64_t number)
{
	uint64_t ret;

	fprintf(w->orders, "%s %s %s %" PRIu64 "\n", what, id, w->owner, number);
	fflush(w->orders);
	if (fscanf(w->answers, "%" SCNu64, &ret) != 1)
		die("process %u: its program has ended", w->process);
	return ret;
}

static bool by_program(struct worker *w, unsigned key, const char *id)
{
	uint64_t fence = ask_program(w, "take", id, w->lease_ms);

	be_inside(w, key, fence, false);
	return ask_program(w, "give", id, fence) == 1;
}

/* ---- the processes ------------------------------------------------------------- */

static bool once(struct worker *w)
{
	struct board *board = w->board;
	unsigned key = (unsigned)rand_r(&w->random) % w->setup->keys;
	unsigned long before = atomic_load(&board->keys[key].turns), passed;
	char id[16];
	bool done;

	snprintf(id, sizeof(id), "key-%u", key);
	done = w->b        ? by_library(w, key, id)
	       : w->orders ? by_program(w, key, id)
	                   : by_call(w, key, id);
	passed = atomic_fetch_add(&board->keys[key].turns, 1) - before;
	if (passed > atomic_load(&board->most_passed[w->process]))
		atomic_store(&board->most_passed[w->process], passed);
	atomic_fetch_add(&board->served[w->process], 1);
	return done;
}

static void work(struct board *board, const struct world *world, const struct setup *setup,
                 unsigned process, unsigned random)
{
	struct worker w = {.board = board,
	                   .setup = setup,
	                   .process = process,
	                   .kind = setup->kinds[process % strlen(setup->kinds)],
	                   .lease_ms = setup->kill_every_ms ? SHORT_LEASE_MS : LEASE_MS,
	                   .random = random};

	snprintf(w.owner, sizeof(w.owner), "sql-%u-%d", process, (int)getpid());
	if (w.kind == 'l')
		w.b = client_open(world, NULL);
	else if (w.kind == 'y' || w.kind == 'h')
		start_program(&w, world->schema);
	else
		w.db = db_open(&world->at, world->schema);
	if (w.orders)
		ask_program(&w, "give", "key-0", 1); /* which it does not have: it is there */
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
                   unsigned process, unsigned random)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork failed");
	if (pid > 0) {
		setpgid(pid, pid);
		return pid;
	}
	setpgid(0, 0); /* with its program, if it has one */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	work(board, w, setup, process, random);
	_exit(0);
}

/* One that is inside, if there is any. */
static unsigned choose_victim(struct board *board, unsigned processes, unsigned *random)
{
	unsigned first = (unsigned)rand_r(random) % processes;

	for (int64_t end = now_ms() + 20; now_ms() < end;)
		for (unsigned i = 0; i < processes; i++)
			if (atomic_load(&board->inside[(first + i) % processes]))
				return (first + i) % processes;
	return first;
}

static void end(struct board *board, pid_t pid, bool killed)
{
	int status;

	if (killed)
		kill(-pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid || (!killed && status != 0))
		atomic_fetch_add(&board->errors, 1);
}

static void run(struct board *board, const struct world *w, const struct setup *setup)
{
	unsigned random = setup->seed, pause = setup->kill_every_ms ? setup->kill_every_ms : 20;
	pid_t pids[PROCESSES_MAX];

	for (unsigned i = 0; i < setup->processes; i++)
		pids[i] = start(board, w, setup, i, (unsigned)rand_r(&random));
	eventually(atomic_load(&board->ready) == setup->processes || atomic_load(&board->errors));
	atomic_store(&board->go, true);
	for (int64_t end_ms = now_ms() + setup->seconds * 1000;
	     now_ms() < end_ms && !atomic_load(&board->errors);) {
		unsigned victim;

		pause_ms(pause);
		if (!setup->kill_every_ms)
			continue;
		victim = choose_victim(board, setup->processes, &random);
		end(board, pids[victim], true);
		board->killed_inside += atomic_exchange(&board->inside[victim], 0) != 0;
		board->killed++;
		pids[victim] = start(board, w, setup, victim, (unsigned)rand_r(&random));
	}
	atomic_store(&board->stop, true);
	for (unsigned i = 0; i < setup->processes; i++)
		end(board, pids[i], false);
}

/* ---- what is reported ---------------------------------------------------------- */

/* A sanitizer lets a process stand still for many turns; with several keys the turns of one key say
 * little; and a process that takes the place of a killed one begins behind all others: such runs
 * have no bound. Nor have processes that poll, because all who wait pass them. */
static bool was_served_in_turn(const struct board *board, const struct setup *setup)
{
	const char *sanitizer = getenv("BIZLOCK_SANITIZE");

	if (setup->keys > 1 || setup->kill_every_ms || (sanitizer && *sanitizer))
		return true;
	for (unsigned i = 0; i < setup->processes; i++)
		if (setup->kinds[i % strlen(setup->kinds)] != 't' &&
		    board->most_passed[i] > PASSED_MAX * setup->processes)
			return false;
	return true;
}

static bool report(const struct board *board, const struct setup *setup, long long deadlocks)
{
	bool all_served = true;

	printf("%u processes, kinds %s, %u keys, one in %u shared, kills every %u ms, %u s, seed "
	       "%u\n",
	       setup->processes, setup->kinds, setup->keys, setup->sharers, setup->kill_every_ms,
	       setup->seconds, setup->seed);
	printf("  overlaps %u, fences that went back %u, errors %u, deadlocks %lld\n",
	       board->overlaps, board->backward, board->errors, deadlocks);
	if (setup->kill_every_ms)
		printf("  killed %u, inside %u\n", board->killed, board->killed_inside);
	for (size_t kind = 0; kind < strlen(setup->kinds); kind++) {
		unsigned long served = 0, most = 0;

		for (unsigned i = (unsigned)kind; i < setup->processes;
		     i += (unsigned)strlen(setup->kinds)) {
			served += board->served[i];
			most = board->most_passed[i] > most ? board->most_passed[i] : most;
		}
		printf("  %c: %lu turns, passed by %lu at most\n", setup->kinds[kind], served,
		       most);
		all_served &= served > 0;
	}
	fflush(stdout);
	if (board->too_slow) {
		printf("  %u times a process stood still for half of its lease\n", board->too_slow);
		return deadlocks == 0;
	}
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
	static const struct setup ours[] = {
	        {"lyh", 12, 1, 0, 0, 0, 0},   {"lyh", 12, 8, 0, 0, 0, 0},
	        {"lyh", 12, 1, 0, 500, 0, 0}, {"lyh", 12, 8, 0, 200, 0, 0},
	        {"lwt", 12, 2, 4, 0, 0, 0},
	};
	const char *given = getenv("BIZLOCK_STRESS_SECONDS");
	unsigned seconds = given ? (unsigned)strtoul(given, NULL, 10) : 5, seed;
	bool good = true;

	signal(SIGPIPE, SIG_IGN);
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		die("getrandom failed");
	for (size_t i = 0; i < (argc > 1 ? 1 : sizeof(ours) / sizeof(ours[0])); i++) {
		struct setup setup = {
		        .kinds = argc > 1 ? argv[1] : ours[i].kinds,
		        .processes = number(argc, argv, 2, ours[i].processes),
		        .keys = number(argc, argv, 3, ours[i].keys),
		        .sharers = number(argc, argv, 4, ours[i].sharers),
		        .kill_every_ms = number(argc, argv, 5, ours[i].kill_every_ms),
		        .seconds = number(argc, argv, 6, seconds),
		        .seed = number(argc, argv, 7, seed),
		};

		if (!setup.kinds[0] || setup.kinds[strspn(setup.kinds, "lwtyh")] ||
		    setup.processes < strlen(setup.kinds) || setup.processes > PROCESSES_MAX ||
		    !setup.keys || setup.keys > KEYS_MAX || !setup.seconds)
			die("usage: routines [KINDS PROCESSES KEYS SHARERS KILLS [SECONDS "
			    "[SEED]]]");
		good = storm(&setup) && good;
	}
	return good ? 0 : 1;
}
