/* The tables: which of them bizlock_open() accepts, and what bizlock_migrate() changes. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdio.h>

#include "cr_test.h"

TestSuite(schema, .init = world_begin_empty, .fini = world_end, .timeout = 240);

Test(schema, without_tables_it_says_what_to_do)
{
	expect_open(SCHEMA, &world, NULL, "bizlock_migrate");
	expect_open(SCHEMA, &world, NULL, "sql/");
}

/* What a migration of a later library leaves here. */
static void migrate_on(const char *change, unsigned version, unsigned needs_client)
{
	world_migrate(&world);
	db_run(world.admin, "%s;INSERT INTO biz_lock_schema VALUES (%u, %u, UTC_TIMESTAMP(6))",
	       change, version, needs_client);
}

/* As biz_type and depth of a lock were of another size from then on. */
Test(schema, tables_that_need_a_newer_client_are_refused)
{
	migrate_on("ALTER TABLE biz_lock MODIFY reentrant BIGINT UNSIGNED NOT NULL", 3, 3);
	expect_open(SCHEMA, &world, NULL, "version 3");
	expect_open(SCHEMA, &world, NULL, "upgrade bizlock");
}

Test(schema, additions_of_a_newer_client_are_let_be)
{
	migrate_on("ALTER TABLE biz_lock ADD COLUMN hue INT NOT NULL DEFAULT 0;"
	           "CREATE TABLE biz_lock_hue (a INT)",
	           3, 1);
	works(client(NULL));
	world_migrate(&world);
	cr_assert_eq(db_number(world.admin, "SELECT MAX(version) FROM biz_lock_schema"), 3);
	works(client(NULL));
}

/* And a client that is open goes on. */
Test(schema, clients_go_on_while_more_is_added)
{
	bizlock *b;

	world_migrate(&world);
	b = client(NULL);
	expect(OK, b, acquire_as(b, "held", "task-1"));
	migrate_on("ALTER TABLE biz_lock ADD COLUMN hue INT NOT NULL DEFAULT 0", 3, 1);
	works(b);
	expect(OK, b, bizlock_verify(b, KEY("held"), "task-1"));
	expect(OK, b, bizlock_release(b, KEY("held"), "task-1", NULL));
}

Test(schema, a_table_that_is_missing_is_made_again_whatever_was_added)
{
	migrate_on("DROP TABLE biz_row_lock", 3, 1);
	expect_open(SCHEMA, &world, NULL, "bizlock_migrate");
	world_migrate(&world);
	works(client(NULL));
}

Test(schema, a_newer_schema_is_not_migrated_back)
{
	bizlock *b = client_new(&world, NULL);

	migrate_on("DROP TABLE biz_row_lock", 999, 999);
	expect(SCHEMA, b, bizlock_migrate(b));
	bizlock_close(b);
	cr_assert_eq(db_number(world.admin, "SELECT MAX(version) FROM biz_lock_schema"), 999);
	cr_assert(!db_try(world.admin, "SELECT 1 FROM biz_row_lock"));
}

Test(schema, a_missing_table_is_noticed)
{
	world_migrate(&world);
	db_run(world.admin, "DROP TABLE biz_row_lock");
	expect_open(SCHEMA, &world, NULL, "bizlock_migrate");
	world_migrate(&world);
	works(client(NULL));
}

/* Clients that know the first version alone are asked for no more. */
Test(schema, the_table_of_runs_needs_no_newer_client)
{
	world_migrate(&world);
	cr_assert_eq(db_number(world.admin, "SELECT MAX(version) FROM biz_lock_schema"), 2);
	cr_assert_eq(db_number(world.admin, "SELECT MAX(needs_client) FROM biz_lock_schema"), 1);
}

Test(schema, locks_need_no_table_of_runs)
{
	static const char *const changes[] = {
	        "ALTER TABLE biz_run ENGINE=MyISAM",
	        "ALTER TABLE biz_run DROP PRIMARY KEY",
	        "ALTER TABLE biz_run MODIFY owner VARCHAR(191) CHARACTER SET latin1",
	        "DROP TABLE biz_run",
	};

	world_migrate(&world);
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		db_run(world.admin, "%s", changes[i]);
		works(client(NULL));
	}
	world_migrate(&world);
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_run"), 0);
}

