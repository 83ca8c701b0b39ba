/* What bizlock_doctor() finds when it takes a lock, renews it and gives it back; and what may keep
 * clients from that: locked tables, additions to them, filters, quotas, few threads. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_findings.h"

#define PASSWORD "c0rrect-horse"

static struct own_server server;

static void end_user(void)
{
	db_run(world.admin, "DROP USER IF EXISTS '%s'@'%%', '%s'@'localhost'", world.schema,
	       world.schema);
	world_end();
}

static void end_own_world(void)
{
	if (world.admin)
		world_end();
	own_server_end(&server);
}

TestSuite(doctor_lock, .init = world_begin, .fini = end_user, .timeout = 240);
TestSuite(own_doctor_lock, .fini = end_own_world, .timeout = 480);

static void begin_own_world(const char *args)
{
	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	own_server_start(&server, args);
	world_make(&world, &server.at);
	world_migrate(&world);
}

static struct findings look(const char *const *options)
{
	return doctor_of(&world, options, BIZLOCK_OK);
}

static void expect_no_row(void)
{
	cr_assert_eq(all_rows(&world), 0);
}

Test(doctor_lock, one_is_had)
{
	struct findings f = look(NULL);

	expect_finding(&f, "lock", BIZLOCK_GOOD, "taken, renewed and released");
	expect_no_row();
}

/* ---- locked tables ---------------------------------------------------------------------- */

/* `lock` is run by another session, and undone by `unlock`. */
static void expect_in_the_way(const char *lock, const char *unlock)
{
	MYSQL *other = db_open(&world.at, world.schema);
	struct findings f;

	db_run(other, "%s", lock);
	f = look(NULL);
	expect_finding(&f, "lock", BIZLOCK_BAD, "could not be taken");
	expect_finding(&f, "lock", BIZLOCK_BAD, "--single-transaction");
	if (server_is_mysql(world.admin)) {
		char word[64];

		snprintf(word, sizeof(word), "connection %lu of", mysql_thread_id(other));
		expect_finding(&f, "lock", BIZLOCK_BAD, word);
	}
	db_run(other, "%s", unlock);
	mysql_close(other);
	f = look(NULL);
	expect_finding(&f, "lock", BIZLOCK_GOOD, "");
	expect_no_row();
}

Test(doctor_lock, a_table_that_is_locked_for_reading)
{
	expect_in_the_way("LOCK TABLES biz_lock READ", "UNLOCK TABLES");
}

Test(doctor_lock, a_table_that_is_locked_for_writing)
{
	expect_in_the_way("LOCK TABLES biz_lock WRITE", "UNLOCK TABLES");
}

Test(own_doctor_lock, a_server_that_is_locked_for_a_backup)
{
	begin_own_world("");
	expect_in_the_way("FLUSH TABLES WITH READ LOCK", "UNLOCK TABLES");
}

Test(own_doctor_lock, a_stage_of_a_backup)
{
	begin_own_world("--log-bin --server-id=1");
	not_here_unless(!server_is_mysql(world.admin), "MariaDB alone has stages of a backup");
	expect_in_the_way("BACKUP STAGE START; BACKUP STAGE BLOCK_COMMIT", "BACKUP STAGE END");
}

/* ---- each step -------------------------------------------------------------------------- */

static void refuse(const char *event)
{
	db_run(world.admin,
	       "CREATE TRIGGER refuse BEFORE %s ON biz_lock FOR EACH ROW SIGNAL SQLSTATE '45000' "
	       "SET MESSAGE_TEXT = 'not today'",
	       event);
}

Test(doctor_lock, what_cannot_be_taken)
{
	struct findings f;

	refuse("INSERT");
	f = look(NULL);
	expect_finding(&f, "lock", BIZLOCK_BAD, "could not be taken: not today");
	expect_finding(&f, "additions", BIZLOCK_WARN, "trigger refuse of biz_lock");
	expect_good(&f, SERVERS_OWN " lock additions");
	heal(&f, "additions");
	f = look(NULL);
	expect_good(&f, SERVERS_OWN);
}

Test(doctor_lock, what_cannot_be_renewed)
{
	struct findings f;

	refuse("UPDATE");
	f = look(NULL);
	expect_finding(&f, "lock", BIZLOCK_BAD, "could not be renewed: not today");
	expect_no_row();
}

Test(doctor_lock, what_cannot_be_released)
{
	struct findings f;

	refuse("DELETE");
	f = look(NULL);
	expect_finding(&f, "lock", BIZLOCK_BAD, "could not be released: not today");
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE biz_type = "
	                                    "'bizlock' AND biz_id LIKE 'doctor-%%'"),
	             1);
}

