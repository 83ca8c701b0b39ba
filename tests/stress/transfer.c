/* Money is moved between accounts by processes that are stopped again and again,
 * past their leases, at random moments. Each reads two balances, pauses, writes
 * both, and commits by bizlock_commit(). Money is neither made nor lost, no account
 * is written by a holder whose lock has passed on, and of what was answered LOST
 * nothing is to be seen.
 *
 *     transfer [PROCESSES [TRANSFERS [SEED [plain]]]]
 *
 * plain: COMMIT in the place of bizlock_commit(), to see that the test sees the
 * harm; it then exits with 1. TRANSFERS: 200 for each of BIZLOCK_STRESS_SECONDS. */
#define _GNU_SOURCE 1
#include <bizlock_tx.h>
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

#define PROCESSES_MAX 64
#define ACCOUNTS 64 /* enough that the accounts of a stopped process do not stop all others */
#define BALANCE 1000000
#define LEASE_MS 300
#define LOST_MIN 3        /* fewer than this are no test */
#define PER_PROCESS 50000 /* outcomes that can be noted */

struct setup {
	unsigned processes, transfers, seed;
	bool plain;
};

enum outcome { NOT_DONE, DONE, REFUSED };

/* Shared by all processes. */
struct board {
	atomic_bool stop;
	atomic_ulong done, lost, takeovers, errors;
	atomic_uint inside[PROCESSES_MAX]; /* does it hold locks? */
	unsigned char outcomes[PROCESSES_MAX][PER_PROCESS];
};

/* ---- a worker ------------------------------------------------------------------- */

struct worker {
	struct board *board;
	const struct setup *setup;
	unsigned number, random, count;
	bizlock *b;
	MYSQL *tx;
};

struct transfer {
	unsigned account[2]; /* in the order in which they are locked */
	uint64_t fence[2];
	int amount; /* from the first to the second, or back */
};

static bizlock_key key_of(unsigned account, char text[16])
{
	snprintf(text, 16, "%u", account);
	return (bizlock_key){"account", text};
}

static int lock_one(struct worker *w, struct transfer *t, int i)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	char text[16];
	int rc;

	opts.wait_ms = PATIENCE_MS;
	opts.lease_ms = LEASE_MS;
	rc = bizlock_acquire(w->b, key_of(t->account[i], text), &opts, &grant);
	t->fence[i] = grant.fence;
	atomic_fetch_add(&w->board->takeovers, rc == BIZLOCK_OK && grant.flags & BIZLOCK_TOOK_OVER);
	return rc;
}

static int unlock_one(struct worker *w, const struct transfer *t, int i)
{
	char text[16];
	int rc = bizlock_release(w->b, key_of(t->account[i], text), NULL, NULL);

	return rc == BIZLOCK_LOST ? BIZLOCK_OK : rc;
}

/* Writes an absolute value, from what was read before: only the lock keeps it true. A fence that
 * goes back is counted, not refused. It would be the write of a holder that has lost its lock. */
static void write_balance(struct worker *w, const struct transfer *t, int i, long long balance)
{
	db_run(w->tx,
	       "UPDATE account SET backward = backward + (%llu < fence), fence = %llu,"
	       " balance = %lld WHERE id = %u",
	       (unsigned long long)t->fence[i], (unsigned long long)t->fence[i], balance,
	       t->account[i]);
}

static void write_both(struct worker *w, const struct transfer *t)
{
	long long balance[2];

	for (int i = 0; i < 2; i++)
		balance[i] = db_number(w->tx, "SELECT balance FROM account WHERE id = %u",
		                       t->account[i]);
	usleep((unsigned)rand_r(&w->random) % 3000);
	write_balance(w, t, 0, balance[0] - t->amount);
	write_balance(w, t, 1, balance[1] + t->amount);
	db_run(w->tx,
	       "INSERT INTO journal (worker, number, a, b, amount) VALUES (%u, %u, %u, %u, %d)",
	       w->number, w->count, t->account[0], t->account[1], t->amount);
	usleep((unsigned)rand_r(&w->random) % 1000);
}

/* bizlock_fence() for the first lock, bizlock_commit() for the second. */
static int commit(struct worker *w, const struct transfer *t)
{
	char text[2][16];
	int rc;

	if (w->setup->plain) {
		db_run(w->tx, "COMMIT");
		return BIZLOCK_OK;
	}
	rc = bizlock_fence(w->b, key_of(t->account[0], text[0]), NULL, w->tx);
	if (rc == BIZLOCK_OK)
		return bizlock_commit(w->b, key_of(t->account[1], text[1]), NULL, w->tx);
	db_run(w->tx, "ROLLBACK");
	return rc;
}

