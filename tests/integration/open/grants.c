/* The privileges that bizlock_grants() writes are enough for everything that bizlock does, and for
 * nothing else. */
#define _GNU_SOURCE 1
#include <bizlock_tx.h>
#include <stdio.h>

#include "cr_test.h"

#define PASSWORD "c0rrect-horse"

static void end_user(void)
{
	db_run(world.admin, "DROP USER IF EXISTS '%s'@'%%', '%s'@'localhost'", world.schema,
	       world.schema);
	world_end();
}

TestSuite(grants, .init = world_begin, .fini = end_user, .timeout = 240);

/* To be freed. */
static char *grants_for(const char *const *options, const char *user)
{
	bizlock *b = client_new(&world, options);
	char *text = malloc(4096);
	size_t len = 0;

	expect(OK, b, bizlock_grants(b, user, text, 4096, &len));
	cr_assert_eq(len, strlen(text));
	bizlock_close(b);
	return text;
}

/* A user named like the schema, with these privileges only. It is made for two hosts, because an
 * anonymous local user would come before the first. */
static void make_user(const char *const *options)
{
	static const char *const hosts[] = {"%", "localhost"};

	for (int i = 0; i < 2; i++) {
		char name[64], *text;

		snprintf(name, sizeof(name), i ? "%s@%s" : "%s", world.schema, hosts[i]);
		db_run(world.admin, "CREATE USER '%s'@'%s' IDENTIFIED BY '" PASSWORD "'",
		       world.schema, hosts[i]);
		text = grants_for(options, name);
		db_run(world.admin, "%s", text);
		free(text);
	}
}

static bizlock *client_of_user(const char *const *more)
{
	const char *options[16] = {"user", world.schema, "password", PASSWORD};

	for (int i = 4; more && *more; i++)
		options[i] = *more++;
	return client(options);
}

static int count_row(void *arg, const bizlock_info *info)
{
	(void)info;
	++*(int *)arg;
	return 0;
}

static int count_migration(void *arg, const bizlock_migration *m)
{
	*(int *)arg += m->pending ? 100 : 1;
	return 0;
}

static int count_run(void *arg, const bizlock_run *run)
{
	(void)run;
	++*(int *)arg;
	return 0;
}

static void records_a_run(bizlock *b)
{
	bizlock_run_result result = BIZLOCK_RUN_RESULT_INIT;
	int rows = 0;

	expect(OK, b, bizlock_run_begin(b, KEY("k"), NULL));
	expect(OK, b, bizlock_run_end(b, KEY("k"), NULL, &result));
	expect(OK, b, bizlock_each_run(b, NULL, NULL, count_run, &rows));
	cr_assert_eq(rows, 1);
}

static void uses_locks(bizlock *b)
{
	bizlock_key keys[] = {KEY("a"), KEY("b")};
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	char ticket[BIZLOCK_EXPORT_MAX];
	int rows = 0;

	expect(OK, b, acquire(b, "k", .grant = &grant));
	expect(OK, b, acquire(b, "k"));
	expect(OK, b, bizlock_renew(b, KEY("k"), NULL, 0));
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	expect(OK, b, bizlock_each(b, NULL, count_row, &rows));
	cr_assert_eq(rows, 1);
	records_a_run(b);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(OK, b, bizlock_export(b, KEY("k"), NULL, ticket, sizeof(ticket)));
	expect(OK, b, bizlock_import(b, ticket, "task-1", NULL));
	expect(OK, b, bizlock_break(b, KEY("k"), grant.fence));
	expect(LOST, b, bizlock_release(b, KEY("k"), "task-1", NULL));
	expect(OK, b, bizlock_acquire_all(b, keys, 2, NULL, NULL));
	expect(OK, b, bizlock_release_all(b, keys, 2, NULL));
}

static void uses_transactions(bizlock *b)
{
	struct server at = world.at;
	MYSQL *tx;

	snprintf(at.user, sizeof(at.user), "%s", world.schema);
	snprintf(at.password, sizeof(at.password), "%s", PASSWORD);
	tx = db_open(&at, world.schema);
	db_run(tx, "START TRANSACTION");
	expect(OK, b, acquire(b, "k"));
	expect(OK, b, bizlock_row_lock(b, KEY("k"), tx, 0));
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	expect(OK, b, bizlock_commit(b, KEY("k"), NULL, tx));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	mysql_close(tx);
}