Test(doctor_lock, a_row_that_a_transaction_has_locked_the_gap_of)
{
	MYSQL *other = db_open(&world.at, world.schema);
	struct findings f;

	db_run(other, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; BEGIN; "
	              "SELECT * FROM biz_lock FOR UPDATE");
	f = look(NULL);
	expect_finding(&f, "lock", BIZLOCK_BAD, "could not be taken");
	expect_finding(&f, "lock", BIZLOCK_BAD, "a transaction of somebody else's");
	db_run(other, "COMMIT");
	mysql_close(other);
}

/* ---- what was added to the tables ------------------------------------------------------- */

Test(doctor_lock, foreign_keys)
{
	struct findings f;

	db_run(world.admin,
	       "CREATE TABLE child (biz_id VARCHAR(128) CHARACTER SET utf8mb4 COLLATE %s, biz_type "
	       "VARCHAR(64) CHARACTER SET utf8mb4 COLLATE %s, slot INT UNSIGNED, CONSTRAINT "
	       "of_lock "
	       "FOREIGN KEY (biz_id, biz_type, slot) REFERENCES biz_lock (biz_id, biz_type, slot)) "
	       "ENGINE=InnoDB",
	       server_is_mysql(world.admin) ? "utf8mb4_0900_bin" : "utf8mb4_nopad_bin",
	       server_is_mysql(world.admin) ? "utf8mb4_0900_bin" : "utf8mb4_nopad_bin");
	f = look(NULL);
	expect_finding(&f, "additions", BIZLOCK_BAD, "foreign key of_lock of child");
	expect_good(&f, SERVERS_OWN " additions");
	db_run(world.admin, "DROP TABLE child");
	f = look(NULL);
	expect_good(&f, SERVERS_OWN);
}

Test(doctor_lock, system_versioning)
{
	struct findings f;

	not_here_unless(!server_is_mysql(world.admin), "MariaDB alone has it");
	db_run(world.admin, "ALTER TABLE biz_lock ADD SYSTEM VERSIONING");
	f = look(NULL);
	expect_finding(&f, "additions", BIZLOCK_WARN, "system versioning of biz_lock");
	heal(&f, "additions");
	f = look(NULL);
	expect_good(&f, SERVERS_OWN);
}

/* ---- the user, the binary log, threads --------------------------------------------------- */

Test(doctor_lock, quotas_of_the_user)
{
	struct findings f;

	for (const char *const *host = OPTIONS("%", "localhost"); *host; host++)
		db_run(world.admin,
		       "CREATE USER '%s'@'%s' IDENTIFIED BY '" PASSWORD "' WITH "
		       "MAX_QUERIES_PER_HOUR 9999 MAX_CONNECTIONS_PER_HOUR 5000;"
		       "GRANT ALL ON `%s`.* TO '%s'@'%s'",
		       world.schema, *host, world.schema, world.schema, *host);
	f = look(OPTIONS("user", world.schema, "password", PASSWORD));
	expect_finding(&f, "quotas", BIZLOCK_WARN,
	               "MAX_QUERIES_PER_HOUR 9999, MAX_CONNECTIONS_PER_HOUR 5000");
	expect_finding(&f, "filters", BIZLOCK_GOOD, "");
	expect_good(&f, SERVERS_OWN " quotas");
	heal(&f, "quotas");
	f = look(OPTIONS("user", world.schema, "password", PASSWORD));
	expect_finding(&f, "quotas", BIZLOCK_GOOD, "none");
}

Test(own_doctor_lock, a_binary_log_without_the_tables)
{
	struct findings f;

	begin_own_world("--log-bin --server-id=1 --binlog-do-db=other");
	f = look(NULL);
	expect_finding(&f, "filters", BIZLOCK_WARN, "binlog_do_db=other");
	expect_finding(&f, "filters", BIZLOCK_WARN, world.schema);
	expect_good(&f, SERVERS_OWN " filters");
}

Test(own_doctor_lock, a_binary_log_without_other_tables)
{
	struct findings f;

	begin_own_world("--log-bin --server-id=1 --binlog-ignore-db=other");
	f = look(NULL);
	expect_finding(&f, "filters", BIZLOCK_GOOD, "binlog_ignore_db=other");
}

Test(own_doctor_lock, few_threads)
{
	struct findings f;
	bool mysql;

	world_begin();
	mysql = server_is_mysql(world.admin);
	world_end();
	world.admin = NULL;
	not_here_unless(!mysql, "MariaDB alone has the pool");
	begin_own_world("--thread-handling=pool-of-threads --thread-pool-max-threads=8");
	f = look(NULL);
	expect_finding(&f, "threads", BIZLOCK_WARN, "thread_pool_max_threads=8");
	expect_good(&f, SERVERS_OWN " threads");
	db_run(world.admin,
	       "SET GLOBAL thread_pool_max_threads = 500, GLOBAL max_connections = 150");
	f = look(NULL);
	expect_finding(&f, "threads", BIZLOCK_GOOD, "pool-of-threads");
}
