/* What bizlock_doctor() finds at servers with bad settings. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_findings.h"

#define PASSWORD "c0rrect-horse"

static struct own_server server;

static void end_own_world(void)
{
	if (world.admin)
		world_end();
	own_server_end(&server);
}

TestSuite(own_doctor, .fini = end_own_world, .timeout = 480);

/* Runs the migrations as plain SQL, because bizlock_migrate() would refuse some of these
 * servers. */
static int run_sql(void *arg, const bizlock_migration *m)
{
	(void)arg;
	db_run(world.admin, "%s", m->sql);
	return 0;
}

static void begin_own_world(const char *args)
{
	bizlock *b;

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	own_server_start(&server, args);
	world_make(&world, &server.at);
	b = client_new(&world, NULL);
	expect(OK, b, bizlock_each_migration(b, run_sql, NULL));
	bizlock_close(b);
}

static struct findings look(const char *const *options)
{
	return doctor_of(&world, options, BIZLOCK_OK);
}

/* A user to whom init_connect applies, and who may write without the binary log. */
static void make_user(void)
{
	bool mariadb = db_number(world.admin, "SELECT VERSION() LIKE '%%MariaDB%%'");

	for (const char *const *host = OPTIONS("%", "localhost"); *host; host++)
		db_run(world.admin,
		       "CREATE USER '%s'@'%s' IDENTIFIED BY '" PASSWORD "';"
		       "GRANT ALL ON `%s`.* TO '%s'@'%s'; GRANT %s ON *.* TO '%s'@'%s'",
		       world.schema, *host, world.schema, world.schema, *host,
		       mariadb ? "BINLOG ADMIN" : "SESSION_VARIABLES_ADMIN", world.schema, *host);
}

/* ---- settings ---------------------------------------------------------------------- */

Test(own_doctor, settings_with_which_promises_break)
{
	struct findings f;

	begin_own_world("--log-bin --server-id=1 --binlog-format=STATEMENT");
	db_run(world.admin, "SET GLOBAL read_only = 1");
	f = look(NULL);
	expect_finding(&f, "binlog_format", BIZLOCK_BAD, "STATEMENT");
	expect_finding(&f, "read_only", BIZLOCK_BAD, "read_only=ON");
	expect_finding(&f, "connection", BIZLOCK_GOOD, "");
	expect_good(&f, "binlog_format read_only durability lock");
	db_run(world.admin, "SET GLOBAL read_only = 0, GLOBAL binlog_format = 'MIXED'");
	f = look(NULL);
	expect_finding(&f, "binlog_format", BIZLOCK_GOOD, "MIXED");
	expect_good(&f, "durability");
}

/* With several hosts, bizlock_open() needs one that takes writes. */
Test(own_doctor, a_list_of_hosts_that_take_no_writes)
{
	struct server at;
	struct world tcp;
	struct findings f;
	char hosts[64];

	begin_own_world("--read-only");
	at = server_over_tcp(world.at, "127.0.0.1", world.at.port);
	tcp = world_by_way_of(&world, &at);
	snprintf(hosts, sizeof(hosts), "127.0.0.1:1,127.0.0.1:%u", world.at.port);
	f = doctor_of(&tcp, OPTIONS("host", hosts), BIZLOCK_OK);
	expect_finding(&f, "connection", BIZLOCK_BAD, "read-only");
	expect_finding(&f, "read_only", BIZLOCK_BAD, "host");
	expect_good(&f, "connection read_only durability lock");
}

Test(own_doctor, settings_that_cost_speed_order_or_durability)
{
	struct findings f;
	bool snapshots;

	begin_own_world("--log-bin --server-id=1 --binlog-format=ROW"
	                " --innodb-autoinc-lock-mode=0 --innodb-rollback-on-timeout");
	db_run(world.admin, "SET GLOBAL wait_timeout = 20, GLOBAL max_allowed_packet = 65536,"
	                    " GLOBAL innodb_flush_log_at_trx_commit = 2, GLOBAL sync_binlog = 0,"
	                    " GLOBAL sql_mode = ''");
	db_run(world.admin, "SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE");
	snapshots = db_try(world.admin, "SET GLOBAL innodb_snapshot_isolation = ON");
	f = look(NULL);
	expect_finding(&f, "auto_increment", BIZLOCK_WARN, "innodb_autoinc_lock_mode=0");
	expect_finding(&f, "transactions", BIZLOCK_WARN, "innodb_rollback_on_timeout=ON");
	if (snapshots)
		expect_finding(&f, "transactions", BIZLOCK_WARN, "innodb_snapshot_isolation=ON");
	expect_finding(&f, "wait_timeout", BIZLOCK_WARN, "20 s");
	expect_finding(&f, "packets", BIZLOCK_WARN, "max_allowed_packet=65536");
	expect_finding(&f, "durability", BIZLOCK_WARN, "set innodb_flush_log_at_trx_commit to 1");
	expect_finding(&f, "durability", BIZLOCK_WARN, "set sync_binlog to 1");
	expect_finding(&f, "sql_mode", BIZLOCK_GOOD, "STRICT_ALL_TABLES");
	expect_finding(&f, "isolation", BIZLOCK_GOOD, "READ-COMMITTED");
	expect_good(&f, "auto_increment transactions wait_timeout packets durability");

	db_run(world.admin, "SET GLOBAL wait_timeout = 60, GLOBAL max_allowed_packet = 1048576,"
	                    " GLOBAL innodb_flush_log_at_trx_commit = 1, GLOBAL sync_binlog = 1");
	f = look(NULL);
	expect_good(&f, "auto_increment transactions");
	if (server_is_mysql(world.admin))
		return; /* which has no 3 */
	db_run(world.admin, "SET GLOBAL innodb_flush_log_at_trx_commit = 3");
	f = look(NULL);
	expect_finding(&f, "durability", BIZLOCK_GOOD, "=3");
}

