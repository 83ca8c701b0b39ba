/* What bizlock_doctor() finds at a server with good settings, and at its tables. For the rest, see
 * the other files doctor_*.c. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_findings.h"

TestSuite(doctor, .init = world_begin, .fini = world_end, .timeout = 240);

static const char *const names[] = {
        "connection",    "database",       "server",
        "tables",        "engine",         "primary_key",
        "collation",     "auto_increment", "additions",
        "limits",        "grants",         "sql_mode",
        "isolation",     "transactions",   "inherited",
        "binlog_format", "filters",        "read_only",
        "galera",        "group",          "doorbell",
        "watching",      "proxy",          "connections",
        "threads",       "quotas",         "prepared_statements",
        "wait_timeout",  "packets",        "durability",
        "clock",         "lock",
};
#define NAMES (sizeof(names) / sizeof(names[0]))

static struct findings look(const char *const *options)
{
	return doctor_of(&world, options, BIZLOCK_OK);
}

Test(doctor, a_server_that_is_fit)
{
	struct findings f = look(NULL);

	cr_assert_eq(f.count, NAMES);
	for (unsigned i = 0; i < NAMES; i++)
		cr_assert_str_eq(f.all[i].name, names[i]);
	expect_good(&f, SERVERS_OWN);
	expect_finding(&f, "database", BIZLOCK_GOOD, world.schema);
	expect_finding(&f, "tables", BIZLOCK_GOOD, "version 2");
	expect_finding(&f, "engine", BIZLOCK_GOOD, "biz_row_lock: InnoDB");
	expect_finding(&f, "primary_key", BIZLOCK_GOOD, "(biz_id,biz_type)");
	expect_finding(&f, "sql_mode", BIZLOCK_GOOD, "STRICT_ALL_TABLES");
	expect_finding(&f, "isolation", BIZLOCK_GOOD, "READ-COMMITTED");
	expect_finding(&f, "grants", BIZLOCK_GOOD, "SELECT, INSERT, UPDATE, DELETE on biz_lock;");
	expect_finding(&f, "grants", BIZLOCK_GOOD, "; SELECT on biz_lock_schema");
}

Test(doctor, it_changes_nothing)
{
	bizlock *b = client(NULL);
	const char *before;

	expect(OK, b, acquire(b, "k", .lease_ms = 600000));
	before = row_text("k");
	look(NULL);
	cr_assert_str_eq(row_text("k"), before);
	cr_assert_eq(all_rows(&world), 1);
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_row_lock"), 0);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

Test(doctor, tables_with_a_prefix)
{
	bizlock *b = client_new(&world, OPTIONS("table_prefix", "Zz_9"));
	struct findings f;

	db_run(world.admin, "DROP TABLE " ALL_TABLES);
	expect(OK, b, bizlock_migrate(b));
	f = look(OPTIONS("table_prefix", "Zz_9"));
	cr_assert_eq(f.count, NAMES);
	expect_good(&f, SERVERS_OWN);
	db_run(world.admin, "ALTER TABLE Zz_9biz_lock ENGINE=MyISAM");
	f = look(OPTIONS("table_prefix", "Zz_9"));
	expect_finding(&f, "engine", BIZLOCK_BAD, "Zz_9biz_lock");
	bizlock_close(b);
}

/* ---- the tables ------------------------------------------------------------------- */

Test(doctor, no_tables)
{
	struct findings f;

	db_run(world.admin, "DROP TABLE " ALL_TABLES);
	f = look(NULL);
	expect_finding(&f, "tables", BIZLOCK_BAD, ALL_TABLES);
	expect_finding(&f, "tables", BIZLOCK_BAD, "bizlock_migrate");
	cr_assert(!finding_of(&f, "engine"));
	cr_assert(!finding_of(&f, "primary_key"));
	cr_assert(!finding_of(&f, "collation"));
	cr_assert(!finding_of(&f, "auto_increment"));
	expect_good(&f, SERVERS_OWN " tables");
	world_migrate(&world);
	f = look(NULL);
	expect_good(&f, SERVERS_OWN);
}

Test(doctor, one_table_is_missing)
{
	struct findings f;

	db_run(world.admin, "DROP TABLE biz_row_lock");
	f = look(NULL);
	expect_finding(&f, "tables", BIZLOCK_BAD, "biz_row_lock: missing");
	expect_good(&f, SERVERS_OWN " tables");
}

/* Locks work without it. */
Test(doctor, the_table_of_runs_is_missing_or_wrong)
{
	struct findings f;

	db_run(world.admin, "ALTER TABLE biz_run MODIFY owner VARCHAR(191) CHARACTER SET latin1 "
	                    "NOT NULL");
	f = look(NULL);
	expect_finding(&f, "collation", BIZLOCK_WARN, "biz_run.owner: latin1");
	expect_good(&f, SERVERS_OWN " collation");
	heal(&f, "collation");
	f = look(NULL);
	expect_good(&f, SERVERS_OWN);
	db_run(world.admin, "DROP TABLE biz_run");
	f = look(NULL);
	expect_finding(&f, "tables", BIZLOCK_WARN, "biz_run: missing");
	expect_good(&f, SERVERS_OWN " tables");
	world_migrate(&world);
	f = look(NULL);
	expect_good(&f, SERVERS_OWN);
}

Test(doctor, tables_of_another_version)
{
	struct findings f;

	db_run(world.admin, "INSERT INTO biz_lock_schema VALUES (998, 1, UTC_TIMESTAMP(6))");
	f = look(NULL);
	expect_finding(&f, "tables", BIZLOCK_GOOD, "version 998");
	db_run(world.admin, "INSERT INTO biz_lock_schema VALUES (999, 999, UTC_TIMESTAMP(6))");
	f = look(NULL);
	expect_finding(&f, "tables", BIZLOCK_BAD, "999");
	expect_finding(&f, "tables", BIZLOCK_BAD, "upgrade");
	db_run(world.admin, "DELETE FROM biz_lock_schema");
	f = look(NULL);
	expect_finding(&f, "tables", BIZLOCK_BAD, "version 0");
	expect_finding(&f, "tables", BIZLOCK_BAD, "sql/");
}

