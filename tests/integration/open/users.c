/* Users with few privileges, and encrypted connections. */
#define _GNU_SOURCE 1
#include <bizlock_tx.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "cr_test.h"

#define PASSWORD "c0rrect-horse"
#define WRONG "wr0ng-battery"

static void end_user(void)
{
	db_run(world.admin, "DROP USER IF EXISTS '%s'@'%%', '%s'@'localhost'", world.schema,
	       world.schema);
	world_end();
}

/* A user named like the schema. It is made for two hosts, because an anonymous local user would
 * come before the first. */
static void make_user(const char *how, const char *tables)
{
	static const char *const hosts[] = {"%", "localhost"};

	for (int i = 0; i < 2; i++) {
		db_run(world.admin, "CREATE USER '%s'@'%s' IDENTIFIED BY '" PASSWORD "' %s",
		       world.schema, hosts[i], how);
		for (const char *t = tables; *t; t += strlen(t) + 1)
			db_run(world.admin,
			       "GRANT SELECT, INSERT, UPDATE, DELETE ON `%s`.`%s` TO '%s'@'%s'",
			       world.schema, t, world.schema, hosts[i]);
	}
}

#define OWN_TABLES "biz_lock\0biz_row_lock\0biz_lock_schema\0"

TestSuite(users, .init = world_begin, .fini = end_user, .timeout = 240);

Test(users, a_wrong_password_is_not_repeated)
{
	char text[512];

	make_user("", OWN_TABLES);
	cr_assert_eq(try_open(&world, OPTIONS("user", world.schema, "password", WRONG), text),
	             BIZLOCK_CONN, "%s", text);
	cr_assert(strstr(text, world.schema), "the user is not named: %s", text);
	cr_assert(!strstr(text, WRONG), "%s", text);
	expect_open(OK, &world, OPTIONS("user", world.schema, "password", PASSWORD), "");
}

static int count_row(void *arg, const bizlock_info *info)
{
	(void)info;
	++*(int *)arg;
	return 0;
}