Test(schema, another_engine_is_refused)
{
	world_migrate(&world);
	db_run(world.admin, "ALTER TABLE biz_lock ENGINE=MyISAM");
	expect_open(SCHEMA, &world, NULL, "InnoDB");
	db_run(world.admin, "ALTER TABLE biz_lock ENGINE=InnoDB");
	db_run(world.admin, "ALTER TABLE biz_row_lock ENGINE=MyISAM");
	expect_open(SCHEMA, &world, NULL, "`biz_row_lock` ENGINE=InnoDB");
	db_run(world.admin, "ALTER TABLE biz_row_lock ENGINE=InnoDB");
	works(client(NULL));
}

/* ---- tables that look right ------------------------------------------------------------------ */

/* A copy has the columns and rows, and no key. */
Test(schema, a_copy_without_keys_is_refused)
{
	static const char *const tables[] = {"biz_lock", "biz_row_lock"};

	world_migrate(&world);
	for (int i = 0; i < 2; i++) {
		db_run(world.admin,
		       "CREATE TABLE copy AS SELECT * FROM %s;"
		       "RENAME TABLE %s TO old, copy TO %s",
		       tables[i], tables[i], tables[i]);
		expect_open(SCHEMA, &world, NULL, tables[i]);
		expect_open(SCHEMA, &world, NULL, "PRIMARY KEY (biz_id,biz_type");
		db_run(world.admin, "RENAME TABLE %s TO copy, old TO %s; DROP TABLE copy",
		       tables[i], tables[i]);
	}
	works(client(NULL));
}

Test(schema, a_fence_that_does_not_count_is_refused)
{
	world_migrate(&world);
	db_run(world.admin, "ALTER TABLE biz_lock MODIFY fence BIGINT UNSIGNED NOT NULL");
	expect_open(SCHEMA, &world, NULL, "AUTO_INCREMENT");
	db_run(world.admin, "ALTER TABLE biz_lock DROP KEY fence, DROP COLUMN fence");
	expect_open(SCHEMA, &world, NULL, "no column fence");
}

/* The remedy for a missing key would be refused by the server. */
Test(schema, a_table_without_slots_is_refused)
{
	world_migrate(&world);
	db_run(world.admin, "ALTER TABLE biz_lock DROP PRIMARY KEY, DROP COLUMN slot,"
	                    " ADD PRIMARY KEY (biz_id, biz_type)");
	expect_open(SCHEMA, &world, NULL, "no column slot: drop `biz_lock`");
}

Test(schema, keys_that_do_not_compare_as_bytes_are_refused)
{
	world_migrate(&world);
	db_run(world.admin, "ALTER TABLE biz_lock MODIFY biz_id VARCHAR(128) CHARACTER SET utf8mb4"
	                    " COLLATE utf8mb4_general_ci NOT NULL");
	expect_open(SCHEMA, &world, NULL, "biz_lock.biz_id: utf8mb4_general_ci");
	expect_open(SCHEMA, &world, NULL, "MODIFY `biz_id` varchar(128) CHARACTER SET utf8mb4");
}

Test(schema, a_view_is_refused_and_told_so)
{
	world_migrate(&world);
	db_run(world.admin,
	       "RENAME TABLE biz_lock TO other_biz_lock; CREATE VIEW biz_lock AS SELECT * FROM "
	       "other_biz_lock");
	expect_open(SCHEMA, &world, NULL, "biz_lock: a view");
	expect_open(SCHEMA, &world, NULL, "table_prefix");
}

/* It may leave a row that is free, and without a key the next one is inserted beside it. */
static void leaves_no_owner(void)
{
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE owner <> ''"), 0);
	db_run(world.admin, "DELETE FROM biz_lock");
}

