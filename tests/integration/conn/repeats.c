/* The numbers of statements that are sent again, and of connections that are opened again. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <string.h>

#include "cr_keyset.h"
#include "cr_numbers.h"
#include "cr_test.h"

TestSuite(repeats, .init = world_begin, .fini = world_end, .timeout = 240);

/* A foreign transaction locks the row of "k". */
static void occupy_row(void)
{
	db_run(world.admin,
	       "START TRANSACTION;"
	       "INSERT INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout, gmt_create,"
	       " gmt_modified) VALUES ('k', 'test', 'nobody', 1, UTC_TIMESTAMP(6),"
	       " UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)) ON DUPLICATE KEY UPDATE note = 'occupied'");
}

/* Ends a running statement like this, or (what "") its connection. False: there is none. */
static bool kill_statement(const char *what, const char *like)
{
	char *id = db_text(world.admin,
	                   "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = '%s'"
	                   " AND ID <> CONNECTION_ID() AND INFO LIKE '%s'",
	                   world.schema, like);
	bool found = id[0] && db_try(world.admin, "KILL %s %s", what, id);

	free(id);
	return found;
}

Test(repeats, a_contender_that_meets_a_locked_row)
{
	bizlock *b = client(NULL);
	bizlock_numbers n = numbers_of(b);
	struct call call;

	occupy_row();
	call_start(&call, b, "k", .wait_ms = -1, .owner = "task-1");
	eventually(numbers_of(b).retried_conflict > n.retried_conflict);
	db_run(world.admin, "ROLLBACK");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	n.retried_conflict = numbers_of(b).retried_conflict;
	expect_moved(b, &n, "held+1 acquired+1 waits+1");
}

/* As if it had been ended between its row, which is gone then, and its doorbell. */
static void release_is_ended(const char *error)
{
	static const char from[] = "DO RELEASE_LOCK(?),IS_USED_LOCK(INSERT(?,1,7,'bizwat0'))/0,"
	                           "IS_USED_LOCK(INSERT(?,1,7,'bizwat1'))/0";
	static char to[sizeof(from)];
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	int len;

	not_here_unless(!server_is_mysql(world.admin), "compound statements are MariaDB's");
	len = snprintf(to, sizeof(to), "SIGNAL SQLSTATE '70100' SET MYSQL_ERRNO=%s;DO ?,?,?",
	               error);
	memset(to + len, ' ', sizeof(to) - 1 - (size_t)len);
	works(b); /* the next release is prepared */
	proxy_replace(p, from, to);
	expect(OK, b, acquire_as(b, "k", "task"));
	expect(OK, b, bizlock_release(b, KEY("k"), "task", NULL));
	cr_assert_eq(rows(), 0);
	cr_assert_gt(numbers_of(b).retried_lost, 0);
	proxy_stop(p);
}

Test(repeats, a_release_that_is_stopped_behind_its_row)
{
	release_is_ended("1317");
}

Test(repeats, a_release_whose_connection_is_killed_behind_its_row)
{
	release_is_ended("1927");
}

Test(repeats, a_release_whose_server_leaves_behind_its_row)
{
	release_is_ended("1053");
}

Test(repeats, a_set_that_meets_a_locked_row)
{
	bizlock *b = client(NULL);
	bizlock_numbers n = numbers_of(b);
	struct keyset s;
	struct call call;

	keyset_make(&s, 2, "k");
	s.keys[0].biz_id = "k";
	occupy_row();
	call_start_all(&call, b, &s, .wait_ms = -1, .owner = "task-1");
	eventually(numbers_of(b).retried_conflict > n.retried_conflict);
	db_run(world.admin, "ROLLBACK");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	n.retried_conflict = numbers_of(b).retried_conflict;
	expect_moved(b, &n, "held+2 acquired+2 waits+2");
}

Test(repeats, a_holder_that_meets_a_locked_row)
{
	bizlock *b = client(NULL);
	bizlock_numbers n;
	struct call call;

	expect(OK, b, acquire_as(b, "k", "task-1"));
	n = numbers_of(b);
	occupy_row();
	call_start(&call, b, "k", .wait_ms = -1, .owner = "task-1");
	eventually(numbers_of(b).retried_conflict > n.retried_conflict);
	db_run(world.admin, "ROLLBACK");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	n.retried_conflict = numbers_of(b).retried_conflict;
	expect_moved(b, &n, "reentered+1");
}

/* The statement's lock wait of a second may end first; that is counted in another number. */
Test(repeats, a_statement_ended_from_outside)
{
	bizlock *b = client(NULL);
	bizlock_numbers n;
	struct call call;

	expect(OK, b, acquire_as(b, "k", "task-1"));
	n = numbers_of(b);
	occupy_row();
	call_start(&call, b, "k", .wait_ms = -1, .owner = "task-1");
	eventually((kill_statement("QUERY", "UPDATE%"), numbers_of(b).retried_stopped > 0));
	db_run(world.admin, "ROLLBACK");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	n.retried_stopped = numbers_of(b).retried_stopped;
	n.retried_conflict = numbers_of(b).retried_conflict;
	expect_moved(b, &n, "reentered+1");
}

Test(repeats, a_connection_lost_while_waiting)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_numbers n = numbers_of(b);
	struct call call;

	expect(OK, a, acquire_as(a, "k", "holder"));
	call_start(&call, b, "k", .wait_ms = -1, .owner = "task-1");
	eventually(doorbell_waiters(&world) == 1);
	eventually(kill_statement("", "SELECT%GET_LOCK%"));
	eventually(numbers_of(b).reconnects == 1 && doorbell_waiters(&world) == 1);
	expect_moved(b, &n, "retried_lost+1 reconnects+1");
	expect(OK, a, bizlock_release(a, KEY("k"), "holder", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	expect_moved(b, &n, "held+1 acquired+1 waits+1");
}

/* No statement was sent twice: the end of the connection was seen before one was sent. */
Test(repeats, a_connection_lost_while_idle)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	bizlock_numbers n;

	works(b);
	n = numbers_of(b);
	for (int i = 0; i < 2; i++) {
		proxy_cut(p);
		works(b);
		expect_moved(b, &n, "acquired+1 released+1 reconnects+1 waits+1");
	}
	proxy_stop(p);
}

/* While the server is away nothing can be repeated. */
Test(repeats, connections_that_cannot_be_had)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("io_timeout_ms", "1000"));
	bizlock_numbers n;

	works(b);
	n = numbers_of(b);
	proxy_stop(p);
	expect(CONN, b, acquire(b, "k"));
	expect_moved(b, &n, "");
}

/* The first answer was lost. An error of the second attempt says nothing about the first. */
Test(repeats, that_end_in_another_error_leave_it_unknown)
{
	struct fault fault = {.what = FAULT_SWALLOW, .side = FAULT_REPLIES};
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("io_timeout_ms", "1000"));
	struct call call;

	for (int i = 0; i < 3; i++)
		expect(OK, b, acquire_as(b, "k", "task-1"));
	proxy_arm(p, &fault);
	call_start(&call, b, "k", .wait_ms = 5000, .owner = "task-1");
	eventually(row_of(&world, KEY("k")).depth == 4);
	db_run(world.admin, "RENAME TABLE biz_lock TO hidden");
	cr_assert_eq(call_join(&call), BIZLOCK_UNKNOWN, "%s: %s", bizlock_err_name(call.rc),
	             call.errmsg);
	db_run(world.admin, "RENAME TABLE hidden TO biz_lock");
	proxy_stop(p);
}