static int move_money(struct worker *w, const struct transfer *t)
{
	int rc;

	db_run(w->tx, "START TRANSACTION");
	write_both(w, t);
	rc = commit(w, t);
	w->board->outcomes[w->number][w->count] = rc == BIZLOCK_OK ? DONE : REFUSED;
	w->count++;
	atomic_fetch_add(rc == BIZLOCK_OK ? &w->board->done : &w->board->lost, 1);
	return rc == BIZLOCK_LOST ? BIZLOCK_OK : rc;
}

static struct transfer draw(struct worker *w)
{
	unsigned first = (unsigned)rand_r(&w->random) % (ACCOUNTS - 1);
	unsigned second = first + 1 + (unsigned)rand_r(&w->random) % (ACCOUNTS - 1 - first);

	return (struct transfer){{first, second}, {0, 0}, (int)(rand_r(&w->random) % 201) - 100};
}

static int once(struct worker *w)
{
	struct transfer t = draw(w);
	int rc = lock_one(w, &t, 0), released;

	if (rc != BIZLOCK_OK)
		return rc;
	rc = lock_one(w, &t, 1);
	if (rc == BIZLOCK_OK) {
		atomic_store(&w->board->inside[w->number], 1);
		rc = move_money(w, &t);
		atomic_store(&w->board->inside[w->number], 0);
		released = unlock_one(w, &t, 1);
		rc = rc == BIZLOCK_OK ? released : rc;
	}
	released = unlock_one(w, &t, 0);
	return rc == BIZLOCK_OK ? released : rc;
}

static void work(struct worker *w, const struct world *world)
{
	w->b = client_open(world, NULL);
	w->tx = db_open(&world->at, world->schema);
	while (!atomic_load(&w->board->stop) && w->count < PER_PROCESS) {
		int rc = once(w);

		if (rc == BIZLOCK_OK)
			continue;
		fprintf(stderr, "worker %u: %s: %s\n", w->number, bizlock_err_name(rc),
		        bizlock_errmsg(w->b));
		atomic_fetch_add(&w->board->errors, 1);
		break;
	}
	mysql_close(w->tx);
	bizlock_close(w->b);
}

static pid_t start(struct board *board, const struct world *world, const struct setup *setup,
                   unsigned number, unsigned random)
{
	struct worker w = {.board = board, .setup = setup, .number = number, .random = random};
	pid_t pid = fork();

	if (pid < 0)
		die("fork failed");
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	work(&w, world);
	_exit(0);
}

/* ---- all of them ------------------------------------------------------------------ */

/* Mostly a worker that holds locks: stopping others proves nothing. */
static unsigned choose_victim(const struct board *board, unsigned processes, unsigned *random)
{
	unsigned victim = 0;

	for (int tries = 0; tries < 20; tries++) {
		victim = (unsigned)rand_r(random) % processes;
		if (atomic_load(&board->inside[victim]))
			break;
	}
	return victim;
}

/* Stopped for one to two leases. */
static void stop_for_a_while(pid_t pid, unsigned *random)
{
	int status;

	if (kill(pid, SIGSTOP) != 0 || waitpid(pid, &status, WUNTRACED) != pid)
		die("the process cannot be stopped");
	if (!WIFSTOPPED(status))
		die("a worker has died");
	pause_ms(LEASE_MS + (unsigned)rand_r(random) % LEASE_MS);
	if (kill(pid, SIGCONT) != 0)
		die("the process cannot be continued");
}

static bool enough(const struct board *board, const struct setup *setup)
{
	return atomic_load(&board->done) >= setup->transfers &&
	       (setup->plain ||
	        (atomic_load(&board->lost) >= LOST_MIN && atomic_load(&board->takeovers) > 0));
}

static unsigned run(struct board *board, const struct world *world, const struct setup *setup)
{
	unsigned random = setup->seed, stops = 0;
	pid_t pids[PROCESSES_MAX];
	int status;

	for (unsigned i = 0; i < setup->processes; i++)
		pids[i] = start(board, world, setup, i, (unsigned)rand_r(&random));
	while (!enough(board, setup) && !atomic_load(&board->errors)) {
		pause_ms(50 + (unsigned)rand_r(&random) % 150);
		stop_for_a_while(pids[choose_victim(board, setup->processes, &random)], &random);
		stops++;
	}
	atomic_store(&board->stop, true);
	for (unsigned i = 0; i < setup->processes; i++)
		if (waitpid(pids[i], &status, 0) != pids[i] || status != 0)
			atomic_fetch_add(&board->errors, 1);
	return stops;
}

