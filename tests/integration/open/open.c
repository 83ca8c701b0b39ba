/* What bizlock_open() accepts and refuses. */
#define _GNU_SOURCE 1
#include "cr_test.h"

TestSuite(open, .init = world_begin_empty, .fini = world_end, .timeout = 240);

/* ---- the way to the server --------------------------------------------------- */

Test(open, nobody_listening_is_no_connection)
{
	struct server nowhere = server_over_tcp(world.at, "127.0.0.1", 1);
	struct world w = world_by_way_of(&world, &nowhere);

	expect_open(CONN, &w, OPTIONS("connect_timeout_ms", "2000"), "127.0.0.1");
}

Test(open, a_silent_server_is_given_up_in_time)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	struct server silent = proxy_address(p);
	struct world w = world_by_way_of(&world, &silent);
	int64_t start = now_ms();

	proxy_hold_replies(p, true);
	expect_open(CONN, &w, OPTIONS("connect_timeout_ms", "1000", "io_timeout_ms", "1000"), "");
	cr_assert_lt(now_ms() - start, 20000);
	proxy_stop(p);
}

Test(open, without_a_database_it_is_invalid)
{
	bizlock *b = NULL;

	cr_assert_eq(bizlock_new(&b), BIZLOCK_OK);
	expect(INVALID, b, bizlock_open(b));
	expect_message(b, "database");
	expect(INVALID, b, bizlock_migrate(b));
	expect_message(b, "database");
	bizlock_close(b);
}

Test(open, an_unknown_database_is_named)
{
	char text[512];

	cr_assert_neq(try_open(&world, OPTIONS("database", "no_such_schema"), text), BIZLOCK_OK);
	cr_assert(strstr(text, "no_such_schema"), "%s", text);
}

Test(open, it_may_be_tried_again_after_a_failure)
{
	bizlock *b = client_new(&world, NULL);

	expect(SCHEMA, b, bizlock_open(b));
	world_migrate(&world);
	expect(OK, b, bizlock_open(b));
	works(b);
	bizlock_close(b);
}

Test(open, calls_out_of_order_are_misuse)
{
	bizlock *b = client_new(&world, NULL);

	world_migrate(&world);
	expect(MISUSE, b, acquire(b, "k"));
	expect(MISUSE, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(MISUSE, b, bizlock_verify(b, KEY("k"), NULL));
	cr_assert_leq(bizlock_left_ms(b, KEY("k"), NULL), 0);
	expect(OK, b, bizlock_open(b));
	expect(MISUSE, b, bizlock_open(b));
	expect(MISUSE, b, bizlock_set(b, "lease_ms", "1000"));
	works(b);
	bizlock_close(b);
}

/* ---- servers that will not do -------------------------------------------------------- */

static struct own_server server;

static void end_own_world(void)
{
	if (world.admin)
		world_end();
	own_server_end(&server);
}

TestSuite(own_open, .fini = end_own_world, .timeout = 480);

static void begin_own_world(const char *args)
{
	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	own_server_start(&server, args);
	world_make(&world, &server.at);
}

Test(own_open, a_statement_binlog_is_refused)
{
	begin_own_world("--log-bin --server-id=1 --binlog-format=STATEMENT");
	expect_open(UNSUPPORTED, &world, NULL, "binlog_format");
	db_run(world.admin, "SET GLOBAL binlog_format = 'ROW'");
	world_migrate(&world);
	works(client(NULL));
}

Test(own_open, an_old_server_is_refused)
{
	struct server at;
	struct world by_way;
	struct proxy *p;
	const char *version;

	world_begin();
	p = proxy_start(&world.at, "127.0.0.1");
	at = proxy_address(p);
	by_way = world_by_way_of(&world, &at);
	version = seem_older(p, "5.7", "10.5");
	expect_open(UNSUPPORTED, &by_way, NULL, version);
	expect_open(UNSUPPORTED, &by_way, NULL, server_is_mysql(world.admin) ? "8.0" : "10.6");
	proxy_stop(p);
}

/* Encryption that was asked for must never be left out silently. */
Test(own_open, tls_is_not_given_up_where_the_server_has_none)
{
	struct server at;
	struct world tcp;

	begin_own_world("--skip-ssl");
	world_migrate(&world);
	at = server_over_tcp(world.at, "127.0.0.1", world.at.port);
	tcp = world_by_way_of(&world, &at);
	/* MySQL demands TLS for the first login with a password. */
	at.plain = true;
	mysql_close(db_open(&at, NULL));
	expect_open(OK, &tcp, OPTIONS("ssl_mode", "preferred"), "");
	expect_open(CONN, &tcp, OPTIONS("ssl_mode", "required"), "");
	expect_open(CONN, &tcp, OPTIONS("ssl_mode", "verify_identity"), "");
}
