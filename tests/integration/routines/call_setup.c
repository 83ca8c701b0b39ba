/* Making, granting, looking at and dropping the routines. */
#include <bizlock_ops.h>
#include <stdio.h>

#include "cr_findings.h"
#include "cr_routines.h"

TestSuite(call_setup, .init = world_begin, .fini = routines_end, .timeout = 120);

#define PASSWORD "some.Word-7"

static MYSQL *open_user(void)
{
	struct server at = world.at;

	snprintf(at.user, sizeof(at.user), "%s", world.schema);
	snprintf(at.password, sizeof(at.password), "%s", PASSWORD);
	return db_open(&at, world.schema);
}

static void make_user(const char *const *options)
{
	bizlock *b = client_new(&world, options);
	char text[4096];

	db_run(world.admin, "CREATE USER '%s'@'%%' IDENTIFIED BY '" PASSWORD "'", world.schema);
	expect(OK, b, bizlock_grants_routines(b, world.schema, text, sizeof(text), NULL));
	db_run(world.admin, "%s", text);
	bizlock_close(b);
}

static long long routines(const char *schema)
{
	return db_number(world.admin,
	                 "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = "
	                 "'%s'",
	                 schema);
}

static long long views(const char *schema)
{
	return db_number(world.admin,
	                 "SELECT COUNT(*) FROM information_schema.VIEWS WHERE TABLE_SCHEMA = '%s'",
	                 schema);
}

Test(call_setup, a_user_needs_no_privilege_on_tables)
{
	MYSQL *db;
	struct granted got;
	bizlock *b = client(NULL);

	world_migrate_routines(&world);
	make_user(NULL);
	db = open_user();
	got = routine_wait(db, KEY("k"), "web-17", LONG_MS, 1000);
	cr_assert_gt(got.fence, 0);
	cr_assert_eq(db_number(db, "SELECT COUNT(*) FROM biz_locks WHERE biz_id = 'k' AND owner = "
	                           "'web-17@sql' AND left_ms > 0"),
	             1);
	expect(BUSY, b, acquire(b, "k"));
	cr_assert(routine_renew(db, KEY("k"), "web-17", got.fence, LONG_MS));
	cr_assert(!db_try(db, "SELECT * FROM biz_lock"));
	cr_assert(!db_try(db, "DELETE FROM biz_locks"));
	cr_assert(!db_try(db, "CALL biz_lock_wake('x')"));
	cr_assert(routine_release(db, KEY("k"), "web-17", got.fence));
	works(b);
	mysql_close(db);
	db_run(world.admin, "DROP USER '%s'@'%%'", world.schema);
}

/* docs/languages.md says which privileges those are. */
Test(call_setup, the_definer_needs_the_privileges_that_are_told)
{
	const char *const *options = OPTIONS("user", world.schema, "password", PASSWORD);
	bizlock *b = client_new(&world, NULL), *definer;
	char text[4096];
	MYSQL *db;
	struct granted got;

	db_run(world.admin, "CREATE USER '%s'@'%%' IDENTIFIED BY '" PASSWORD "'", world.schema);
	expect(OK, b, bizlock_grants(b, world.schema, text, sizeof(text), NULL));
	db_run(world.admin, "%s", text);
	db_run(world.admin,
	       "GRANT CREATE ROUTINE, ALTER ROUTINE, CREATE VIEW, DROP ON %s.* TO '%s'@'%%'",
	       world.schema, world.schema);
	bizlock_close(b);
	definer = client_new(&world, options);
	expect(OK, definer, bizlock_migrate_routines(definer));
	expect(OK, definer, bizlock_migrate_routines(definer));
	db = caller();
	got = routine_wait(db, KEY("k"), "web-17", LONG_MS, 1000);
	cr_assert_gt(got.fence, 0);
	cr_assert(routine_release(db, KEY("k"), "web-17", got.fence));
	expect(OK, definer, bizlock_drop_routines(definer));
	bizlock_close(definer);
	db_run(world.admin, "DROP USER '%s'@'%%'", world.schema);
}

Test(call_setup, they_are_made_and_dropped_as_often_as_one_likes)
{
	bizlock *b = client(NULL);

	for (int i = 0; i < 2; i++) {
		world_migrate_routines(&world);
		cr_assert_gt(routines(world.schema), 0);
		cr_assert_eq(views(world.schema), 1);
	}
	for (int i = 0; i < 2; i++) {
		expect(OK, b, bizlock_drop_routines(b));
		cr_assert_eq(routines(world.schema), 0);
		cr_assert_eq(views(world.schema), 0);
	}
}

Test(call_setup, the_tables_have_to_be_there)
{
	struct world empty;
	bizlock *b;

	world_make(&empty, &world.at);
	b = client_new(&empty, NULL);
	expect(SCHEMA, b, bizlock_migrate_routines(b));
	cr_assert_eq(routines(empty.schema), 0);
	bizlock_close(b);
	world_drop(&empty);
}