/* ---- the books ---------------------------------------------------------------------- */

/* How often the journal has a transfer that was refused, or lacks one that was done. */
static unsigned long wrong_outcomes(struct board *board, const struct world *world,
                                    unsigned long *ret_rows)
{
	char *journal = db_text(world->admin, "SELECT worker, number FROM journal"), *rest;
	unsigned long wrong = 0, rows = 0;
	unsigned worker, number;

	for (char *line = strtok_r(journal, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		if (sscanf(line, "%u|%u", &worker, &number) != 2 || worker >= PROCESSES_MAX ||
		    number >= PER_PROCESS)
			die("journal: %s", line);
		wrong += board->outcomes[worker][number] != DONE;
		rows++;
	}
	free(journal);
	*ret_rows = rows;
	return wrong + (rows > board->done ? rows - board->done : board->done - rows);
}

static bool report(struct board *board, const struct world *world, const struct setup *setup,
                   unsigned stops, long long deadlocks)
{
	unsigned long rows, wrong = wrong_outcomes(board, world, &rows);
	long long sum = db_number(world->admin, "SELECT SUM(balance) FROM account");
	long long backward = db_number(world->admin, "SELECT SUM(backward) FROM account");
	/* Each account agrees with the journal: no write was overwritten. */
	long long off = db_number(world->admin,
	                          "SELECT COUNT(*) FROM account WHERE balance <> %d + (SELECT "
	                          "COALESCE(SUM(CASE account.id"
	                          " WHEN b THEN amount ELSE -amount END), 0) FROM journal WHERE "
	                          "account.id IN (a, b))",
	                          BALANCE);

	printf("%u processes, seed %u%s: %lu transfers, %lu LOST, %u stops, %lu takeovers\n",
	       setup->processes, setup->seed, setup->plain ? ", plain" : "", board->done,
	       board->lost, stops, board->takeovers);
	printf("  sum %lld of %lld, journal %lu, wrong outcomes %lu, accounts that are off %lld\n",
	       sum, (long long)BALANCE * ACCOUNTS, rows, wrong, off);
	printf("  fences that went back %lld, errors %lu, deadlocks %lld\n", backward,
	       board->errors, deadlocks);
	return sum == (long long)BALANCE * ACCOUNTS && wrong == 0 && off == 0 && backward == 0 &&
	       !board->errors && deadlocks == 0 && board->takeovers > 0;
}

static void open_accounts(const struct world *world)
{
	db_run(world->admin,
	       "CREATE TABLE account (id INT UNSIGNED PRIMARY KEY, balance BIGINT NOT NULL,"
	       " fence BIGINT UNSIGNED NOT NULL DEFAULT 0, backward INT NOT NULL DEFAULT 0)"
	       " ENGINE=InnoDB;"
	       "CREATE TABLE journal (id BIGINT AUTO_INCREMENT PRIMARY KEY, worker INT NOT NULL,"
	       " number INT NOT NULL, a INT UNSIGNED NOT NULL, b INT UNSIGNED NOT NULL,"
	       " amount INT NOT NULL) ENGINE=InnoDB");
	for (int i = 0; i < ACCOUNTS; i++)
		db_run(world->admin, "INSERT INTO account (id, balance) VALUES (%d, %d)", i,
		       BALANCE);
}

static bool transfer(const struct setup *setup)
{
	struct server at = server_from_env();
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
	                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct world world;
	long long before;
	unsigned stops;
	bool good;

	if (board == MAP_FAILED)
		die("mmap failed");
	world_make(&world, &at);
	world_migrate(&world);
	open_accounts(&world);
	before = db_deadlocks(world.admin);
	stops = run(board, &world, setup);
	good = report(board, &world, setup, stops, db_deadlocks(world.admin) - before);
	world_drop(&world);
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
	struct setup setup = {.transfers = 200 * (given ? (unsigned)strtoul(given, NULL, 10) : 4)};

	if (getrandom(&setup.seed, sizeof(setup.seed), 0) != sizeof(setup.seed))
		die("getrandom failed");
	setup.processes = number(argc, argv, 1, 8);
	setup.transfers = number(argc, argv, 2, setup.transfers);
	setup.seed = number(argc, argv, 3, setup.seed);
	setup.plain = argc > 4 && strcmp(argv[4], "plain") == 0;
	if (!setup.processes || setup.processes > PROCESSES_MAX || !setup.transfers ||
	    setup.transfers > setup.processes * PER_PROCESS)
		die("usage: transfer [PROCESSES [TRANSFERS [SEED [plain]]]]");
	return transfer(&setup) ? 0 : 1;
}
