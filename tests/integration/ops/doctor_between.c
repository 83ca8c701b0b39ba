/* What bizlock_doctor() finds when something between the client and the server forbids or changes
 * statements, or cuts connections. Control characters in a server's texts do not get through. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_findings.h"

static struct proxy *proxy;

static void begin_between(void)
{
	world_begin();
	proxy = proxy_start(&world.at, "127.0.0.1");
}

static void end_between(void)
{
	proxy_stop(proxy);
	world_end();
}

TestSuite(doctor_between, .init = begin_between, .fini = end_between, .timeout = 240);

static struct findings look(void)
{
	struct server at = proxy_address(proxy);
	struct world w = world_by_way_of(&world, &at);

	return doctor_of(&w, OPTIONS("ssl_mode", "disabled"), BIZLOCK_OK);
}

static struct findings look_when(const char *from, const char *to)
{
	proxy_replace(proxy, from, to);
	return look();
}

Test(doctor_between, nothing_is_changed)
{
	struct findings f = look();

	expect_good(&f, SERVERS_OWN);
}

Test(doctor_between, get_lock_is_forbidden)
{
	struct findings f = look_when("GET_LOCK", "GET_LACK");

	expect_finding(&f, "doorbell", BIZLOCK_WARN, "GET_LACK");
	expect_good(&f, SERVERS_OWN " doorbell");
}

Test(doctor_between, kill_query_is_forbidden)
{
	struct findings f = look_when("KILL QUERY", "KILL QUARY");

	expect_finding(&f, "watching", BIZLOCK_WARN, "does not work");
	expect_good(&f, SERVERS_OWN " watching");
}

/* As with a proxy that has numbers of its own for connections. */
Test(doctor_between, kill_query_reaches_nobody)
{
	struct findings f = look_when("KILL QUERY ", "DO    0 +  ");

	expect_finding(&f, "watching", BIZLOCK_WARN, "was not ended");
	f = look_when("IFNULL(IS_USED_LOCK(", "IFNULL(IS_FREE_LOCK(");
	expect_finding(&f, "watching", BIZLOCK_WARN, "does not work");
}

/* As with a proxy that sends each statement to another connection of a pool. */
Test(doctor_between, locks_are_forgotten)
{
	struct findings f = look_when(" IS_USED_LOCK(", "IS_IPV4('1') ,");

	expect_finding(&f, "doorbell", BIZLOCK_WARN, "GET_LOCK does not work");
}

/* As with a proxy that shares the server's connections among its clients. */
Test(doctor_between, statements_run_on_several_connections)
{
	struct findings f = look_when("T CONNECTION_ID()", "T FLOOR(RAND()*9)");

	expect_finding(&f, "proxy", BIZLOCK_BAD, "shares connections");
	expect_good(&f, SERVERS_OWN " proxy");
}

Test(doctor_between, the_sql_mode_is_changed)
{
	struct findings f = look_when("STRICT_ALL_TABLES,", "IGNORE_SPACE,ANSI,");

	expect_finding(&f, "sql_mode", BIZLOCK_BAD, "IGNORE_SPACE");
	expect_good(&f, SERVERS_OWN " sql_mode");
}

Test(doctor_between, the_isolation_is_changed)
{
	struct findings f = look_when("READ COMMITTED", "SERIALIZABLE  ");

	expect_finding(&f, "isolation", BIZLOCK_BAD, "SERIALIZABLE");
	expect_good(&f, SERVERS_OWN " isolation");
}

Test(doctor_between, settings_are_refused)
{
	struct findings f = look_when("SET SESSION autocommit", "SET SESSION autocommix");

	expect_finding(&f, "connection", BIZLOCK_BAD, "autocommix");
	expect_finding(&f, "sql_mode", BIZLOCK_BAD, "SET SESSION");
	expect_finding(&f, "tables", BIZLOCK_GOOD, "version 2");
	expect_finding(&f, "clock", BIZLOCK_GOOD, "");
}

/* ---- what cannot be looked at is a finding --------------------------------------------- */

