/* Routines and clients wait for each other. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cr_routines.h"

TestSuite(call_waits, .init = routines_begin, .fini = routines_end, .timeout = 120);

struct waiting {
	pthread_t thread;
	struct granted got;
};

static void *wait_for_k(void *arg)
{
	struct waiting *w = arg;
	MYSQL *db = caller();

	w->got = routine_wait(db, KEY("k"), "web-17", LONG_MS, PATIENCE_MS);
	return NULL;
}

static long long waits_by_call(void)
{
	return db_number(world.admin, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB"
	                              " = DATABASE() AND INFO LIKE '%%lock%%' AND ID <> "
	                              "CONNECTION_ID() AND COMMAND = 'Query'");
}

Test(call_waits, a_routine_waits_for_a_client)
{
	bizlock *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct waiting w;

	expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS, .grant = &grant));
	pthread_create(&w.thread, NULL, wait_for_k, &w);
	eventually(waits_by_call() > 0);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	pthread_join(w.thread, NULL);
	cr_assert_gt(w.got.fence, grant.fence);
}

/* Not only at the next look, which comes after a second: the release ends the sleep of a client.
 * After three sleeps that nobody ended the client would look every 20 ms. */
Test(call_waits, a_release_by_call_wakes_a_client)
{
	struct peer peer = peer_start(&world, NULL);
	MYSQL *db = caller();
	int64_t took = 0;

	for (int i = 0; i < 3; i++) {
		struct granted got = routine_wait(db, KEY("k"), "web-17", LONG_MS, PATIENCE_MS);

		peer_ask_acquire(&peer, "k", .wait_ms = -1, .lease_ms = LONG_MS);
		eventually(shared_sleepers(&world) > 0);
		took -= now_ms();
		cr_assert(routine_release(db, KEY("k"), "web-17", got.fence));
		expect_answer(OK, peer_answer(&peer));
		took += now_ms();
		expect_answer(OK, peer_release(&peer, "k"));
	}
	cr_assert_lt(took, 1500);
	peer_end(&peer);
}

Test(call_waits, a_wait_ends_in_time)
{
	MYSQL *db = caller(), *other = caller();
	int64_t start;
	struct granted got;

	cr_assert_gt(routine_try(other, KEY("k"), "web-18", LONG_MS).fence, 0);
	for (int64_t ms = 0; ms <= 1500; ms += 500) {
		start = now_ms();
		got = routine_wait(db, KEY("k"), "web-17", LONG_MS, ms);
		cr_assert_eq(got.fence, 0);
		cr_assert_str_eq(got.holder, "web-18@sql");
		cr_assert_geq(now_ms() - start, ms - 1);
		cr_assert_lt(now_ms() - start, ms + 10000);
	}
}

/* The holder's lease ends; nobody rings. */
Test(call_waits, the_end_of_a_lease_ends_the_wait)
{
	MYSQL *db = caller(), *other = caller();
	struct granted first = routine_try(other, KEY("k"), "web-18", 1500);

	cr_assert_gt(routine_wait(db, KEY("k"), "web-17", LONG_MS, PATIENCE_MS).fence, first.fence);
}

/* A row that a session has locked costs a call a second, not innodb_lock_wait_timeout. */
Test(call_waits, a_locked_row_is_not_waited_for)
{
	MYSQL *db = caller(), *locker = caller();
	struct granted got = routine_try(db, KEY("k"), "web-18", 100);
	int64_t start;

	lease_is_over("k");
	db_run(locker, "START TRANSACTION; SELECT * FROM biz_lock FOR UPDATE");
	start = now_ms();
	cr_assert_eq(routine_try(db, KEY("k"), "web-17", LONG_MS).fence, 0);
	expect_refused(db, "HY000", "timeout",
	               "CALL biz_lock_renew('test', 'k', 'web-18', %llu, 1000, @ok)",
	               (unsigned long long)got.fence);
	cr_assert_lt(now_ms() - start, 20000);
	db_run(locker, "ROLLBACK");
	cr_assert_gt(routine_try(db, KEY("k"), "web-17", LONG_MS).fence, got.fence);
}

/* It stands in line, and would take the lock for a program that is not there any more. */
Test(call_waits, a_program_that_died_waiting_never_has_the_lock)
{
	MYSQL *db = caller(), *other = caller();
	struct granted first = routine_try(other, KEY("k"), "web-18", LONG_MS);
	pid_t child = fork();

	if (child == 0) {
		routine_wait(caller(), KEY("k"), "dead", LONG_MS, PATIENCE_MS);
		_exit(0);
	}
	eventually(waits_by_call() > 0);
	kill(child, SIGKILL);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	cr_assert(routine_release(other, KEY("k"), "web-18", first.fence));
	cr_assert_gt(routine_wait(db, KEY("k"), "web-17", LONG_MS, PATIENCE_MS).fence, first.fence);
}

/* Else others would have to pass it. */
Test(call_waits, the_place_in_line_is_given_up_with_the_try)
{
	MYSQL *db = caller();
	bizlock *b = client(NULL);
	struct granted got;

	db_run(db, "CALL biz_lock_wait('test', 'k', 100)");
	db_run(db, "CALL biz_lock_wait('test', 'k', 100)");
	got = routine_try(db, KEY("k"), "web-17", LONG_MS);
	cr_assert_gt(got.fence, 0);
	db_run(db, "CALL biz_lock_wait('test', 'k', 100)");
	cr_assert(routine_release(db, KEY("k"), "web-17", got.fence));
	expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
	cr_assert_gt(db_number(db, "SELECT COUNT(*) FROM biz_lock WHERE bell > 0"), 0);
}