Test(users, four_privileges_are_enough)
{
	bizlock *admin = client(NULL), *b;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct call call;
	int rows = 0;

	make_user("", OWN_TABLES);
	b = client(OPTIONS("user", world.schema, "password", PASSWORD));
	expect(OK, b, acquire(b, "k", .grant = &grant));
	expect(OK, b, acquire(b, "k"));
	expect(OK, b, bizlock_renew(b, KEY("k"), NULL, 0));
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	expect(OK, b, bizlock_each(b, NULL, count_row, &rows));
	cr_assert_eq(rows, 1);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(OK, b, bizlock_break(b, KEY("k"), grant.fence));
	expect(LOST, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(OK, b, bizlock_reap(b, NULL, NULL));

	expect(OK, admin, acquire_as(admin, "k", "task-1"));
	call_start(&call, b, "k", .wait_ms = -1, .owner = "task-2");
	call_blocks(&call);
	expect(OK, admin, bizlock_release(admin, KEY("k"), "task-1", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
}

/* The same user on a connection of its own. */
Test(users, four_privileges_are_enough_in_transactions)
{
	struct server at = world.at;
	bizlock *b;
	MYSQL *tx;

	make_user("", OWN_TABLES);
	b = client(OPTIONS("user", world.schema, "password", PASSWORD));
	snprintf(at.user, sizeof(at.user), "%s", world.schema);
	snprintf(at.password, sizeof(at.password), "%s", PASSWORD);
	tx = db_open(&at, world.schema);
	expect(OK, b, acquire(b, "k"));
	for (uint32_t flags = 0; flags <= BIZLOCK_ROW_SKIP; flags++) {
		db_run(tx, "START TRANSACTION");
		expect(OK, b, bizlock_row_lock(b, KEY("k"), tx, flags));
		expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
		expect(OK, b, bizlock_commit(b, KEY("k"), NULL, tx));
	}
	mysql_close(tx);
}

Test(users, without_privileges_there_is_no_lock)
{
	make_user("", "");
	expect_open(CONN, &world, OPTIONS("user", world.schema, "password", PASSWORD),
	            world.schema);
}

Test(users, rows_that_another_has_locked_are_waited_for_in_time)
{
	bizlock *b = client(NULL);

	db_run(world.admin, "INSERT INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout,"
	                    " gmt_create, gmt_modified) VALUES ('k', 'test', 'x', 1,"
	                    " '2000-01-01', '2000-01-01', '2000-01-01')");
	db_run(world.admin, "START TRANSACTION");
	db_run(world.admin, "SELECT * FROM biz_lock FOR UPDATE");
	expect(TIMEOUT, b, acquire(b, "k", 300, 0, NULL));
	db_run(world.admin, "ROLLBACK");
	expect(OK, b, acquire(b, "k", PATIENCE_MS, 0, NULL));
}

static int ignore_run(void *arg, const bizlock_run *run)
{
	(void)arg;
	(void)run;
	return 0;
}

/* A program that migrates at its start goes on after the tables got one more, which nobody has
 * granted to it yet. */
Test(users, a_table_of_runs_that_is_not_granted_is_done_without)
{
	bizlock_run_result result = BIZLOCK_RUN_RESULT_INIT;
	bizlock *b;

	make_user("", OWN_TABLES);
	b = client_new(&world, OPTIONS("user", world.schema, "password", PASSWORD));
	expect(OK, b, bizlock_migrate(b));
	expect(OK, b, bizlock_open(b));
	works(b);
	expect(OK, b, acquire(b, "k"));
	expect(DB, b, bizlock_run_begin(b, KEY("k"), NULL));
	expect_message(b, "denied");
	expect(DB, b, bizlock_run_end(b, KEY("k"), NULL, &result));
	expect(DB, b, bizlock_each_run(b, NULL, NULL, ignore_run, NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	bizlock_close(b);
}

Test(users, migrating_needs_more)
{
	bizlock *b;

	make_user("", OWN_TABLES);
	db_run(world.admin, "DROP TABLE biz_row_lock");
	b = client_new(&world, OPTIONS("user", world.schema, "password", PASSWORD));
	expect(DB, b, bizlock_migrate(b));
	expect_message(b, world.schema);
	bizlock_close(b);
}

/* ---- TLS ------------------------------------------------------------------------- */

static const char foreign_ca[] =
        "-----BEGIN CERTIFICATE-----\n"
        "MIIBnDCCAUOgAwIBAgIUWqy8aD/lssKwFRcNg+PYxw1bTVEwCgYIKoZIzj0EAwIw\n"
        "IzEhMB8GA1UEAwwYQSBDQSB0aGF0IHNpZ25lZCBub3RoaW5nMCAXDTI2MTEyMTAx\n"
        "NDQzOFoYDzIxMjYxMDI4MDE0NDM4WjAjMSEwHwYDVQQDDBhBIENBIHRoYXQgc2ln\n"
        "bmVkIG5vdGhpbmcwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASLIWNOBnimljbc\n"
        "9ZjMQ0JEbHmf5BLTX5Fqdh0m/p+reMcC1ouopTLd29KihNgUWXg2BHVqG6bdZ35Z\n"
        "rZJ7yhhto1MwUTAdBgNVHQ4EFgQUarsYFlvzXlIuRwWSWiD0yWYY//wwHwYDVR0j\n"
        "BBgwFoAUarsYFlvzXlIuRwWSWiD0yWYY//wwDwYDVR0TAQH/BAUwAwEB/zAKBggq\n"
        "hkjOPQQDAgNHADBEAiBxiIs7uwdGVxnLZZcExlMwZq/joLbOxisYOmBpUPhcPAIg\n"
        "Icm4aIQcHdoAtlCVx7c8Ye/+DtzAF1nhC9/TVMpWaJY=\n"
        "-----END CERTIFICATE-----\n";

/* The server by TCP, with a user whose connections must be encrypted. */
static struct world tls_world(void)
{
	struct server at = world.at;

	skip_unless(at.tls_ca[0] && at.port, "BIZLOCK_TEST_TLS_CA and _PORT are not set");
	make_user("REQUIRE SSL", OWN_TABLES);
	at = server_over_tcp(at, at.host[0] ? at.host : "127.0.0.1", at.port);
	if (strcmp(at.host, "localhost") == 0)
		at = server_over_tcp(at, "127.0.0.1", at.port);
	snprintf(at.user, sizeof(at.user), "%s", world.schema);
	snprintf(at.password, sizeof(at.password), "%s", PASSWORD);
	return world_by_way_of(&world, &at);
}

Test(users, tls_is_used_when_asked_for)
{
	struct world w = tls_world();

	expect_open(CONN, &w, OPTIONS("ssl_mode", "disabled"), "");
	expect_open(OK, &w, OPTIONS("ssl_mode", "preferred"), "");
	expect_open(OK, &w, OPTIONS("ssl_mode", "required"), "");
	expect_open(OK, &w, OPTIONS("ssl_mode", "verify_ca", "ssl_ca", w.at.tls_ca), "");
	expect_open(OK, &w, OPTIONS("ssl_mode", "verify_identity", "ssl_ca", w.at.tls_ca), "");
}

Test(users, tls_of_a_foreign_authority_is_refused)
{
	struct world w = tls_world();
	char path[32];

	write_file(path, foreign_ca);
	expect_open(CONN, &w, OPTIONS("ssl_mode", "verify_ca", "ssl_ca", path), "");
	expect_open(CONN, &w, OPTIONS("ssl_mode", "verify_identity", "ssl_ca", path), "");
	unlink(path);
}

/* Under TLS, a connection that ends without a closing message is a different error. */
Test(users, tls_connections_that_break_are_replaced)
{
	struct world w = tls_world();
	bizlock *b = client_open(&w, OPTIONS("ssl_mode", "required"));

	expect(OK, b, acquire(b, "k"));
	kill_connections();
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	kill_connections();
	expect(OK, b, acquire(b, "other"));
	kill_connections();
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	bizlock_close(b);
}

/* The server's certificate does not name this address. */
Test(users, tls_of_another_host_is_refused)
{
	struct world w = tls_world();
	struct proxy *p = proxy_start(&w.at, "127.0.0.2");
	struct server at = proxy_address(p);

	w = world_by_way_of(&w, &at);
	expect_open(CONN, &w, OPTIONS("ssl_mode", "verify_identity", "ssl_ca", w.at.tls_ca), "");
	expect_open(OK, &w, OPTIONS("ssl_mode", "required"), "");
	proxy_stop(p);
}

/* ---- a server that has no connection left ----------------------------------------------- */

static MYSQL *the_only_connection(void)
{
	struct server at = world.at;

	make_user("WITH MAX_USER_CONNECTIONS 1", OWN_TABLES);
	snprintf(at.user, sizeof(at.user), "%s", world.schema);
	snprintf(at.password, sizeof(at.password), "%s", PASSWORD);
	return db_open(&at, world.schema);
}

struct opening {
	bizlock *b;
	atomic_bool done;
	int rc;
	char errmsg[512];
	pthread_t thread;
};

static void *run_opening(void *arg)
{
	struct opening *o = arg;

	o->rc = bizlock_open(o->b);
	if (o->rc != BIZLOCK_OK)
		snprintf(o->errmsg, sizeof(o->errmsg), "%s", bizlock_errmsg(o->b));
	o->done = true;
	return NULL;
}

static void opening_start(struct opening *o)
{
	*o = (struct opening){
	        .b = client_new(&world, OPTIONS("user", world.schema, "password", PASSWORD,
	                                        "max_connections", "1", "open_wait_ms", "60000"))};
	cr_assert_eq(pthread_create(&o->thread, NULL, run_opening, o), 0);
	steadily(!o->done, 500);
}

Test(users, a_server_that_is_full_is_waited_for)
{
	MYSQL *only = the_only_connection();
	struct opening o;

	opening_start(&o);
	mysql_close(only);
	pthread_join(o.thread, NULL);
	cr_assert_eq(o.rc, BIZLOCK_OK, "%s", o.errmsg);
	bizlock_close(o.b);
}

Test(users, an_interrupt_ends_the_wait_for_it)
{
	MYSQL *only = the_only_connection();
	struct opening o;

	opening_start(&o);
	bizlock_interrupt(o.b);
	pthread_join(o.thread, NULL);
	cr_assert_eq(o.rc, BIZLOCK_CANCELLED, "%s", o.errmsg);
	bizlock_close(o.b);
	mysql_close(only);
}

static void *only_open(void *b)
{
	return bizlock_open(b) == BIZLOCK_CANCELLED ? b : NULL;
}

Test(users, a_close_ends_the_wait_for_it)
{
	MYSQL *only = the_only_connection();
	bizlock *b = client_new(&world, OPTIONS("user", world.schema, "password", PASSWORD,
	                                        "max_connections", "1", "open_wait_ms", "3600000"));
	pthread_t thread;
	void *cancelled;

	cr_assert_eq(pthread_create(&thread, NULL, only_open, b), 0);
	pause_ms(500); /* sooner, there would be nothing to end, and all is well, too */
	bizlock_close(b);
	pthread_join(thread, &cancelled);
	cr_assert(cancelled);
	mysql_close(only);
}

/* Time does not mend it. */
Test(users, a_wrong_password_is_not_waited_for)
{
	int64_t start = now_ms();

	make_user("", OWN_TABLES);
	expect_open(CONN, &world,
	            OPTIONS("user", world.schema, "password", WRONG, "open_wait_ms", "600000"),
	            "Access denied");
	cr_assert_lt(now_ms() - start, 60000);
}

/* ---- a password that changes -------------------------------------------------------------- */

#define ROTATED "n3w-zebra"

static void rotate(void)
{
	for (const char *const *host = OPTIONS("%", "localhost"); *host; host++)
		db_run(world.admin, "ALTER USER '%s'@'%s' IDENTIFIED BY '" ROTATED "'",
		       world.schema, *host);
	kill_connections();
}

static void option_file(const char *path, const char *password)
{
	FILE *file = fopen(path, "w");

	cr_assert(file);
	fprintf(file, "[client]\npassword=%s\n", password);
	cr_assert_eq(fclose(file), 0);
}

/* What is set comes before what the file says: so the password is not. */
static bizlock *client_by_file(const char *path)
{
	char port[8];
	const char *const options[] = {"host",     world.at.host, "port",          port,
	                               "user",     world.schema,  "defaults_file", path,
	                               "database", world.schema,  "lease_ms",      "20000"};
	bizlock *b;

	snprintf(port, sizeof(port), "%u", world.at.port);
	expect(OK, NULL, bizlock_new(&b));
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i += 2)
		expect(OK, b, bizlock_set(b, options[i], options[i + 1]));
	expect(OK, b, bizlock_open(b));
	return b;
}

/* Whoever keeps a hold meanwhile keeps it, and calls find their way. */
Test(users, a_password_that_is_rotated_in_its_file_is_read_again)
{
	char path[32];
	long long end;
	bizlock *b;

	make_user("", OWN_TABLES);
	write_file(path, "[client]\npassword=" PASSWORD "\n");
	b = client_by_file(path);
	expect(OK, b, acquire_renewed(b, "held", .owner = "o"));
	rotate();
	end = row_of(&world, KEY("held")).timeout_us;
	expect(CONN, b, acquire(b, "k"));
	expect_message(b, "Access denied");
	option_file(path, ROTATED);
	works(b);
	eventually(row_of(&world, KEY("held")).timeout_us > end); /* it has been renewed */
	expect(OK, b, bizlock_verify(b, KEY("held"), "o"));
	expect(OK, b, bizlock_release(b, KEY("held"), "o", NULL));
	bizlock_close(b);
	unlink(path);
}

Test(users, a_password_can_be_set_while_the_client_is_open)
{
	bizlock *b;

	make_user("", OWN_TABLES);
	b = client(OPTIONS("user", world.schema, "password", PASSWORD));
	works(b);
	expect(MISUSE, b, bizlock_set(b, "user", "somebody"));
	rotate();
	expect(CONN, b, acquire(b, "k"));
	expect(OK, b, bizlock_set(b, "password", ROTATED));
	works(b);
}
