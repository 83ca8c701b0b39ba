/* InnoDB counts no deadlock, however many threads want the same keys. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cr_test.h"

TestSuite(deadlocks, .init = world_begin, .fini = world_end, .timeout = 480);

#define THREADS 8
#define RUN_MS 2000

struct crowd {
	bizlock *b;
	unsigned keys;
	int64_t end;
	atomic_uint taken, refused, errors;
};

/* In turn: one try, a wait with a deadline, a wait without. */
static void *contend(void *arg)
{
	static const int64_t waits[] = {0, 5, -1};
	struct crowd *c = arg;

	for (unsigned i = 0; now_ms() < c->end; i++) {
		char id[16];
		int rc;

		snprintf(id, sizeof(id), "k%u", i % c->keys);
		rc = acquire(c->b, id, .wait_ms = waits[i % 3], .lease_ms = 60000);
		if (rc == BIZLOCK_OK)
			rc = bizlock_release(c->b, KEY(id), NULL, NULL);
		if (rc == BIZLOCK_OK)
			atomic_fetch_add(&c->taken, 1);
		else if (rc == BIZLOCK_BUSY || rc == BIZLOCK_TIMEOUT)
			atomic_fetch_add(&c->refused, 1);
		else
			atomic_fetch_add(&c->errors, 1);
	}
	return NULL;
}

/* Threads of one process line up in memory; two clients meet at the server. */
static void none_form(unsigned keys)
{
	struct crowd c[2] = {{.keys = keys}, {.keys = keys}};
	pthread_t threads[THREADS];
	long long before;

	deadlocks_are_counted();
	before = db_deadlocks(world.admin);
	for (int i = 0; i < 2; i++) {
		c[i].b = client(NULL);
		c[i].end = now_ms() + RUN_MS;
	}
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, contend, &c[i % 2]) != 0)
			die("no thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(atomic_load(&c[i].errors), 0, "%s", bizlock_errmsg(c[i].b));
		cr_assert_gt(atomic_load(&c[i].taken), 0);
	}
	cr_assert_eq(db_deadlocks(world.admin) - before, 0);
	cr_assert_eq(all_rows(&world), 0);
}

Test(deadlocks, none_form_on_one_key)
{
	none_form(1);
}

Test(deadlocks, none_form_on_four_keys)
{
	none_form(4);
}

/* A test of the counter itself: two transactions that cross are counted. */
Test(deadlocks, the_counter_counts)
{
	MYSQL *other = db_open(&world.at, world.schema);
	long long before;
	pid_t pid;
	int status;

	deadlocks_may_happen();
	db_run(world.admin, "CREATE TABLE t (id INT PRIMARY KEY, n INT) ENGINE=InnoDB;"
	                    "INSERT INTO t VALUES (1, 0), (2, 0)");
	before = db_deadlocks(world.admin);
	db_run(world.admin, "START TRANSACTION; UPDATE t SET n = 1 WHERE id = 1");
	db_run(other, "START TRANSACTION; UPDATE t SET n = 2 WHERE id = 2");
	pid = fork();
	if (pid == 0)
		_exit(db_try(other, "UPDATE t SET n = 2 WHERE id = 1"));
	if (!db_try(world.admin, "UPDATE t SET n = 1 WHERE id = 2"))
		db_run(world.admin, "ROLLBACK");
	db_try(world.admin, "COMMIT");
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_gt(db_deadlocks(world.admin), before);
	mysql_close(other);
}
