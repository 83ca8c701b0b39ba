/* Calls inside transactions, and in sessions with settings of their own. */
#include "cr_routines.h"

TestSuite(call_tx, .init = routines_begin, .fini = routines_end, .timeout = 120);

Test(call_tx, a_lock_is_seen_when_the_transaction_is_committed)
{
	MYSQL *db = caller();
	bizlock *b = client(NULL);
	struct granted got;

	db_run(db, "START TRANSACTION");
	got = routine_try(db, KEY("k"), "web-17", LONG_MS);
	cr_assert_gt(got.fence, 0);
	cr_assert_eq(locks_there(&world), 0);
	cr_assert_neq(acquire(b, "k"), BIZLOCK_OK);
	db_run(db, "COMMIT");
	cr_assert_eq(locks_there(&world), 1);
	expect(BUSY, b, acquire(b, "k"));
	cr_assert(routine_release(db, KEY("k"), "web-17", got.fence));
	works(b);
}

Test(call_tx, a_rollback_undoes_it)
{
	MYSQL *db = caller();
	bizlock *b = client(NULL);

	db_run(db, "START TRANSACTION");
	cr_assert_gt(routine_try(db, KEY("k"), "web-17", LONG_MS).fence, 0);
	db_run(db, "ROLLBACK");
	works(b);
}

Test(call_tx, a_release_is_seen_when_the_transaction_is_committed)
{
	MYSQL *db = caller();
	bizlock *b = client(NULL);
	struct granted got = routine_try(db, KEY("k"), "web-17", LONG_MS);

	db_run(db, "START TRANSACTION");
	cr_assert(routine_release(db, KEY("k"), "web-17", got.fence));
	expect(BUSY, b, acquire(b, "k"));
	db_run(db, "ROLLBACK");
	cr_assert_eq(row_of(&world, KEY("k")).fence, got.fence);
	db_run(db, "START TRANSACTION");
	cr_assert(routine_release(db, KEY("k"), "web-17", got.fence));
	db_run(db, "COMMIT");
	works(b);
}

/* The transaction would see neither that the sharers have left, nor be seen by those that come. */
Test(call_tx, nothing_is_taken_over)
{
	MYSQL *db = caller();

	routine_try(db, KEY("k"), "web-18", 100);
	lease_is_over("k");
	db_run(db, "START TRANSACTION");
	expect_refused(db, "45000", "COMMIT first",
	               "CALL biz_lock_try('test', 'k', 'web-17', 1000, @f, @h, @l)");
	expect_refused(db, "45000", "COMMIT first", "CALL biz_lock_wait('test', 'k', 100)");
	db_run(db, "COMMIT");
	cr_assert_gt(routine_try(db, KEY("k"), "web-17", LONG_MS).fence, 0);
}

/* The snapshot of the transaction is older than the hold. If its row stayed locked until the
 * transaction ends, the holder could not renew it. */
