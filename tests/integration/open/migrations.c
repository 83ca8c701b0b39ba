/* bizlock_each_migration() shows what was applied and what would be run, and changes nothing. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_test.h"

TestSuite(migrations, .init = world_begin_empty, .fini = world_end, .timeout = 240);

struct shown {
	unsigned count, stop_after;
	bizlock_migration last;
	char name[64], applied_at[32], *sql; /* sql: of all of them, one after the other */
	bizlock *use;                        /* called from inside, unless NULL */
};

static int see(void *arg, const bizlock_migration *m)
{
	struct shown *s = arg;
	char *sql;

	s->last = *m;
	snprintf(s->name, sizeof(s->name), "%s", m->name);
	snprintf(s->applied_at, sizeof(s->applied_at), "%s", m->applied_at);
	sql = s->sql;
	if (asprintf(&s->sql, "%s%s", sql ? sql : "", m->sql) < 0)
		die("out of memory");
	free(sql);
	if (s->use)
		works(s->use);
	return ++s->count == s->stop_after;
}

/* The last migration shown; `count` must be shown. */
static struct shown look(int want, const char *const *options, unsigned count)
{
	struct shown s = {.count = 0};
	bizlock *b = client_new(&world, options);
	int rc = bizlock_each_migration(b, see, &s);

	cr_assert_eq(rc, want, "%s: %s", bizlock_err_name(rc), bizlock_errmsg(b));
	cr_assert_eq(s.count, count);
	bizlock_close(b);
	return s;
}

Test(migrations, before_any_was_applied)
{
	struct shown s = look(BIZLOCK_OK, NULL, 2);

	cr_assert_geq(s.last.size, sizeof(bizlock_migration));
	cr_assert_eq(s.last.version, 2);
	cr_assert_str_eq(s.name, "002_runs.sql");
	cr_assert_str_eq(s.applied_at, "");
	cr_assert_eq(s.last.pending, 1);
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM information_schema.TABLES"
	                                    " WHERE TABLE_SCHEMA = DATABASE()"),
	             0);
	free(s.sql);
}

Test(migrations, after_all_were_applied)
{
	struct shown s;
	char *at;

	world_migrate(&world);
	db_run(world.admin, "SET time_zone = '+00:00'");
	at = db_text(world.admin, "SELECT applied_at FROM biz_lock_schema WHERE version = 2");
	at[strcspn(at, "\n")] = '\0';
	s = look(BIZLOCK_OK, NULL, 2);
	cr_assert_str_eq(s.applied_at, at);
	cr_assert_eq(strlen(s.applied_at), strlen("2026-02-28 09:30:00.123456"));
	cr_assert_eq(s.last.pending, 0);
	free(s.sql);
	free(at);
}

/* The text that is shown is the one that would be run. */
Test(migrations, the_text_makes_the_tables)
{
	struct shown s = look(BIZLOCK_OK, NULL, 2);

	db_run(world.admin, "%s", s.sql);
	works(client(NULL));
	free(s.sql);
	s = look(BIZLOCK_OK, NULL, 2);
	cr_assert_eq(s.last.pending, 0);
	free(s.sql);
}

Test(migrations, the_text_has_the_prefix)
{
	struct shown s = look(BIZLOCK_OK, OPTIONS("table_prefix", "Zz_9"), 2);

	db_run(world.admin, "%s", s.sql);
	works(client(OPTIONS("table_prefix", "Zz_9")));
	free(s.sql);
	s = look(BIZLOCK_OK, OPTIONS("table_prefix", "Zz_9"), 2);
	cr_assert_eq(s.last.pending, 0);
	free(s.sql);
	s = look(BIZLOCK_OK, NULL, 2);
	cr_assert_eq(s.last.pending, 1);
	free(s.sql);
}

/* bizlock_migrate() would apply the migration once more, too. */
Test(migrations, a_dropped_table_makes_it_pending_again)
{
	struct shown s;

	world_migrate(&world);
	db_run(world.admin, "DROP TABLE biz_row_lock");
	s = look(BIZLOCK_OK, NULL, 2);
	cr_assert_str_neq(s.applied_at, "");
	cr_assert_eq(s.last.pending, 1);
	free(s.sql);
	world_migrate(&world);
	db_run(world.admin, "DROP TABLE biz_run");
	s = look(BIZLOCK_OK, NULL, 2);
	cr_assert_eq(s.last.pending, 1);
	free(s.sql);
	world_migrate(&world);
	s = look(BIZLOCK_OK, NULL, 2);
	cr_assert_eq(s.last.pending, 0);
	free(s.sql);
}

static int count_pending(void *arg, const bizlock_migration *m)
{
	*(int *)arg += m->pending;
	return 0;
}

/* And only those are pending that are missing. */
Test(migrations, a_later_migration_is_pending_where_the_first_was_applied)
{
	bizlock *b = client_new(&world, NULL);
	int pending = 0;

	world_migrate(&world);
	db_run(world.admin, "DROP TABLE biz_run; DELETE FROM biz_lock_schema WHERE version = 2");
	works(client(NULL));
	expect(OK, b, bizlock_each_migration(b, count_pending, &pending));
	cr_assert_eq(pending, 1);
	bizlock_close(b);
}

Test(migrations, newer_tables_are_shown_and_complained_of)
{
	struct shown s;

	world_migrate(&world);
	db_run(world.admin, "INSERT INTO biz_lock_schema VALUES (999, 999, UTC_TIMESTAMP(6))");
	s = look(BIZLOCK_SCHEMA, NULL, 2);
	cr_assert_str_neq(s.applied_at, "");
	cr_assert_eq(s.last.pending, 0);
	free(s.sql);
}

Test(migrations, without_a_server)
{
	struct server nowhere = server_over_tcp(world.at, "127.0.0.1", 1);
	struct world w = world_by_way_of(&world, &nowhere);
	struct shown s = {.count = 0};
	bizlock *b = client_new(&w, NULL);

	expect(CONN, b, bizlock_each_migration(b, see, &s));
	cr_assert_eq(s.count, 0);
	bizlock_close(b);
}

Test(migrations, the_callback_may_call_the_library_and_end_the_walk)
{
	struct shown s = {.stop_after = 1};

	world_migrate(&world);
	s.use = client(OPTIONS("max_connections", "1"));
	expect(OK, s.use, bizlock_each_migration(s.use, see, &s));
	cr_assert_eq(s.count, 1);
	free(s.sql);
}

Test(migrations, bad_calls)
{
	bizlock *b = client_new(&world, NULL), *nowhere = NULL;
	struct shown s = {.count = 0};

	expect(INVALID, b, bizlock_each_migration(b, NULL, NULL));
	expect_message(b, "fn");
	cr_assert_eq(bizlock_each_migration(NULL, see, &s), BIZLOCK_INVALID);
	cr_assert_eq(bizlock_new(&nowhere), BIZLOCK_OK);
	expect(INVALID, nowhere, bizlock_each_migration(nowhere, see, &s));
	expect_message(nowhere, "database");
	bizlock_close(nowhere);
	bizlock_close(b);
}
