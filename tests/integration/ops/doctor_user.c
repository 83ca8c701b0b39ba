/* What bizlock_doctor() finds at users and in the client's own options; and good and bad calls of
 * it. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_findings.h"

#define PASSWORD "c0rrect-horse"

static void end_user(void)
{
	db_run(world.admin, "DROP USER IF EXISTS '%s'@'%%', '%s'@'localhost'", world.schema,
	       world.schema);
	world_end();
}

TestSuite(doctor_user, .init = world_begin, .fini = end_user, .timeout = 240);

static struct findings look(const char *const *options)
{
	return doctor_of(&world, options, BIZLOCK_OK);
}

/* ---- the user ------------------------------------------------------------------------ */

#define AS_USER OPTIONS("user", world.schema, "password", PASSWORD)

/* A user named like the schema. It is made for two hosts, because an anonymous local user would
 * come before the first. */
static void make_user(void)
{
	db_run(world.admin,
	       "CREATE USER '%s'@'%%' IDENTIFIED BY '" PASSWORD "', '%s'@'localhost' IDENTIFIED BY"
	       " '" PASSWORD "'",
	       world.schema, world.schema);
}

static void grant(const char *privileges, const char *table)
{
	db_run(world.admin, "GRANT %s ON `%s`.%s TO '%s'@'%%', '%s'@'localhost'", privileges,
	       world.schema, table, world.schema, world.schema);
}

Test(doctor_user, a_user_without_any_privilege)
{
	struct findings f;

	make_user();
	f = look(AS_USER);
	expect_finding(&f, "connection", BIZLOCK_BAD, world.schema);
	expect_finding(&f, "database", BIZLOCK_BAD, "denied");
	expect_finding(&f, "database", BIZLOCK_BAD, "bizlock_grants");
	cr_assert(!finding_of(&f, "tables"));
	cr_assert(!finding_of(&f, "grants"));
	expect_good(&f, SERVERS_OWN " connection database");
}

Test(doctor_user, a_user_whose_privileges_are_elsewhere)
{
	struct findings f;

	make_user();
	db_run(world.admin, "CREATE TABLE ledger (id INT)");
	grant("SELECT", "ledger");
	f = look(AS_USER);
	expect_finding(&f, "connection", BIZLOCK_GOOD, world.schema);
	expect_finding(&f, "tables", BIZLOCK_BAD, "may not see");
	expect_finding(&f, "grants", BIZLOCK_BAD,
	               "missing: SELECT, INSERT, UPDATE, DELETE on biz_lock");
	expect_finding(&f, "grants", BIZLOCK_BAD, "missing: SELECT on biz_lock_schema");
	heal(&f, "grants");
	f = look(AS_USER);
	expect_good(&f, SERVERS_OWN);
}

Test(doctor_user, each_privilege_that_is_missing_is_named)
{
	static const char *const tables[] = {"biz_lock", "biz_row_lock"};
	static const char *const privileges[] = {"SELECT", "INSERT", "UPDATE", "DELETE"};

	make_user();
	grant("SELECT, INSERT, UPDATE, DELETE", "biz_lock");
	grant("SELECT, INSERT, UPDATE, DELETE", "biz_row_lock");
	grant("SELECT", "biz_lock_schema");
	grant("SELECT, INSERT, UPDATE", "biz_run");
	for (int i = 0; i < 8; i++) {
		const char *table = tables[i / 4], *privilege = privileges[i % 4];
		char word[64];
		struct findings f;

		db_run(world.admin, "REVOKE %s ON `%s`.%s FROM '%s'@'%%', '%s'@'localhost'",
		       privilege, world.schema, table, world.schema, world.schema);
		snprintf(word, sizeof(word), "missing: %s on %s", privilege, table);
		f = look(AS_USER);
		expect_finding(&f, "grants", BIZLOCK_BAD, word);
		expect_good(&f, SERVERS_OWN " grants lock");
		heal(&f, "grants");
		f = look(AS_USER);
		expect_good(&f, SERVERS_OWN);
	}
}

/* Locks work without the table of runs. */
Test(doctor_user, privileges_on_the_table_of_runs_are_a_warning)
{
	struct findings f;

	make_user();
	grant("SELECT, INSERT, UPDATE, DELETE", "biz_lock");
	grant("SELECT, INSERT, UPDATE, DELETE", "biz_row_lock");
	grant("SELECT", "biz_lock_schema");
	f = look(AS_USER);
	expect_finding(&f, "tables", BIZLOCK_WARN, "biz_run: missing, or this user may not see it");
	expect_finding(&f, "grants", BIZLOCK_WARN, "missing: SELECT, INSERT, UPDATE on biz_run");
	heal(&f, "grants");
	f = look(AS_USER);
	expect_good(&f, SERVERS_OWN);
}