Test(own_doctor, limits_of_connections)
{
	struct findings f;

	begin_own_world("--max-user-connections=200");
	f = look(NULL);
	expect_finding(&f, "connections", BIZLOCK_GOOD, "up to 17");
	db_run(world.admin, "SET GLOBAL max_connections = 16");
	f = look(NULL);
	expect_finding(&f, "connections", BIZLOCK_WARN, "the server's max_connections");
	f = look(OPTIONS("max_connections", "8"));
	expect_finding(&f, "connections", BIZLOCK_GOOD, "up to 9");
	db_run(world.admin, "SET GLOBAL max_connections = 100, GLOBAL max_user_connections = 10");
	f = look(NULL);
	expect_finding(&f, "connections", BIZLOCK_WARN, "option max_connections to 9");
	f = look(OPTIONS("max_connections", "9"));
	expect_finding(&f, "connections", BIZLOCK_GOOD, "max_user_connections=10");
}

/* The shared server, with another version number. MySQL asks for its binary log in other words
 * since 8.2, so those filters cannot be looked at. */
static struct findings of_version(const char *mysql, const char *mariadb, const char **ret_version)
{
	struct server at;
	struct world by_way;
	struct findings f;
	struct proxy *p;

	world_begin();
	p = proxy_start(&world.at, "127.0.0.1");
	at = proxy_address(p);
	by_way = world_by_way_of(&world, &at);
	*ret_version = seem_older(p, mysql, mariadb);
	f = doctor_of(&by_way, NULL, BIZLOCK_OK);
	proxy_stop(p);
	return f;
}

Test(own_doctor, an_old_server)
{
	const char *version;
	struct findings f = of_version("5.7", "10.5", &version);

	expect_finding(&f, "server", BIZLOCK_BAD, version);
	expect_good(&f, server_is_mysql(world.admin) ? "server auto_increment filters" : "server");
}

Test(own_doctor, a_server_that_forgets_its_counters)
{
	const char *version;
	struct findings f = of_version("5.6", "10.1", &version);

	expect_finding(&f, "server", BIZLOCK_BAD, version);
	expect_finding(&f, "auto_increment", BIZLOCK_BAD, "not kept");
	expect_good(&f, "server auto_increment filters");
}

/* ---- the clock ------------------------------------------------------------------------- */

/* The monotonic clock is left alone, because a real clock that is wrong does not change it. */
static struct findings with_clock_off(const char *library, int seconds)
{
	char args[512];
	struct findings f;

	snprintf(args, sizeof(args), "LD_PRELOAD='%s' FAKETIME='%+ds' " FAKETIME_REAL_WAITS,
	         library, seconds);
	begin_own_world(args);
	f = look(NULL);
	world_drop(&world);
	own_server_end(&server);
	return f;
}

Test(own_doctor, clocks_that_differ)
{
	char library[256];
	struct findings f;

	skip_unless(faketime_library(library, sizeof(library)), "no libfaketime");
	f = with_clock_off(library, 3600);
	expect_finding(&f, "clock", BIZLOCK_WARN, "s ahead of this host's");
	expect_good(&f, "clock durability");
	f = with_clock_off(library, -3600);
	expect_finding(&f, "clock", BIZLOCK_WARN, "s behind this host's");
	begin_own_world("");
	f = look(NULL);
	expect_finding(&f, "clock", BIZLOCK_GOOD, "0.");
}

/* ---- what sessions inherit -------------------------------------------------------------- */

Test(own_doctor, settings_for_everybody_that_weaken_sessions_of_the_users_own)
{
	struct findings f;

	begin_own_world("--log-bin --server-id=1 --sync-binlog=1");
	f = look(NULL);
	expect_finding(&f, "inherited", BIZLOCK_GOOD, "completion_type=NO_CHAIN");
	db_run(world.admin, "SET GLOBAL completion_type = 'CHAIN'");
	f = look(NULL);
	expect_finding(&f, "inherited", BIZLOCK_WARN, "set completion_type to NO_CHAIN");
	expect_good(&f, "inherited");
	db_run(world.admin, "SET GLOBAL completion_type = 'NO_CHAIN'");
	db_run(world.admin, "SET GLOBAL init_connect = 'SET sql_log_bin = 0'");
	make_user();
	f = look(OPTIONS("user", world.schema, "password", PASSWORD));
	expect_finding(&f, "inherited", BIZLOCK_WARN, "init_connect=SET sql_log_bin");
	expect_finding(&f, "inherited", BIZLOCK_WARN, "do not set sql_log_bin");
	expect_good(&f, "inherited");
}