static void uses_everything(bizlock *b)
{
	bizlock *admin = client(NULL);
	struct call call;
	int migrations = 0;

	uses_locks(b);
	uses_transactions(b);
	expect(OK, b, bizlock_each_migration(b, count_migration, &migrations));
	cr_assert_eq(migrations, 2);
	expect(OK, admin, acquire_as(admin, "k", "task-1"));
	call_start(&call, b, "k", .wait_ms = -1, .owner = "task-2");
	call_blocks(&call);
	expect(OK, admin, bizlock_release(admin, KEY("k"), "task-1", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	expect(OK, b, bizlock_release(b, KEY("k"), "task-2", NULL));
}

Test(grants, they_are_enough_for_everything)
{
	make_user(NULL);
	uses_everything(client_of_user(NULL));
}

/* KILL needs no privilege to end connections of one's own user, such as lost ones and those with
 * stale doorbells. */
Test(grants, they_are_for_nothing_else)
{
	static const char *const refused[] = {
	        "CREATE TABLE other (a INT)",
	        "DROP TABLE biz_lock",
	        "ALTER TABLE biz_lock ADD COLUMN a INT",
	        "INSERT INTO biz_lock_schema VALUES (3, 1, UTC_TIMESTAMP(6))",
	        "DELETE FROM biz_lock_schema",
	        "SELECT * FROM ledger",
	        "SELECT * FROM mysql.user",
	        "TRUNCATE TABLE biz_row_lock",
	        "DELETE FROM biz_run",
	};
	struct server at = world.at;
	MYSQL *db;

	db_run(world.admin, "CREATE TABLE ledger (id INT)");
	make_user(NULL);
	snprintf(at.user, sizeof(at.user), "%s", world.schema);
	snprintf(at.password, sizeof(at.password), "%s", PASSWORD);
	db = db_open(&at, world.schema);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		cr_assert(!db_try(db, "%s", refused[i]), "%s", refused[i]);
	mysql_close(db);
}

Test(grants, they_follow_the_prefix)
{
	bizlock *b = client_new(&world, OPTIONS("table_prefix", "Zz_9"));

	expect(OK, b, bizlock_migrate(b));
	bizlock_close(b);
	make_user(OPTIONS("table_prefix", "Zz_9"));
	uses_locks(client_of_user(OPTIONS("table_prefix", "Zz_9")));
	expect_open(DB, &world, OPTIONS("user", world.schema, "password", PASSWORD), "denied");
}

Test(grants, the_text_is_this)
{
	char *text = grants_for(OPTIONS("database", "shop"), "shop_app");

	cr_assert_str_eq(text, "GRANT SELECT, INSERT, UPDATE, DELETE ON `shop`.`biz_lock` TO"
	                       " `shop_app`@`%`;\n"
	                       "GRANT SELECT, INSERT, UPDATE, DELETE ON `shop`.`biz_row_lock` TO"
	                       " `shop_app`@`%`;\n"
	                       "GRANT SELECT ON `shop`.`biz_lock_schema` TO `shop_app`@`%`;\n"
	                       "GRANT SELECT, INSERT, UPDATE ON `shop`.`biz_run` TO"
	                       " `shop_app`@`%`;\n");
	free(text);
}

/* ---- names that mean something to SQL ---------------------------------------- */

/* The tables that this user has privileges on, with the database's name. */
static long long tables_of(const char *user, const char *host, const char *schema)
{
	return db_number(world.admin,
	                 "SELECT COUNT(*) FROM mysql.tables_priv WHERE BINARY User = %s AND"
	                 " BINARY Host = %s AND BINARY Db = %s",
	                 db_literal(user), db_literal(host), db_literal(schema));
}

/* The identifier in back quotes. Written without the library's function for it. */
static const char *quoted(const char *name)
{
	static char texts[4][512];
	static unsigned next;
	char *text = texts[next++ % 4];
	size_t len = 0;

	text[len++] = '`';
	for (; *name; name++) {
		if (*name == '`')
			text[len++] = '`';
		text[len++] = *name;
	}
	text[len++] = '`';
	text[len] = '\0';
	return text;
}

static void is_granted_to(const char *user, const char *host)
{
	static const char *const modes[] = {"", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES"};
	char account[256], *text;

	snprintf(account, sizeof(account), "%s@%s", user, host);
	text = grants_for(NULL, account);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		db_run(world.admin, "SET sql_mode = '%s'", modes[i]);
		db_run(world.admin, "CREATE USER %s@%s", quoted(user), quoted(host));
		db_run(world.admin, "%s", text);
		cr_assert_eq(tables_of(user, host, world.schema), 4, "%s", account);
		db_run(world.admin, "DROP USER %s@%s", quoted(user), quoted(host));
	}
	free(text);
}

Test(grants, names_are_names_whatever_they_contain)
{
	static const char *const tails[] = {
	        "'",  "\"", "`", "\\",       "\\'",       "''",  "``",
	        "`;", " ",  "@", "@@",       "%",         "_",   ";DROP TABLE biz_lock;#",
	        "/*", "#",  "$", "\xc3\xa1", "' OR ''='", "\\`",
	};

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		const char *unique = strrchr(world.schema, '_') + 1;
		char user[64];

		/* MySQL has names of 32 characters, no longer. */
		snprintf(user, sizeof(user), "%s%s_", unique, tails[i]);
		is_granted_to(user, "%");
	}
	is_granted_to(world.schema, "10.0.0.0/255.0.0.0");
	is_granted_to(world.schema, "a_b%.example.com");
	cr_assert_eq(all_rows(&world), 0);
}

Test(grants, databases_are_names_too)
{
	char schema[64], *text;

	snprintf(schema, sizeof(schema), "%s`\\'\"%%_", world.schema);
	db_run(world.admin, "CREATE DATABASE %s; CREATE USER '%s'@'%%'", quoted(schema),
	       world.schema);
	for (int i = 0; i < 4; i++) {
		static const char *const tables[] = {"biz_lock", "biz_row_lock", "biz_lock_schema",
		                                     "biz_run"};

		db_run(world.admin, "CREATE TABLE %s.%s (a INT)", quoted(schema), tables[i]);
	}
	text = grants_for(OPTIONS("database", schema), world.schema);
	db_run(world.admin, "%s", text);
	cr_assert_eq(tables_of(world.schema, "%", schema), 4);
	db_run(world.admin, "DROP DATABASE %s", quoted(schema));
	free(text);
}

/* ---- bad calls ----------------------------------------------------------------- */

Test(grants, a_buffer_that_is_too_small)
{
	bizlock *b = client_new(&world, NULL);
	char text[4096] = "as it was";
	size_t len = 0, needed = 0;

	expect(LIMIT, b, bizlock_grants(b, "app", text, 20, &needed));
	cr_assert_str_eq(text, "as it was");
	expect(LIMIT, b, bizlock_grants(b, "app", text, needed, NULL));
	expect(OK, b, bizlock_grants(b, "app", text, needed + 1, &len));
	cr_assert_eq(len, needed);
	cr_assert_eq(strlen(text), len);
	bizlock_close(b);
}

Test(grants, users_that_nobody_can_be)
{
	static const char *const users[] = {
	        "", "@", "@%", "app@", "a\nb@%", "a\x1b[1m", "\xff\xfe@%", "app@\x7f", "app\t@%"};
	bizlock *b = client_new(&world, NULL);
	char text[4096] = "as it was";

	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		expect(INVALID, b, bizlock_grants(b, users[i], text, sizeof(text), NULL));
		expect_message(b, "user");
	}
	expect(INVALID, b, bizlock_grants(b, NULL, text, sizeof(text), NULL));
	expect(INVALID, b, bizlock_grants(b, "app", NULL, sizeof(text), NULL));
	expect_message(b, "ret");
	cr_assert_eq(bizlock_grants(NULL, "app", text, sizeof(text), NULL), BIZLOCK_INVALID);
	cr_assert_str_eq(text, "as it was");
	bizlock_close(b);
}

Test(grants, no_server_is_needed_but_a_database)
{
	struct server nowhere = server_over_tcp(world.at, "127.0.0.1", 1);
	struct world w = world_by_way_of(&world, &nowhere);
	bizlock *b = client_new(&w, NULL), *empty = NULL;
	char text[4096];

	expect(OK, b, bizlock_grants(b, "app", text, sizeof(text), NULL));
	cr_assert(strstr(text, w.schema));
	cr_assert_eq(bizlock_new(&empty), BIZLOCK_OK);
	expect(INVALID, empty, bizlock_grants(empty, "app", text, sizeof(text), NULL));
	expect_message(empty, "database");
	bizlock_close(empty);
	bizlock_close(b);
}
