/* bizlock_connect(): a program's own handle leads to where the client's connections lead, and is a
 * plain connection. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_tx.h"

TestSuite(connecting, .init = tx_world_begin, .fini = tx_world_end, .timeout = 240);

#define IDENTITY "SELECT CRC32(CONCAT(@@hostname, ':', @@port, ':', @@server_id))"

static MYSQL *handle(void)
{
	MYSQL *tx = mysql_init(NULL);

	cr_assert(tx);
	return tx;
}

static MYSQL *connected(bizlock *b)
{
	MYSQL *tx = handle();

	expect(OK, b, bizlock_connect(b, tx));
	return tx;
}

static bool says(MYSQL *tx, const char *expression, const char *want)
{
	char *text = db_text(tx, "SELECT %s", expression);
	bool same =
	        strncmp(text, want, strlen(want)) == 0 && strcmp(text + strlen(want), "\n") == 0;

	if (!same)
		fprintf(stderr, "%s is %s", expression, text);
	free(text);
	return same;
}

Test(connecting, leads_to_the_clients_server_and_database)
{
	bizlock *b = client(NULL);
	MYSQL *tx = connected(b);

	cr_assert_eq(db_number(tx, IDENTITY), db_number(world.admin, IDENTITY));
	cr_assert(says(tx, "DATABASE()", world.schema));
	mysql_close(tx);
	works(b);
}

/* What bizlock sets for its own sessions would surprise a program. */
Test(connecting, is_a_plain_connection)
{
	static const char *const variables[] = {
	        "@@autocommit",      "@@sql_mode",     "@@innodb_lock_wait_timeout",
	        "@@time_zone",       "@@wait_timeout", "@@lock_wait_timeout",
	        "@@max_sort_length",
	};
	bizlock *b = client(NULL);
	MYSQL *tx = connected(b), *plain = db_open(&world.at, world.schema);

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		char *want = db_text(plain, "SELECT %s", variables[i]);

		want[strlen(want) - 1] = '\0';
		cr_assert(says(tx, variables[i], want));
		free(want);
	}
	cr_assert(says(tx, "@@character_set_client", "utf8mb4"));
	cr_assert(mysql_query(tx, "SELECT 1; SELECT 2") != 0, "one statement a packet");
	cr_assert_eq(db_number(tx, "SELECT 41 + 1"), 42);
	mysql_close(plain);
	mysql_close(tx);
}

Test(connecting, carries_a_fenced_commit)
{
	bizlock *b = client(NULL);
	MYSQL *tx = connected(b);

	expect(OK, b, acquire(b, "k", .lease_ms = 600000));
	db_run(tx, "START TRANSACTION");
	db_run(tx, "INSERT INTO ledger VALUES (1)");
	expect(OK, b, bizlock_commit(b, KEY("k"), NULL, tx));
	cr_assert(ledger_has(1));
	db_run(tx, "START TRANSACTION");
	db_run(tx, "INSERT INTO ledger VALUES (2)");
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(NOT_OWNER, b, bizlock_commit(b, KEY("k"), NULL, tx));
	cr_assert_not(ledger_has(2));
	mysql_close(tx);
}

Test(connecting, outlives_the_client)
{
	bizlock *b = client_open(&world, NULL);
	MYSQL *tx = connected(b);

	bizlock_close(b);
	cr_assert_eq(db_number(tx, "SELECT 42"), 42);
	mysql_close(tx);
}

/* ---- what is refused --------------------------------------------------------------------- */

Test(connecting, takes_no_null_and_no_client_that_is_not_open)
{
	bizlock *b = client(NULL), *closed = client_new(&world, NULL);
	MYSQL *tx = handle();

	expect(INVALID, b, bizlock_connect(b, NULL));
	expect(MISUSE, closed, bizlock_connect(closed, tx));
	expect(OK, b, bizlock_connect(b, tx));
	mysql_close(tx);
	bizlock_close(closed);
}

Test(connecting, a_connected_handle_is_misuse_and_stays_as_it_is)
{
	bizlock *b = client(NULL);
	MYSQL *tx = tx_open();

	tx_begin(tx, 1);
	expect(MISUSE, b, bizlock_connect(b, tx));
	expect_message(b, "mysql_init()");
	tx_commits(tx, 1);
}

/* The connectors would leak what such a handle keeps. */
Test(connecting, a_handle_whose_connection_was_lost_is_misuse)
{
	bizlock *b = client(NULL);
	MYSQL *tx = connected(b);

	db_run(world.admin, "KILL %lu", mysql_thread_id(tx));
	eventually(mysql_query(tx, "SELECT 1") != 0);
	expect(MISUSE, b, bizlock_connect(b, tx));
	mysql_close(tx);
}

/* An address that leads to another server from one moment to the next. */
Test(connecting, another_server_is_refused)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	MYSQL *tx = handle();

	proxy_replace(p, "@@server_id) LIMIT 1", "@@port + 07) LIMIT 1");
	expect(CONN, b, bizlock_connect(b, tx));
	expect_message(b, "tx is connected to");
	cr_assert(mysql_query(tx, "SELECT 1") != 0, "it must lead nowhere");
	mysql_close(tx);
	proxy_stop(p);
}

/* ---- how it connects --------------------------------------------------------------------- */