/* A privilege on one column is not one on the table. */
Test(doctor_user, privileges_on_columns_are_not_enough)
{
	struct findings f;

	make_user();
	grant("SELECT (biz_id), INSERT, UPDATE (owner), DELETE", "biz_lock");
	grant("SELECT, INSERT, UPDATE, DELETE", "biz_row_lock");
	grant("SELECT", "biz_lock_schema");
	grant("SELECT, INSERT, UPDATE", "biz_run");
	f = look(AS_USER);
	expect_finding(&f, "grants", BIZLOCK_BAD, "missing: SELECT, UPDATE on biz_lock");
}

Test(doctor_user, a_database_that_is_not_there)
{
	struct findings f = look(OPTIONS("database", "no_such_schema"));

	expect_finding(&f, "connection", BIZLOCK_BAD, "no_such_schema");
	expect_finding(&f, "database", BIZLOCK_BAD, "no_such_schema");
	expect_finding(&f, "server", BIZLOCK_GOOD, "");
	cr_assert(!finding_of(&f, "tables"));
}

/* ---- the client's own options ----------------------------------------------------------- */

Test(doctor_user, options_of_the_client)
{
	struct findings f = look(OPTIONS("queue", "off", "max_connections", "1000"));

	expect_finding(&f, "doorbell", BIZLOCK_WARN, "queue");
	expect_finding(&f, "connections", BIZLOCK_WARN, "max_connections");
	cr_assert(!finding_of(&f, "watching"));
	f = look(OPTIONS("max_connections", "3"));
	expect_finding(&f, "watching", BIZLOCK_WARN, "4 or more");
}

Test(doctor_user, the_first_of_several_hosts_that_answers)
{
	struct server tcp = server_over_tcp(world.at, "127.0.0.1", world.at.port);
	struct world w = world_by_way_of(&world, &tcp);
	char hosts[64];
	struct findings f;

	skip_unless(world.at.port && strcmp(world.at.host, "127.0.0.1") == 0,
	            "the server has no port on this machine");
	snprintf(hosts, sizeof(hosts), "127.0.0.1:1,127.0.0.1:%u", world.at.port);
	f = doctor_of(&w, OPTIONS("host", hosts), BIZLOCK_OK);
	expect_good(&f, SERVERS_OWN);
	expect_finding(&f, "connection", BIZLOCK_GOOD, "127.0.0.1");
}

Test(doctor_user, no_server)
{
	struct server nowhere = server_over_tcp(world.at, "127.0.0.1", 1);
	struct world w = world_by_way_of(&world, &nowhere);
	struct findings f = doctor_of(&w, NULL, BIZLOCK_CONN);

	cr_assert_eq(f.count, 1);
	expect_finding(&f, "connection", BIZLOCK_BAD, "127.0.0.1");
}

Test(doctor_user, a_wrong_password_is_not_shown)
{
	struct findings f;

	make_user();
	f = doctor_of(&world, OPTIONS("user", world.schema, "password", "wr0ng-battery"),
	              BIZLOCK_CONN);
	cr_assert_eq(f.count, 1);
	expect_finding(&f, "connection", BIZLOCK_BAD, world.schema);
	cr_assert(!strstr(f.all[0].text, "wr0ng-battery"), "%s", f.all[0].text);
}

/* ---- calls ---------------------------------------------------------------------------------- */

struct stopped {
	bizlock *use;
	unsigned count;
};

static int use_and_stop(void *arg, const bizlock_finding *f)
{
	struct stopped *s = arg;

	(void)f;
	works(s->use);
	return ++s->count == 3;
}

Test(doctor_user, the_callback_may_call_the_library_and_end_the_walk)
{
	struct stopped s = {client(OPTIONS("max_connections", "1")), 0};

	expect(OK, s.use, bizlock_doctor(s.use, use_and_stop, &s));
	cr_assert_eq(s.count, 3);
}

Test(doctor_user, bad_calls)
{
	bizlock *b = client_new(&world, NULL), *nowhere = NULL;
	struct stopped s = {NULL, 0};

	expect(INVALID, b, bizlock_doctor(b, NULL, NULL));
	expect_message(b, "fn");
	cr_assert_eq(bizlock_doctor(NULL, use_and_stop, &s), BIZLOCK_INVALID);
	cr_assert_eq(bizlock_new(&nowhere), BIZLOCK_OK);
	expect(INVALID, nowhere, bizlock_doctor(nowhere, use_and_stop, &s));
	expect_message(nowhere, "database");
	cr_assert_eq(s.count, 0);
	bizlock_close(nowhere);
	bizlock_close(b);
}
