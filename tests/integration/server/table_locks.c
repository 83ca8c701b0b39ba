/* Tables that another session has locked: a dump, a backup, a change of the schema. */
#define _GNU_SOURCE 1
#include <inttypes.h>
#include <stdio.h>

#include "cr_ask.h"
#include "cr_numbers.h"
#include "cr_test.h"

TestSuite(table_locks, .init = world_begin, .fini = world_end, .timeout = 240);

/* Statements of the server's own wait for whole seconds: a call may be late by one of them, and by
 * what a busy machine takes. A wait that nothing bounds lasts as long as the lock. */
#define LATE_MS 1900

/* Locks the table on a connection of its own; undone when that is closed. */
static MYSQL *lock_tables(const char *how)
{
	MYSQL *db = db_open(&world.at, world.schema);

	db_run(db, "%s", how);
	return db;
}

static int64_t ms_since(int64_t start)
{
	return now_ms() - start;
}

#define READ_LOCK "LOCK TABLES biz_lock READ"
#define WRITE_LOCK "LOCK TABLES biz_lock WRITE"
#define EXPORTED "FLUSH TABLES biz_lock FOR EXPORT"

static void expect_named(bizlock *b)
{
	expect_message(b, world.schema);
	expect_message(b, "is locked by another session");
}

static void a_try_names_the_lock(const char *how, uint32_t flags)
{
	bizlock *b = client(NULL);
	MYSQL *db;
	int64_t start;

	works(b);
	db = lock_tables(how);
	start = now_ms();
	expect(DB, b, acquire_with(b, flags, (struct acquire_args){.id = "k"}));
	cr_assert_lt(ms_since(start), 1000 + LATE_MS, "%s: %lld ms", how,
	             (long long)ms_since(start));
	expect_named(b);
	mysql_close(db);
	works(b);
}

Test(table_locks, a_try_is_told_of_a_read_lock)
{
	a_try_names_the_lock(READ_LOCK, 0);
}

Test(table_locks, a_try_is_told_of_a_write_lock)
{
	a_try_names_the_lock(WRITE_LOCK, 0);
}

Test(table_locks, a_try_is_told_of_an_export)
{
	a_try_names_the_lock(EXPORTED, 0);
}

Test(table_locks, a_try_for_a_shared_lock_is_told_of_it)
{
	a_try_names_the_lock(READ_LOCK, BIZLOCK_SHARED);
	a_try_names_the_lock(WRITE_LOCK, BIZLOCK_SHARED);
}

Test(table_locks, a_try_without_doorbells_is_told_of_it)
{
	a_try_names_the_lock(READ_LOCK, BIZLOCK_NO_QUEUE);
	a_try_names_the_lock(WRITE_LOCK, BIZLOCK_NO_QUEUE);
}

static void a_wait_names_the_lock(const char *how, uint32_t flags)
{
	bizlock *b = client(NULL);
	MYSQL *db;
	int64_t start;

	works(b);
	db = lock_tables(how);
	start = now_ms();
	expect(TIMEOUT, b,
	       acquire_with(b, flags, (struct acquire_args){.id = "k", .wait_ms = 1500}));
	cr_assert_geq(ms_since(start), 1500);
	cr_assert_lt(ms_since(start), 1500 + LATE_MS, "%s: %lld ms", how,
	             (long long)ms_since(start));
	expect_named(b);
	mysql_close(db);
	works(b);
}

Test(table_locks, a_wait_ends_in_time_behind_a_read_lock)
{
	a_wait_names_the_lock(READ_LOCK, 0);
}

Test(table_locks, a_wait_ends_in_time_behind_a_write_lock)
{
	a_wait_names_the_lock(WRITE_LOCK, 0);
}

Test(table_locks, a_wait_for_a_shared_lock_ends_in_time)
{
	a_wait_names_the_lock(READ_LOCK, BIZLOCK_SHARED);
	a_wait_names_the_lock(WRITE_LOCK, BIZLOCK_SHARED);
}

/* An ALTER that waits for a transaction keeps all others waiting behind it. */
Test(table_locks, a_try_behind_an_alter_that_waits_is_told_of_it)
{
	bizlock *b = client(NULL);
	MYSQL *reader = db_open(&world.at, world.schema), *alter = db_open(&world.at, world.schema);
	int64_t start;

	works(b);
	db_run(reader, "BEGIN; SELECT COUNT(*) FROM biz_lock");
	cr_assert_eq(mysql_send_query(alter, "ALTER TABLE biz_lock COMMENT 'x'", 32), 0);
	eventually(db_number(world.admin,
	                     "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE "
	                     "STATE LIKE 'Waiting for table metadata lock' AND ID = %lu",
	                     mysql_thread_id(alter)) > 0);
	start = now_ms();
	expect(DB, b, acquire(b, "k"));
	cr_assert_lt(ms_since(start), 1000 + LATE_MS);
	expect_named(b);
	mysql_close(reader);
	cr_assert_eq(mysql_read_query_result(alter), 0);
	works(b);
	mysql_close(alter);
}