Test(connecting, again_when_the_first_host_has_gone)
{
	struct proxy *p[2] = {proxy_start(&world.at, "127.0.0.1"),
	                      proxy_start(&world.at, "127.0.0.1")};
	char hosts[64];
	bizlock *b;
	MYSQL *tx;

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u,127.0.0.1:%u", proxy_address(p[0]).port,
	         proxy_address(p[1]).port);
	b = client(OPTIONS("host", hosts, "ssl_mode", "disabled"));
	tx = connected(b);
	cr_assert_eq(db_number(tx, "SELECT 1"), 1);
	proxy_stop(p[0]);
	cr_assert(mysql_query(tx, "SELECT 1") != 0);
	mysql_close(tx);
	tx = connected(b);
	cr_assert_eq(db_number(tx, IDENTITY), db_number(world.admin, IDENTITY));
	proxy_stop(p[1]);
	mysql_close(tx);
	tx = handle();
	expect(CONN, b, bizlock_connect(b, tx));
	mysql_close(tx);
}

static unsigned timeout_of(MYSQL *tx, enum mysql_option option)
{
	unsigned s = 99;

	cr_assert_eq(mysql_get_option(tx, option, &s), 0);
	return s;
}

Test(connecting, timeouts_are_the_programs_or_else_the_clients)
{
	bizlock *b = client(OPTIONS("connect_timeout_ms", "3000", "io_timeout_ms", "7000"));
	MYSQL *tx = connected(b);
	unsigned long_s = 77;

	cr_assert_eq(timeout_of(tx, MYSQL_OPT_CONNECT_TIMEOUT), 3);
	cr_assert_eq(timeout_of(tx, MYSQL_OPT_READ_TIMEOUT), 7);
	cr_assert_eq(timeout_of(tx, MYSQL_OPT_WRITE_TIMEOUT), 7);
	mysql_close(tx);
	tx = handle();
	mysql_options(tx, MYSQL_OPT_READ_TIMEOUT, &long_s);
	expect(OK, b, bizlock_connect(b, tx));
	cr_assert_eq(timeout_of(tx, MYSQL_OPT_READ_TIMEOUT), 77);
	cr_assert_eq(timeout_of(tx, MYSQL_OPT_WRITE_TIMEOUT), 7);
	mysql_close(tx);
}

/* A user of its own, so that its password may change. */
static struct world user_world(const char *password)
{
	struct server at = world.at;

	db_run(world.admin, "CREATE USER '%s'@'%%' IDENTIFIED BY '%s'", world.schema, password);
	db_run(world.admin, "GRANT ALL ON %s.* TO '%s'@'%%'", world.schema, world.schema);
	snprintf(at.user, sizeof(at.user), "%s", world.schema);
	snprintf(at.password, sizeof(at.password), "%s", password);
	return world_by_way_of(&world, &at);
}

Test(connecting, with_the_password_that_is_in_force)
{
	struct world w = user_world("first");
	bizlock *b = client_open(&w, NULL);
	MYSQL *tx = connected(b);

	mysql_close(tx);
	db_run(world.admin, "ALTER USER '%s'@'%%' IDENTIFIED BY 'second'", world.schema);
	tx = handle();
	expect(CONN, b, bizlock_connect(b, tx));
	cr_assert(!strstr(bizlock_errmsg(b), "first"), "%s", bizlock_errmsg(b));
	mysql_close(tx);
	expect(OK, b, bizlock_set(b, "password", "second"));
	mysql_close(connected(b));
	bizlock_close(b);
	db_run(world.admin, "DROP USER '%s'@'%%'", world.schema);
}

Test(connecting, with_tls_where_the_client_has_it)
{
	struct world w;
	bizlock *b;
	MYSQL *tx;

	skip_unless(world.at.tls_ca[0] && world.at.host[0], "the server has no TLS, or no TCP");
	w = world;
	w.at.socket[0] = '\0';
	b = client_open(&w, OPTIONS("ssl_mode", "verify_ca", "ssl_ca", world.at.tls_ca));
	tx = connected(b);
	cr_assert(mysql_get_ssl_cipher(tx));
	mysql_close(tx);
	bizlock_close(b);
	b = client_open(&w, OPTIONS("ssl_mode", "disabled"));
	tx = connected(b);
	cr_assert_null(mysql_get_ssl_cipher(tx));
	mysql_close(tx);
	bizlock_close(b);
}

/* ---- a server of its own ------------------------------------------------------------------ */

static struct own_server server;
static struct world own;

static void end_own(void)
{
	if (own.admin)
		mysql_close(own.admin);
	own_server_end(&server);
}

TestSuite(own_connecting, .fini = end_own, .timeout = 240);

static bool tested_on_mysql(void)
{
	struct server at = server_from_env();
	MYSQL *db = db_open(&at, NULL);
	bool is = server_is_mysql(db);

	mysql_close(db);
	return is;
}

Test(own_connecting, the_character_set_is_not_the_servers)
{
	bizlock *b;
	MYSQL *tx;

	not_here_unless(!tested_on_mysql(),
	                "MySQL cannot be told to ignore a client's character set");
	skip_unless(own_server_possible(), "no server can be started");
	own_server_start(&server,
	                 "--skip-character-set-client-handshake --character-set-server=latin1");
	world_make(&own, &server.at);
	world_migrate(&own);
	b = client_open(&own, NULL);
	tx = connected(b);
	cr_assert(says(tx, "@@character_set_client", "utf8mb4"));
	cr_assert_str_eq(mysql_character_set_name(tx), "utf8mb4");
	mysql_close(tx);
	bizlock_close(b);
}