Test(call_tx, a_holder_that_it_does_not_see_keeps_its_lock)
{
	MYSQL *db = caller();
	bizlock *b = client(OPTIONS("queue", "off"));

	db_run(db, "CREATE TABLE t (a INT) ENGINE=InnoDB");
	db_run(db, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
	db_run(db, "START TRANSACTION; SELECT COUNT(*) FROM biz_lock; INSERT INTO t VALUES (1)");
	expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
	expect_refused(db, "40001", "rolled back",
	               "CALL biz_lock_try('test', 'k', 'web-17', 1000, @f, @h, @l)");
	expect(OK, b, bizlock_renew(b, KEY("k"), NULL, LONG_MS));
	cr_assert_eq(db_number(db, "SELECT COUNT(*) FROM t"), 0);
	cr_assert_eq(routine_try(db, KEY("k"), "web-17", LONG_MS).fence, 0);
}

/* As connectors leave it that begin transactions by themselves. */
Test(call_tx, without_autocommit_a_call_that_begins_nothing_is_committed)
{
	MYSQL *db = caller();
	bizlock *b = client(NULL);
	struct granted got;

	db_run(db, "SET autocommit = 0");
	got = routine_try(db, KEY("k"), "web-17", LONG_MS);
	cr_assert_eq(locks_there(&world), 1);
	expect(BUSY, b, acquire(b, "k"));
	cr_assert(routine_renew(db, KEY("k"), "web-17", got.fence, LONG_MS));
	cr_assert(routine_release(db, KEY("k"), "web-17", got.fence));
	works(b);
}

/* ---- settings ---------------------------------------------------------------------------- */

static char *settings(MYSQL *db)
{
	return db_text(db, "SELECT @@innodb_lock_wait_timeout, @@lock_wait_timeout, @@sql_mode, "
	                   "@@autocommit, LAST_INSERT_ID()");
}

static void keeps_settings(MYSQL *db, const char *call)
{
	char *before, *after;

	db_run(db, "SET innodb_lock_wait_timeout = 17, lock_wait_timeout = 18");
	db_run(db, "DO LAST_INSERT_ID(4711)");
	before = settings(db);
	db_try(db, "%s", call);
	after = settings(db);
	cr_assert_str_eq(after, before, "%s", call);
	free(before);
	free(after);
}

Test(call_tx, a_session_keeps_its_settings)
{
	MYSQL *db = caller();

	keeps_settings(db, "CALL biz_lock_try('test', 'k', 'web-17', 60000, @f, @h, @l)");
	keeps_settings(db, "CALL biz_lock_try('test', 'k', 'web-17', 60000, @f2, @h, @l)");
	keeps_settings(db, "CALL biz_lock_try('test', 'k', 'a b', 60000, @f2, @h, @l)");
	keeps_settings(db, "CALL biz_lock_wait('test', 'k', 10)");
	keeps_settings(db, "CALL biz_lock_renew('test', 'k', 'web-17', @f, 60000, @ok)");
	keeps_settings(db, "CALL biz_lock_release('test', 'k', 'web-17', @f, @ok)");
	keeps_settings(db, "CALL biz_lock_release('test', 'k', 'web-17', 0, @ok)");
}

/* The level of the next transaction is the session's, whatever a call has begun and not used. */
Test(call_tx, the_next_transaction_has_the_isolation_of_the_session)
{
	MYSQL *db = caller();

	db_run(db, "CREATE TABLE t (a INT) ENGINE=InnoDB");
	for (int i = 0; i < 5; i++) {
		static const char *const calls[] = {
		        "CALL biz_lock_wait('test', 'k', 10)",
		        "CALL biz_lock_try('test', 'k', 'web-17', 60000, @f, @h, @l)",
		        "CALL biz_lock_wait('test', 'k', 10)",
		        "CALL biz_lock_try('test', 'k', 'a b', 60000, @f, @h, @l)",
		        "CALL biz_lock_renew('test', 'k', 'web-17', -1, 60000, @ok)"};

		db_try(db, "%s", calls[i]);
		db_run(db, "START TRANSACTION; SELECT COUNT(*) FROM t");
		db_run(world.admin, "INSERT INTO t VALUES (1)");
		cr_assert_eq(db_number(db, "SELECT COUNT(*) FROM t"), i, "%s", calls[i]);
		db_run(db, "COMMIT");
	}
}

/* A clock of the session's own must end no lease of others. */
Test(call_tx, the_clock_is_the_servers)
{
	MYSQL *db = caller();
	bizlock *b = client(NULL);

	expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
	db_run(db, "SET timestamp = 4000000000 DIV 2");
	cr_assert_eq(routine_try(db, KEY("k"), "web-17", LONG_MS).fence, 0);
	db_run(db, "SET timestamp = 1");
	cr_assert_gt(routine_try(db, KEY("other"), "web-17", LONG_MS).fence, 0);
	expect(BUSY, b, acquire(b, "other"));
}

Test(call_tx, settings_of_the_session_do_not_matter)
{
	static const char *const odd[] = {
	        "SET sql_mode = ''",
	        "SET sql_mode = 'ANSI'",
	        "SET completion_type = 'CHAIN'",
	        "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
	        "SET SESSION TRANSACTION READ ONLY",
	        "SET sql_safe_updates = 1",
	        "SET sql_select_limit = 0",
	        "SET unique_checks = 0",
	        "SET time_zone = '+05:30'",
	        "SET NAMES latin1",
	        "SET collation_connection = utf8mb4_general_ci",
	};
	bizlock *b = client(NULL);

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		MYSQL *db = caller();

		db_run(db, "%s", odd[i]);
		db_run(db, "CALL biz_lock_try('test', 'k', 'web-17', 60000, @f, @h, @l)");
		expect(BUSY, b, acquire(b, "k"));
		db_run(db, "CALL biz_lock_renew('test', 'k', 'web-17', @f, 60000, @ok)");
		db_run(db, "CALL biz_lock_release('test', 'k', 'web-17', @f, @released)");
		works(b);
	}
}

/* As Java's connectors ask for them. */
Test(call_tx, found_rows_are_not_taken_for_changed_ones)
{
	MYSQL *db = db_connect(&world.at, world.schema, CLIENT_FOUND_ROWS, 0);
	struct granted got = routine_try(db, KEY("k"), "web-17", 100);

	lease_is_over("k");
	cr_assert(!routine_renew(db, KEY("k"), "web-17", got.fence, LONG_MS));
	cr_assert_eq(routine_wait(db, KEY("k"), "web-18", LONG_MS, 1000).fence,
	             row_of(&world, KEY("k")).fence);
	cr_assert(!routine_release(db, KEY("k"), "web-17", got.fence));
	cr_assert_eq(routine_try(db, KEY("k"), "web-17", LONG_MS).fence, 0);
	mysql_close(db);
}