Test(call_setup, they_follow_the_prefix)
{
	const char *const *options = OPTIONS("table_prefix", "Zz_9");
	bizlock *b = client_new(&world, options);
	MYSQL *db = caller();

	expect(OK, b, bizlock_migrate(b));
	expect(OK, b, bizlock_migrate_routines(b));
	db_run(db, "CALL Zz_9biz_lock_try('test', 'k', 'web-17', 60000, @f, @h, @l)");
	expect(OK, b, bizlock_open(b));
	expect(BUSY, b, acquire(b, "k"));
	cr_assert_eq(db_number(db, "SELECT COUNT(*) FROM Zz_9biz_locks"), 1);
	make_user(options);
	db = open_user();
	db_run(db, "CALL Zz_9biz_lock_release('test', 'k', 'web-17', 1 + 1, @ok)");
	expect(OK, b, bizlock_drop_routines(b));
	cr_assert_eq(routines(world.schema), 0);
	mysql_close(db);
	bizlock_close(b);
	db_run(world.admin, "DROP USER '%s'@'%%'", world.schema);
}

/* MySQL cannot do that. */
Test(call_setup, mariadb_keeps_privileges_when_they_are_made_anew)
{
	MYSQL *db;

	not_here_unless(!server_is_mysql(world.admin), "MySQL forgets them");
	world_migrate_routines(&world);
	make_user(NULL);
	world_migrate_routines(&world);
	db = open_user();
	cr_assert_gt(routine_try(db, KEY("k"), "web-17", LONG_MS).fence, 0);
	mysql_close(db);
	db_run(world.admin, "DROP USER '%s'@'%%'", world.schema);
}

/* Without comments and with single blanks: command line clients leave some of them out. */
static char *texts_of(const char *schema)
{
	return db_text(world.admin,
	               "SELECT ROUTINE_NAME, SQL_MODE, SECURITY_TYPE, ROUTINE_COMMENT, "
	               "REGEXP_REPLACE(REGEXP_REPLACE(ROUTINE_DEFINITION, '-- [^\\n]*', ''), "
	               "'[[:space:]]+', ' ') FROM information_schema.ROUTINES WHERE "
	               "ROUTINE_SCHEMA = '%s' ORDER BY 1",
	               schema);
}

static void apply_by_client(const char *schema)
{
	const char *folder = getenv("BIZLOCK_SQL_DIR"), *program = "mariadb";
	char command[1024];

	if (server_is_mysql(world.admin))
		program = "mysql";
	setenv("MYSQL_PWD", world.at.password, 1);
	if (world.at.socket[0])
		snprintf(command, sizeof(command), "%s -u%s -S%s %s <%s/routines.sql", program,
		         world.at.user, world.at.socket, schema, folder);
	else
		snprintf(command, sizeof(command),
		         "%s -u%s -h%s -P%u --protocol=tcp %s <%s/routines.sql", program,
		         world.at.user, world.at.host, world.at.port, schema, folder);
	cr_assert_eq(system(command), 0, "%s", command);
}

Test(call_setup, the_file_and_migrate_make_the_same_routines)
{
	struct world by_file;
	char *mine, *its;

	skip_unless(getenv("BIZLOCK_SQL_DIR"), "BIZLOCK_SQL_DIR is not set");
	world_make(&by_file, &world.at);
	world_migrate(&by_file);
	world_migrate_routines(&world);
	for (int i = 0; i < 2; i++)
		apply_by_client(by_file.schema);
	mine = texts_of(world.schema);
	its = texts_of(by_file.schema);
	cr_assert_str_eq(its, mine);
	cr_assert_eq(views(by_file.schema), 1);
	free(mine);
	free(its);
	world_drop(&by_file);
}

Test(call_setup, the_doctor_knows_old_ones)
{
	struct findings f = doctor_of(&world, NULL, BIZLOCK_OK);

	cr_assert_null(finding_of(&f, "routines"));
	world_migrate_routines(&world);
	f = doctor_of(&world, NULL, BIZLOCK_OK);
	expect_finding(&f, "routines", BIZLOCK_GOOD, "all of this library; they run as ");
	db_run(world.admin, "ALTER PROCEDURE biz_lock_try COMMENT 'bizlock routines 0'");
	f = doctor_of(&world, NULL, BIZLOCK_OK);
	expect_finding(&f, "routines", BIZLOCK_WARN, "not all of this library");
}

static int note(void *arg, const bizlock_info *info)
{
	bizlock_info *ret = arg;
	static char owner[192];

	snprintf(owner, sizeof(owner), "%s", info->owner);
	*ret = *info;
	ret->owner = owner;
	return 0;
}

Test(call_setup, holders_are_listed_and_reaped)
{
	bizlock *b = client(NULL);
	bizlock_info info = {.size = sizeof(info)};
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	struct granted got;

	world_migrate_routines(&world);
	got = routine_try(caller(), KEY("k"), "web-17", 1000);
	expect(OK, b, bizlock_each(b, NULL, note, &info));
	cr_assert_str_eq(info.owner, "web-17@sql");
	cr_assert_eq(info.fence, got.fence);
	lease_is_over("k");
	opts.older_than_ms = 1;
	expect(OK, b, bizlock_reap(b, &opts, NULL));
	cr_assert(no_row(&world, KEY("k")));
}