/* In the place of the one that was looked at when the client was opened. */
Test(schema, a_table_without_fences_gives_no_lock)
{
	bizlock_key keys[] = {KEY("j"), KEY("k")};
	bizlock *b;

	world_migrate(&world);
	b = client(NULL);
	db_run(world.admin,
	       "CREATE TABLE copy AS SELECT * FROM biz_lock; RENAME TABLE biz_lock TO old,"
	       " copy TO biz_lock");
	for (int i = 0; i < 2; i++) {
		bizlock_acquire_opts opts = OPTS(.lease_ms = 60000, .wait_ms = 1000);

		expect(SCHEMA, b, acquire(b, "k", .wait_ms = 1000));
		expect_message(b, "AUTO_INCREMENT");
		leaves_no_owner();
		expect(SCHEMA, b, bizlock_acquire_all(b, keys, 2, &opts, NULL));
		leaves_no_owner();
		opts.flags = BIZLOCK_SHARED;
		expect(SCHEMA, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
		leaves_no_owner();
	}
}

Test(schema, two_rows_of_a_key_are_no_lock)
{
	bizlock *b;

	world_migrate(&world);
	b = client(NULL);
	expect(OK, b, acquire(b, "k"));
	db_run(world.admin,
	       "CREATE TABLE copy AS SELECT * FROM biz_lock; INSERT INTO copy SELECT * FROM"
	       " biz_lock; RENAME TABLE biz_lock TO old, copy TO biz_lock");
	expect(SCHEMA, b, bizlock_verify(b, KEY("k"), NULL));
	expect_message(b, "several rows of one key");
}

static char *columns(const char *schema)
{
	return db_text(world.admin,
	               "SELECT TABLE_NAME, ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE,"
	               " COLLATION_NAME, IS_NULLABLE, COLUMN_DEFAULT, EXTRA, COLUMN_COMMENT"
	               " FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '%s'"
	               " ORDER BY TABLE_NAME, ORDINAL_POSITION",
	               schema);
}

static char *indexes(const char *schema)
{
	return db_text(world.admin,
	               "SELECT TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, NON_UNIQUE"
	               " FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = '%s'"
	               " ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX",
	               schema);
}

static char *tables(const char *schema)
{
	return db_text(world.admin,
	               "SELECT TABLE_NAME, ENGINE, TABLE_COLLATION, TABLE_COMMENT"
	               " FROM information_schema.TABLES WHERE TABLE_SCHEMA = '%s'"
	               " ORDER BY TABLE_NAME",
	               schema);
}

static void same(char *(*look)(const char *schema), const char *a, const char *b)
{
	char *of_a = look(a), *of_b = look(b);

	cr_assert_str_neq(of_a, "");
	cr_assert_str_eq(of_a, of_b, "%s\nis not\n%s", of_a, of_b);
	free(of_a);
	free(of_b);
}

static void apply_file(const struct world *w, const char *folder, const char *name)
{
	char path[512], text[65536];
	size_t n;
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	in = fopen(path, "r");
	if (!in)
		die("cannot read %s", path);
	n = fread(text, 1, sizeof(text) - 1, in);
	text[n] = '\0';
	fclose(in);
	db_run(w->admin, "%s", text);
}

Test(schema, the_file_and_migrate_make_the_same_tables)
{
	const char *folder = getenv("BIZLOCK_SQL_DIR");
	struct world by_file;

	skip_unless(folder, "BIZLOCK_SQL_DIR is not set");
	world_make(&by_file, &world.at);
	for (int i = 0; i < 2; i++) {
		apply_file(&by_file, folder, "001_init.sql");
		apply_file(&by_file, folder, "002_runs.sql");
	}
	world_migrate(&world);
	same(tables, by_file.schema, world.schema);
	same(columns, by_file.schema, world.schema);
	same(indexes, by_file.schema, world.schema);
	expect_open(OK, &by_file, NULL, "");
	world_drop(&by_file);
}

/* The primary key, and one more for AUTO_INCREMENT. */
Test(schema, the_lock_table_has_two_indexes)
{
	char *found;

	world_migrate(&world);
	found = db_text(world.admin,
	                "SELECT INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS"
	                " WHERE TABLE_SCHEMA = '%s' AND TABLE_NAME = 'biz_lock'"
	                " ORDER BY INDEX_NAME = 'fence', SEQ_IN_INDEX",
	                world.schema);
	cr_assert_str_eq(found, "PRIMARY|biz_id\nPRIMARY|biz_type\nPRIMARY|slot\nfence|fence\n");
	free(found);
}

Test(schema, every_column_has_a_comment)
{
	world_migrate(&world);
	cr_assert_eq(db_number(world.admin,
	                       "SELECT COUNT(*) FROM information_schema.COLUMNS"
	                       " WHERE TABLE_SCHEMA = '%s' AND COLUMN_COMMENT = ''",
	                       world.schema),
	             0);
}

Test(schema, migrating_again_changes_nothing)
{
	char *before, *after;
	bizlock *b;

	world_migrate(&world);
	b = client(NULL);
	expect(OK, b, acquire(b, "k"));
	before = db_text(world.admin, "SELECT * FROM biz_lock");
	world_migrate(&world);
	expect(OK, b, bizlock_migrate(b));
	after = db_text(world.admin, "SELECT * FROM biz_lock");
	cr_assert_str_eq(after, before);
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_lock_schema"), 2);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	free(before);
	free(after);
}

static void *migrate(void *arg)
{
	bizlock *b = client_new(&world, NULL);
	int *rc = arg;

	*rc = bizlock_migrate(b);
	if (*rc != BIZLOCK_OK)
		fprintf(stderr, "migrate: %s\n", bizlock_errmsg(b));
	bizlock_close(b);
	return NULL;
}

Test(schema, migrations_at_the_same_time_all_succeed)
{
	enum { MIGRATIONS = 16, ROUNDS = 3 };
	pthread_t threads[MIGRATIONS];
	int rc[MIGRATIONS];

	deadlocks_may_happen();
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < MIGRATIONS; i++)
			if (pthread_create(&threads[i], NULL, migrate, &rc[i]) != 0)
				die("no thread");
		for (int i = 0; i < MIGRATIONS; i++)
			pthread_join(threads[i], NULL);
		for (int i = 0; i < MIGRATIONS; i++)
			cr_assert_eq(rc[i], BIZLOCK_OK);
		expect_open(OK, &world, NULL, "");
		db_run(world.admin, "DROP TABLE " ALL_TABLES);
	}
}

