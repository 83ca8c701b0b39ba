/* The user's session may have any settings, and keeps all of them. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_tx.h"

TestSuite(tx_session, .init = tx_world_begin, .fini = tx_world_end, .timeout = 240);

#define SETTINGS (int)(sizeof(settings) / sizeof(settings[0]))

static const char *const settings[] = {
        "SET SESSION sql_mode = ''",
        "SET SESSION sql_mode = 'ANSI_QUOTES'",
        "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES'",
        "SET SESSION sql_mode = 'ANSI,TRADITIONAL,PAD_CHAR_TO_FULL_LENGTH,HIGH_NOT_PRECEDENCE'",
        "SET NAMES latin1",
        "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci",
        "SET SESSION character_set_results = NULL",
        "SET SESSION time_zone = '+11:30'",
        "SET SESSION time_zone = '-11:30'",
        "SET SESSION sql_safe_updates = 1",
        "SET SESSION sql_select_limit = 1",
        "SET SESSION innodb_lock_wait_timeout = 1",
        "SET SESSION innodb_lock_wait_timeout = 7, lock_wait_timeout = 5",
        "SET SESSION autocommit = 0",
        "SET SESSION completion_type = CHAIN",
        "SET SESSION completion_type = 'RELEASE'",
        "SET SESSION unique_checks = 0, foreign_key_checks = 0",
        "SET SESSION timestamp = 86400",
        "SET SESSION sql_auto_is_null = 1",
        "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        "SET SESSION last_insert_id = 4711",
};

/* The state that the session keeps after the transaction. */
static char *state_of(MYSQL *tx)
{
	char *variables =
	        db_text(tx, "SHOW SESSION VARIABLES WHERE Variable_name REGEXP '^(sql_.*|autocommit"
	                    "|character_set_.*|collation_.*|time_zone|.*lock_wait_timeout"
	                    "|completion_type|(tx|transaction)_(isolation|read_only)"
	                    "|innodb_snapshot_isolation|max_(statement|execution)_.*|old_mode"
	                    "|unique_checks|foreign_key_checks|last_insert_id|binlog_format)$'");
	char *all;

	if (asprintf(&all, "%s%s", variables, mysql_character_set_name(tx)) < 0)
		die("out of memory");
	free(variables);
	return all;
}

static void stays_as_it_was(MYSQL *tx, char *before, const char *setting)
{
	char *after = state_of(tx);

	cr_assert_str_eq(after, before, "%s", setting);
	free(before);
	free(after);
}