Test(doctor, another_engine)
{
	struct findings f;

	db_run(world.admin, "ALTER TABLE biz_row_lock ENGINE=MyISAM");
	f = look(NULL);
	expect_finding(&f, "engine", BIZLOCK_BAD, "biz_row_lock: MyISAM");
	expect_good(&f, SERVERS_OWN " engine");
	heal(&f, "engine");
	f = look(NULL);
	expect_good(&f, SERVERS_OWN);
}

Test(doctor, another_primary_key)
{
	static const char *const keys[] = {"(biz_type, biz_id, slot)",
	                                   "(biz_id(20), biz_type, slot)", "(biz_id, biz_type)",
	                                   "(biz_id, biz_type, slot, fence)"};
	struct findings f;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		db_run(world.admin, "ALTER TABLE biz_lock DROP PRIMARY KEY, ADD PRIMARY KEY %s",
		       keys[i]);
		f = look(NULL);
		expect_finding(&f, "primary_key", BIZLOCK_BAD, "biz_lock: not the PRIMARY KEY");
		expect_good(&f, SERVERS_OWN " primary_key");
	}
	db_run(world.admin, "ALTER TABLE biz_lock DROP PRIMARY KEY,"
	                    " ADD PRIMARY KEY (biz_id, biz_type);"
	                    "ALTER TABLE biz_row_lock DROP PRIMARY KEY");
	f = look(NULL);
	expect_finding(&f, "primary_key", BIZLOCK_BAD, "biz_row_lock: not the PRIMARY KEY");
}

Test(doctor, one_more_index)
{
	static const char *const more[] = {"INDEX more (owner)", "UNIQUE INDEX more (fence)",
	                                   "INDEX more (timeout, owner)"};
	struct findings f;

	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		db_run(world.admin, "ALTER TABLE biz_lock ADD %s", more[i]);
		f = look(NULL);
		expect_finding(&f, "primary_key", BIZLOCK_WARN, "more (");
		db_run(world.admin, "ALTER TABLE biz_lock DROP INDEX more");
	}
	f = look(NULL);
	expect_good(&f, SERVERS_OWN);
}

Test(doctor, collations_that_are_not_bytes)
{
	static const char *const changes[] = {
	        "ALTER TABLE biz_lock MODIFY biz_id VARCHAR(128) CHARACTER SET utf8mb4"
	        " COLLATE utf8mb4_general_ci NOT NULL",
	        "ALTER TABLE biz_row_lock MODIFY biz_type VARCHAR(64) CHARACTER SET utf8mb4"
	        " COLLATE utf8mb4_bin NOT NULL",
	        "ALTER TABLE biz_lock MODIFY owner VARCHAR(191) CHARACTER SET ascii"
	        " COLLATE ascii_general_ci NOT NULL",
	};
	static const char *const words[] = {"biz_lock.biz_id: utf8mb4_general_ci",
	                                    "biz_row_lock.biz_type: utf8mb4_bin",
	                                    "biz_lock.owner: ascii_general_ci"};
	struct findings f;

	for (size_t i = 0; i < 3; i++) {
		db_run(world.admin, "%s", changes[i]);
		f = look(NULL);
		expect_finding(&f, "collation", BIZLOCK_BAD, words[i]);
		expect_good(&f, SERVERS_OWN " collation");
		heal(&f, "collation");
		f = look(NULL);
		expect_good(&f, SERVERS_OWN);
	}
	db_run(world.admin, "%s; %s", changes[0], changes[1]);
	f = look(NULL);
	expect_finding(&f, "collation", BIZLOCK_BAD, words[0]);
	expect_finding(&f, "collation", BIZLOCK_BAD, words[1]);
	heal(&f, "collation");
	f = look(NULL);
	expect_good(&f, SERVERS_OWN);
}

Test(doctor, a_fence_that_does_not_count)
{
	static const char *const types[] = {"BIGINT UNSIGNED NOT NULL DEFAULT 0",
	                                    "INT UNSIGNED NOT NULL AUTO_INCREMENT",
	                                    "BIGINT NOT NULL AUTO_INCREMENT"};
	struct findings f;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		db_run(world.admin, "ALTER TABLE biz_lock MODIFY fence %s", types[i]);
		f = look(NULL);
		expect_finding(&f, "auto_increment", BIZLOCK_BAD, "MODIFY `fence`");
		expect_good(&f, SERVERS_OWN " auto_increment");
	}
	heal(&f, "auto_increment");
	f = look(NULL);
	expect_good(&f, SERVERS_OWN);
}

/* ---- shared locks --------------------------------------------------------------------------- */

Test(doctor, limits_that_differ)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = OPTS(.owner = "a", .flags = BIZLOCK_SHARED, .limit = 2);
	struct findings f;

	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	f = look(NULL);
	expect_finding(&f, "limits", BIZLOCK_GOOD, "one limit");
	opts.owner = "b";
	opts.limit = 3;
	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	f = look(NULL);
	expect_finding(&f, "limits", BIZLOCK_WARN, "test/k is held with limits from 2 to 3");
	expect_good(&f, SERVERS_OWN " limits");
	expect(OK, b, bizlock_release(b, KEY("k"), "a", NULL));
	f = look(NULL);
	expect_finding(&f, "limits", BIZLOCK_GOOD, "");
	expect(OK, b, bizlock_release(b, KEY("k"), "b", NULL));
}