Test(doctor_between, variables_are_not_shown)
{
	static const char *const needing[] = {"server",        "sql_mode",  "isolation",
	                                      "binlog_format", "read_only", "durability",
	                                      "auto_increment"};
	struct findings f = look_when("SHOW SESSION VARIABLES", "SHOW SESSION VARIABLEZ");

	for (size_t i = 0; i < sizeof(needing) / sizeof(needing[0]); i++)
		expect_finding(&f, needing[i], BIZLOCK_WARN, "could not be looked at");
	expect_finding(&f, "tables", BIZLOCK_GOOD, "");
	expect_finding(&f, "grants", BIZLOCK_GOOD, "");
	expect_finding(&f, "clock", BIZLOCK_GOOD, "");
}

Test(doctor_between, tables_are_not_shown)
{
	static const char *const needing[] = {"tables", "engine", "primary_key", "collation",
	                                      "auto_increment"};
	struct findings f = look_when("information_schema.T", "infirmation_schema.T");

	for (size_t i = 0; i < sizeof(needing) / sizeof(needing[0]); i++)
		expect_finding(&f, needing[i], BIZLOCK_WARN, "could not be looked at");
	expect_good(&f,
	            SERVERS_OWN " tables engine primary_key collation auto_increment additions");
}

Test(doctor_between, status_and_time_are_not_shown)
{
	struct findings f = look_when("SHOW GLOBAL STATUS", "SHOW GLOBAL STATUZ");

	expect_finding(&f, "connections", BIZLOCK_WARN, "could not be looked at");
	f = look_when("UTC_TIMESTAMP(6))", "UTC_TIMESTUMP(6))");
	expect_finding(&f, "clock", BIZLOCK_WARN, "could not be looked at");
	expect_good(&f, SERVERS_OWN " clock");
}

/* ---- lost connections ------------------------------------------------------------------- */

static int keep_last(void *arg, const bizlock_finding *f)
{
	*(int *)arg = f->level;
	return 0;
}

/* Wherever the connection is cut, the doctor ends, says so, and leaves no lock behind. */
Test(doctor_between, connections_that_are_cut)
{
	struct server at = proxy_address(proxy);
	struct world w = world_by_way_of(&world, &at);
	unsigned packets, lost = 0;

	proxy_arm(proxy, NULL);
	look();
	packets = proxy_trace(proxy).count;
	cr_assert_gt(packets, 20);
	for (unsigned i = 0; i < packets; i++) {
		struct fault cut = {.what = FAULT_CUT, .side = i % 2, .packet = i / 2 + 1};
		bizlock *b = client_new(&w, OPTIONS("ssl_mode", "disabled"));
		int rc, last = -1;

		proxy_arm(proxy, &cut);
		rc = bizlock_doctor(b, keep_last, &last);
		cr_assert(rc == BIZLOCK_OK || rc == BIZLOCK_CONN, "%u: %s", i, bizlock_errmsg(b));
		cr_assert(rc == BIZLOCK_OK || last == BIZLOCK_BAD, "%u: %d", i, last);
		lost += rc == BIZLOCK_CONN;
		bizlock_close(b);
		cr_assert_eq(all_rows(&world), 0, "%u", i);
	}
	cr_assert_gt(lost, packets / 4);
}

/* ---- the server's words ----------------------------------------------------------------- */

Test(doctor_between, control_characters_do_not_get_through)
{
	char user[64];
	struct findings f;

	snprintf(user, sizeof(user), "%s\n\x1b[31m", world.schema);
	db_run(world.admin,
	       "CREATE USER `%s`@`%%` IDENTIFIED BY 'x', `%s`@localhost IDENTIFIED BY 'x';"
	       "GRANT SELECT ON `%s`.* TO `%s`@`%%`, `%s`@localhost",
	       user, user, world.schema, user, user);
	f = doctor_of(&world, OPTIONS("user", user, "password", "x"), BIZLOCK_OK);
	db_run(world.admin, "DROP USER `%s`@`%%`, `%s`@localhost", user, user);
	expect_finding(&f, "connection", BIZLOCK_GOOD, "??[31m@");
	expect_finding(&f, "grants", BIZLOCK_BAD, "??[31m`@");
	f = doctor_of(&world, OPTIONS("database", "no\nsuch"), BIZLOCK_OK);
	expect_finding(&f, "connection", BIZLOCK_BAD, "no?such");
	expect_finding(&f, "database", BIZLOCK_BAD, "no?such");
}