/* The call must answer `want`, in the session with this setting. */
#define with(setting, want, b, call)                                                               \
	do {                                                                                       \
		int got_ = (call);                                                                 \
		cr_assert(got_ == BIZLOCK_##want, "%s: %s: %s, not BIZLOCK_%s: %s", (setting),     \
		          #call, bizlock_err_name(got_), #want, bizlock_errmsg(b));                \
	} while (0)

static MYSQL *begun_with(const char *setting, unsigned long flags)
{
	MYSQL *tx = tx_connect(&world.at, world.schema, flags);

	db_run(tx, "%s", setting);
	db_run(tx, "START TRANSACTION");
	return tx;
}

static void works_with(bizlock *b, const char *setting, unsigned long flags, int id)
{
	MYSQL *tx = begun_with(setting, flags), *other = begun_with(setting, 0);
	char *before = state_of(tx);

	db_run(tx, "INSERT INTO ledger VALUES (%d)", id);
	with(setting, OK, b, bizlock_row_lock(b, KEY("k"), tx, 0));
	with(setting, OK, b, bizlock_row_lock(b, KEY("'\\\"`\xc3\xa1"), tx, BIZLOCK_ROW_SKIP));
	with(setting, BUSY, b, bizlock_row_lock(b, KEY("k"), other, 0));
	with(setting, BUSY, b, bizlock_row_lock(b, KEY("'\\\"`\xc3\xa1"), other, BIZLOCK_ROW_SKIP));
	if (!flags) /* takes a second where `other` itself has locked the gap for the row */
		with(setting, OK, b, bizlock_row_lock(b, KEY("j"), other, 0));
	with(setting, OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	with(setting, NOT_OWNER, b, bizlock_fence(b, KEY("other"), NULL, other));
	with(setting, OK, b, bizlock_commit(b, KEY("k"), NULL, tx));
	cr_assert(ledger_has(id), "%s", setting);
	cr_assert(!tx_is_open(tx), "%s", setting);
	stays_as_it_was(tx, before, setting);
	tx_close(tx);
	db_run(other, "ROLLBACK"); /* the server may notice late that the connection was closed */
	tx_close(other);
}

TX_TEST(tx_session, of_any_settings_will_do_and_keeps_them)
{
	bizlock *b = client(NULL);

	expect(OK, b, acquire(b, "k", .lease_ms = 600000));
	for (int i = 0; i < SETTINGS; i++) {
		works_with(b, settings[i], 0, 2 * i + 1);
		works_with(b, settings[i], CLIENT_MULTI_STATEMENTS, 2 * i + 2);
	}
}

static void refused_with(bizlock *b, const char *setting, unsigned long flags)
{
	MYSQL *tx = begun_with(setting, flags);
	char *before = state_of(tx);

	db_run(tx, "INSERT INTO ledger VALUES (1)");
	with(setting, OK, b, acquire_as(b, "j", "task"));
	with(setting, OK, b, bizlock_break(b, KEY("j"), row_of(&world, KEY("j")).fence));
	with(setting, NOT_OWNER, b, bizlock_fence(b, KEY("i"), NULL, tx));
	with(setting, LOST, b, bizlock_commit(b, KEY("j"), "task", tx));
	cr_assert(!ledger_has(1), "%s", setting);
	stays_as_it_was(tx, before, setting);
	with(setting, LOST, b, bizlock_release(b, KEY("j"), "task", NULL));
	tx_close(tx);
}

/* A refusal uses other statements than a success. */
TX_TEST(tx_session, keeps_its_settings_when_it_is_refused)
{
	bizlock *b = client(NULL);

	for (int i = 0; i < SETTINGS; i++) {
		refused_with(b, settings[i], 0);
		refused_with(b, settings[i], CLIENT_MULTI_STATEMENTS);
	}
}

/* With this setting, a SELECT without a LIMIT of its own finds nothing and evaluates nothing. */
TX_TEST(tx_session, that_limits_what_it_selects_to_nothing_is_fenced_nevertheless)
{
	static const char setting[] = "SET SESSION sql_select_limit = 0";
	bizlock *b = client(NULL);

	expect(OK, b, acquire(b, "k", .lease_ms = 600000));
	refused_with(b, setting, CLIENT_MULTI_STATEMENTS);
	refused_with(b, setting, 0);
	works_with(b, setting, CLIENT_MULTI_STATEMENTS, 2);
	works_with(b, setting, 0, 3);
}

/* A session may have its own time for what it writes. Leases go by the server's clock. */
static void judges(bizlock *b, unsigned long flags, int id)
{
	MYSQL *tx = tx_connect(&world.at, world.schema, flags);

	tx_begin(tx, 0);
	db_run(tx, "SET SESSION timestamp = 86400");
	expect(LOST, b, bizlock_fence(b, KEY("over"), "task", tx));
	db_run(tx, "INSERT INTO ledger VALUES (%d)", id);
	expect(LOST, b, bizlock_commit(b, KEY("over"), "task", tx));
	cr_assert(!ledger_has(id));
	db_run(tx, "START TRANSACTION");
	db_run(tx, "SET SESSION timestamp = 2000000000, time_zone = '-11:30'");
	db_run(tx, "INSERT INTO ledger VALUES (%d)", id);
	expect(OK, b, bizlock_fence(b, KEY("long"), "task", tx));
	expect(OK, b, bizlock_commit(b, KEY("long"), "task", tx));
	cr_assert(ledger_has(id));
	cr_assert_eq(db_number(tx, "SELECT UNIX_TIMESTAMP()"), 2000000000);
	tx_close(tx);
}

TX_TEST(tx_session, with_a_time_of_its_own_judges_leases_by_the_servers_clock)
{
	bizlock *b = client(NULL);

	expect(OK, b, acquire_as(b, "long", "task"));
	expect(OK, b, acquire_as(b, "over", "task"));
	db_run(world.admin,
	       "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND WHERE %s",
	       row_where(KEY("over")));
	judges(b, 0, 1);
	judges(b, CLIENT_MULTI_STATEMENTS, 2);
}

/* ---- databases ------------------------------------------------------------------- */

static void works_in(bizlock *b, const char *schema, int id)
{
	MYSQL *tx = tx_connect(&world.at, schema, id % 2 ? CLIENT_MULTI_STATEMENTS : 0);

	tx_begin(tx, id);
	expect(OK, b, bizlock_row_lock(b, KEY("k"), tx, 0));
	cr_assert(row_is_locked(b, KEY("k")));
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	expect(OK, b, bizlock_commit(b, KEY("k"), NULL, tx));
	cr_assert(ledger_has(id));
	cr_assert_eq(
	        db_number(tx, "SELECT DATABASE() <=> %s", schema ? db_literal(schema) : "NULL"), 1,
	        "%s", schema ? schema : "none");
	tx_close(tx);
}

/* The decoy has the tables, without rows. */
TX_TEST(tx_session, of_any_default_database_will_do)
{
	bizlock *b = client(NULL);
	char decoy[64];

	snprintf(decoy, sizeof(decoy), "%s_decoy", world.schema);
	db_run(world.admin, "CREATE DATABASE `%s`", decoy);
	for (const char *const *t = (const char *const[]){"biz_lock", "biz_row_lock", NULL}; *t;
	     t++)
		db_run(world.admin, "CREATE TABLE `%s`.%s LIKE %s", decoy, *t, *t);
	expect(OK, b, acquire(b, "k", .lease_ms = 600000));
	works_in(b, NULL, 1);
	works_in(b, NULL, 2);
	works_in(b, decoy, 3);
	works_in(b, decoy, 4);
	works_in(b, "information_schema", 5);
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM `%s`.biz_row_lock", decoy), 0);
	db_run(world.admin, "DROP DATABASE `%s`", decoy);
}

/* ---- servers ------------------------------------------------------------------------ */

static struct own_server server;

static void end_both(void)
{
	if (world.admin)
		tx_world_end();
	own_server_end(&server);
}

TestSuite(tx_server, .fini = end_both, .timeout = 480);

/* The other server has the same schema and tables. A lock or a fence there would mean nothing to
 * this client. */
Test(tx_server, another_one_is_misuse)
{
	struct world there;
	bizlock *b;
	MYSQL *tx;

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	tx_world_begin();
	own_server_start(&server, "");
	there = world_by_way_of(&world, &server.at);
	there.admin = db_open(&server.at, NULL);
	db_run(there.admin,
	       "CREATE DATABASE `%s`; USE `%s`; CREATE TABLE ledger (id INT PRIMARY KEY)",
	       world.schema, world.schema);
	world_migrate(&there);
	b = client(NULL);
	expect(OK, b, acquire(b, "k", .lease_ms = 600000));
	tx = tx_connect(&server.at, world.schema, 0);
	tx_begin(tx, 1);
	expect(MISUSE, b, bizlock_row_lock(b, KEY("k"), tx, 0));
	expect(MISUSE, b, bizlock_fence(b, KEY("k"), NULL, tx));
	expect(MISUSE, b, bizlock_commit(b, KEY("k"), NULL, tx));
	cr_assert(tx_is_open(tx));
	cr_assert_eq(db_number(tx, "SELECT COUNT(*) FROM ledger"), 1);
	mysql_close(there.admin);
}

/* With this option, users may not set the clock of their session, not even to its present time.
 * Neither may root. */
Test(tx_server, that_guards_its_clock_fences_nevertheless)
{
	MYSQL *tx;
	bizlock *b;

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	own_server_start(&server, "--loose-secure-timestamp=YES");
	world_make(&world, &server.at);
	world_migrate(&world);
	db_run(world.admin, "CREATE TABLE ledger (id INT PRIMARY KEY) ENGINE=InnoDB");
	b = client(NULL);
	expect(OK, b, acquire(b, "k", .lease_ms = 600000));
	tx = tx_new();
	expect(OK, b, bizlock_row_lock(b, KEY("k"), tx, 0));
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	db_run(tx, "INSERT INTO ledger VALUES (1)");
	expect(OK, b, bizlock_commit(b, KEY("k"), NULL, tx));
	cr_assert(ledger_has(1));
}

/* Where a lock wait that times out rolls the transaction back, NOWAIT would do so, too. But BUSY
 * must not undo what the caller wrote. */
Test(tx_server, that_rolls_back_on_timeout_keeps_the_transaction_when_busy)
{
	MYSQL *tx, *other;
	bizlock *b;

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	own_server_start(&server, "--innodb-rollback-on-timeout=ON");
	world_make(&world, &server.at);
	world_migrate(&world);
	db_run(world.admin, "CREATE TABLE ledger (id INT PRIMARY KEY) ENGINE=InnoDB");
	b = client(NULL);
	other = tx_new();
	tx = tx_open();
	expect(OK, b, bizlock_row_lock(b, KEY("k"), other, 0));
	tx_begin(tx, 1);
	expect(BUSY, b, bizlock_row_lock(b, KEY("k"), tx, BIZLOCK_ROW_SKIP));
	expect(BUSY, b, bizlock_row_lock(b, KEY("k"), tx, 0));
	tx_commits(tx, 1);
}