Test(schema, a_prefix_makes_another_set_of_tables)
{
	bizlock *plain, *prefixed = client_new(&world, OPTIONS("table_prefix", "Zz_9"));

	world_migrate(&world);
	expect(SCHEMA, prefixed, bizlock_open(prefixed));
	expect(OK, prefixed, bizlock_migrate(prefixed));
	expect(OK, prefixed, bizlock_open(prefixed));
	plain = client(NULL);
	expect(OK, plain, acquire(plain, "k"));
	expect(OK, prefixed, acquire(prefixed, "k"));
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM Zz_9biz_lock"), 1);
	expect(OK, prefixed, bizlock_release(prefixed, KEY("k"), NULL, NULL));
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM Zz_9biz_lock"), 0);
	cr_assert_eq(all_rows(&world), 1);
	bizlock_close(prefixed);
}

Test(schema, two_databases_are_two_worlds)
{
	struct world other;
	bizlock *here, *there;

	world_make(&other, &world.at);
	world_migrate(&other);
	world_migrate(&world);
	here = client(NULL);
	there = client_open(&other, NULL);
	expect(OK, here, acquire(here, "k"));
	expect(OK, there, acquire(there, "k"));
	bizlock_close(there);
	world_drop(&other);
}

/* ---- while the client is open -------------------------------------------------------------- */

static void expect_advice(bizlock *b)
{
	expect_message(b, "apply the files of sql/");
}

Test(schema, tables_that_were_dropped_are_told_with_the_remedy)
{
	bizlock *b;

	world_migrate(&world);
	b = client(NULL);
	expect(OK, b, acquire(b, "held"));
	db_run(world.admin, "DROP TABLE biz_lock");
	expect(SCHEMA, b, acquire(b, "k"));
	expect_advice(b);
	expect(SCHEMA, b, acquire(b, "k", .wait_ms = 1000));
	expect_advice(b);
	expect(SCHEMA, b, bizlock_verify(b, KEY("held"), NULL));
	expect_advice(b);
	expect(SCHEMA, b, bizlock_release(b, KEY("held"), NULL, NULL));
	expect_advice(b);
	expect(SCHEMA, b, bizlock_reap(b, NULL, NULL));
	expect_advice(b);
}

/* ---- a table in whose place another one is put ----------------------------------------------- */

static void *acquire_task(void *b)
{
	expect(OK, b, acquire_as(b, "k", "task"));
	return NULL;
}

static void *release_task(void *b)
{
	expect(OK, b, bizlock_release(b, KEY("k"), "task", NULL));
	return NULL;
}

/* It is away until the first answer says so. */
static void waits_for_table(struct proxy *p, bizlock *b, void *(*call)(void *b))
{
	pthread_t thread;
	unsigned packets;

	db_run(world.admin, "RENAME TABLE biz_lock TO away");
	packets = proxy_packets(p);
	cr_assert_eq(pthread_create(&thread, NULL, call, b), 0);
	eventually(proxy_packets(p) > packets + 1);
	db_run(world.admin, "RENAME TABLE away TO biz_lock");
	pthread_join(thread, NULL);
}

Test(schema, a_table_that_is_away_for_a_moment_is_waited_for)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b;

	world_migrate(&world);
	b = client_through(p, NULL);
	works(b);
	waits_for_table(p, b, acquire_task);
	waits_for_table(p, b, release_task);
	proxy_stop(p);
}
