/* Few connections, many threads: nobody starves, nothing locks up. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cr_test.h"

TestSuite(pool, .init = world_begin, .fini = world_end, .timeout = 480);

#define THREADS 8
#define ROUNDS 12

/* Threads that take keys, count inside, and give them back. */
struct crew {
	bizlock *b;
	bool nested; /* takes two keys at once, always in the same order */
	atomic_int inside[3];
	atomic_int rounds, errors, overlaps;
};

static int hold(struct crew *c, int key, int deeper)
{
	char id[16];
	int rc;

	snprintf(id, sizeof(id), "k%d", key);
	rc = acquire(c->b, id, .wait_ms = -1, .lease_ms = 60000);
	if (rc != BIZLOCK_OK)
		return rc;
	if (atomic_fetch_add(&c->inside[key], 1) != 0)
		atomic_fetch_add(&c->overlaps, 1);
	rc = deeper < 3 ? hold(c, deeper, 3) : BIZLOCK_OK;
	atomic_fetch_sub(&c->inside[key], 1);
	return bizlock_release(c->b, KEY(id), NULL, NULL) == BIZLOCK_OK ? rc : BIZLOCK_DB;
}

static void *work(void *arg)
{
	struct crew *c = arg;

	for (int i = 0; i < ROUNDS; i++) {
		int key = c->nested ? i % 2 : i % 3;

		if (hold(c, key, c->nested ? 2 : 3) != BIZLOCK_OK)
			atomic_fetch_add(&c->errors, 1);
		atomic_fetch_add(&c->rounds, 1);
	}
	return NULL;
}

static void run_crew(struct crew *c)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, c) != 0)
			die("no thread");
	/* Each round has its own time: they are as many as a busy machine may make in a minute. */
	for (int made = 0; made < THREADS * ROUNDS; made = atomic_load(&c->rounds))
		eventually(atomic_load(&c->rounds) > made);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void everybody_is_served(const char *max_connections, const char *queue, bool nested)
{
	struct crew c = {.b = client(OPTIONS("max_connections", max_connections, "queue", queue)),
	                 .nested = nested};

	if (strcmp(queue, "off") == 0)
		deadlocks_may_happen();
	run_crew(&c);
	cr_assert_eq(atomic_load(&c.errors), 0, "%s", bizlock_errmsg(c.b));
	cr_assert_eq(atomic_load(&c.overlaps), 0);
	cr_assert_eq(locks_there(&world), 0);
}

Test(pool, one_connection_serves_many_threads)
{
	everybody_is_served("1", "auto", false);
}

Test(pool, one_connection_serves_threads_that_hold_two_keys)
{
	everybody_is_served("1", "auto", true);
}

Test(pool, two_connections_serve_many_threads)
{
	everybody_is_served("2", "auto", false);
}

Test(pool, two_connections_serve_threads_that_hold_two_keys)
{
	everybody_is_served("2", "auto", true);
}

Test(pool, one_connection_serves_polling_threads)
{
	everybody_is_served("1", "off", false);
}

/* A process that waits on its only connection must still be able to release a lock that another
 * process waits for. */
static int run_process(const char *max_connections)
{
	struct crew c = {.b = client_open(&world, OPTIONS("max_connections", max_connections)),
	                 .nested = true};

	run_crew(&c);
	bizlock_close(c.b);
	return atomic_load(&c.errors) || atomic_load(&c.overlaps);
}

static void processes_share(const char *max_connections)
{
	pid_t pids[3];
	int status;

	for (int i = 0; i < 3; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(run_process(max_connections));
	}
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(waitpid(pids[i], &status, 0), pids[i]);
		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
	}
}

Test(pool, processes_with_one_connection_each_do_not_block_each_other)
{
	processes_share("1");
}

Test(pool, processes_with_two_connections_each_do_not_block_each_other)
{
	processes_share("2");
}

static long long connections(void)
{
	return db_number(world.admin,
	                 "SELECT COUNT(*) FROM information_schema.PROCESSLIST"
	                 " WHERE DB = '%s' AND ID <> CONNECTION_ID()",
	                 world.schema);
}

static void *watch(void *arg)
{
	struct crew *c = arg;

	run_crew(c);
	return NULL;
}

Test(pool, it_never_has_more_connections_than_it_may)
{
	struct crew c = {.b = client(OPTIONS("max_connections", "3"))};
	pthread_t thread;
	long long most = 0;

	if (pthread_create(&thread, NULL, watch, &c) != 0)
		die("no thread");
	while (atomic_load(&c.rounds) < THREADS * ROUNDS) {
		long long now = connections();

		most = now > most ? now : most;
	}
	pthread_join(thread, NULL);
	cr_assert(most >= 1 && most <= 3, "%lld connections", most);
}

/* A wait for a connection ends in time, like any other. */
Test(pool, a_wait_behind_a_busy_connection_ends_in_time)
{
	bizlock *a = client(NULL), *b = client(OPTIONS("max_connections", "1"));
	struct call first;
	int64_t start;

	expect(OK, a, acquire(a, "k", .lease_ms = 60000));
	call_start(&first, b, "k", .wait_ms = -1, .owner = "task-1");
	call_blocks(&first);
	start = now_ms();
	expect(TIMEOUT, b, acquire(b, "k", .wait_ms = 500));
	cr_assert_lt(now_ms() - start, 10000);
	expect(OK, b, acquire(b, "other", .wait_ms = 10000));
	expect(OK, b, bizlock_release(b, KEY("other"), NULL, NULL));
	expect(OK, a, bizlock_release(a, KEY("k"), NULL, NULL));
	cr_assert_eq(call_join(&first), BIZLOCK_OK, "%s", first.errmsg);
}