/* It is another holder that is in the way, whatever else is. */
Test(table_locks, a_try_for_a_lock_that_is_held_is_busy)
{
	bizlock *b = client(NULL), *other = client(NULL);
	MYSQL *db;

	works(b);
	expect(OK, other, acquire_as(other, "k", "holder"));
	db = lock_tables(READ_LOCK);
	expect(BUSY, b, acquire(b, "k"));
	expect_message(b, "held by holder@");
	mysql_close(db);
}

Test(table_locks, a_set_is_told_of_it)
{
	bizlock_key keys[] = {KEY("a"), KEY("b"), KEY("c")};
	bizlock_acquire_opts opts = OPTS(.wait_ms = 0);
	bizlock *b = client(NULL);
	MYSQL *db;

	works(b);
	db = lock_tables(WRITE_LOCK);
	expect(DB, b, bizlock_acquire_all(b, keys, 3, &opts, NULL));
	expect_named(b);
	mysql_close(db);
	expect(OK, b, bizlock_acquire_all(b, keys, 3, &opts, NULL));
}

/* Each statement waits for a second: one after the other would make the last request late by as
 * many seconds as there are. */
#define REQUESTS 12

Test(table_locks, requests_do_not_wait_one_after_the_other)
{
	bizlock *b = client(NULL);
	struct ask asks[REQUESTS];
	int64_t start;
	MYSQL *db;

	works(b);
	db = lock_tables(READ_LOCK);
	start = now_ms();
	for (int i = 0; i < REQUESTS; i++) {
		char id[8];

		snprintf(id, sizeof(id), "k%d", i);
		ask_for(&asks[i], b, id, "task", .wait_ms = 1500);
	}
	for (int i = 0; i < REQUESTS; i++)
		ask_ends(TIMEOUT, &asks[i]);
	cr_assert_lt(ms_since(start), REQUESTS * 1000, "%lld ms", (long long)ms_since(start));
	mysql_close(db);
}

/* Each statement of theirs waits for a second, and keeps a connection; so only the first requests
 * send them, and the others ask whether the table is locked. */
Test(table_locks, nor_do_requests_of_several_keys)
{
	enum { SETS = 60 };
	static struct ask_all sets[SETS];
	bizlock *b = client(NULL);
	uint64_t in_vain;
	MYSQL *db;

	works(b);
	db = lock_tables(READ_LOCK);
	for (int i = 0; i < SETS; i++) {
		char prefix[8];

		snprintf(prefix, sizeof(prefix), "k%d", i);
		keyset_make(&sets[i].keys, 3, prefix);
		ask_all_for(&sets[i], b, "task", .wait_ms = 1000);
	}
	for (int i = 0; i < SETS; i++) {
		ask_ends(TIMEOUT, &sets[i].ask);
		cr_assert(strstr(sets[i].ask.errmsg, "is locked by another session"), "%s",
		          sets[i].ask.errmsg);
	}
	in_vain = numbers_of(b).retried_conflict;
	cr_assert_lt(in_vain, SETS / 2, "%" PRIu64 " statements waited in vain", in_vain);
	mysql_close(db);
}

Test(table_locks, a_level_more_is_told_of_it)
{
	bizlock *b = client(NULL);
	int64_t start;
	MYSQL *db;

	expect(OK, b, acquire_as(b, "k", "o"));
	db = lock_tables(READ_LOCK);
	start = now_ms();
	expect(DB, b, acquire_as(b, "k", "o"));
	expect_named(b);
	cr_assert_lt(ms_since(start), 1000 + LATE_MS);
	start = now_ms();
	expect(TIMEOUT, b, acquire_as(b, "k", "o", .wait_ms = 1500));
	expect_named(b);
	cr_assert_lt(ms_since(start), 1500 + LATE_MS);
	mysql_close(db);
	expect(OK, b, bizlock_release(b, KEY("k"), "o", NULL));
}

/* The level is given back here, and the row when it can be. */
Test(table_locks, a_release_is_told_of_it)
{
	bizlock *b = client(OPTIONS("io_timeout_ms", "3000"));
	MYSQL *db;

	expect(OK, b, acquire_as(b, "k", "o"));
	db = lock_tables(READ_LOCK);
	expect(DB, b, bizlock_release(b, KEY("k"), "o", NULL));
	expect_named(b);
	expect(NOT_OWNER, b, bizlock_release(b, KEY("k"), "o", NULL));
	mysql_close(db);
	eventually(!row_of(&world, KEY("k")).there);
}

/* Rows, and not the table: a transaction of the application's has locked the gap. */
Test(table_locks, a_gap_that_is_locked_is_told)
{
	bizlock *b = client(NULL);
	MYSQL *db;

	works(b);
	db = lock_tables("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;"
	                 "BEGIN; SELECT COUNT(*) FROM biz_lock FOR UPDATE");
	expect(DB, b, acquire(b, "k"));
	expect_message(b, "rows of table");
	expect(TIMEOUT, b, acquire(b, "k", .wait_ms = 500));
	expect_message(b, "rows of table");
	mysql_close(db);
	works(b);
}
