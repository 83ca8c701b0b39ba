/* One address that leads to two servers: to the second one when the first is down, or to both. Each
 * test starts HAProxy or MySQL Router, and servers of its own. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_behind.h"
#include "cr_findings.h"
#include "cr_tx.h"

static struct own_server servers[2];
static struct between between;

static void end_servers(void)
{
	between_end(&between);
	if (world.admin)
		mysql_close(world.admin); /* its server may be down */
	world.admin = NULL;
	own_server_end(&servers[1]);
	own_server_end(&servers[0]);
}

TestSuite(own_one_address, .fini = end_servers, .timeout = 480);

/* The second server has the tables of the first as they are now, and from then on its own. */
static void begin_two(struct server both[2])
{
	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	own_server_start(&servers[0], "--server-id=1");
	world_make(&world, &servers[0].at);
	world_migrate(&world);
	db_run(world.admin, "CREATE TABLE ledger (id INT PRIMARY KEY) ENGINE=InnoDB");
	mysql_close(world.admin);
	own_server_do(&servers[0], "stop");
	own_server_copy(&servers[1], &servers[0]);
	own_server_start(&servers[1], "--server-id=2");
	own_server_do(&servers[0], "restart");
	world.admin = db_open(&servers[0].at, world.schema);
	both[0] = servers[0].at;
	both[1] = servers[1].at;
}

static void begin_haproxy(const char *balance)
{
	struct server both[2];

	need_haproxy();
	begin_two(both);
	haproxy_start(&between, both, 2, balance, "1h");
}

static void begin_router(void)
{
	struct server both[2];

	need_router();
	begin_two(both);
	router_start(&between, both, 2, "next-available", ROUTER_TRANSPARENT);
}

static void commits(bizlock *b, const char *id, int want, const char *word)
{
	MYSQL *tx = db_connect(&between.at, world.schema, CLIENT_MULTI_STATEMENTS, 0);
	int rc;

	tx_begin(tx, 0);
	rc = bizlock_commit(b, KEY(id), NULL, tx);
	cr_assert_eq(rc, want, "%s: %s", bizlock_err_name(rc), bizlock_errmsg(b));
	expect_message(b, word);
	mysql_close(tx);
}

/* The client has no other connection than those that are lost. */
static void follow_failover(void)
{
	bizlock *b = client_behind(&between, NULL);
	MYSQL *second = db_open(&servers[1].at, world.schema);

	/* As on a replica that has kept up: without that, its fences are refused. */
	db_run(second, "ALTER TABLE biz_lock AUTO_INCREMENT = 1000000");
	mysql_close(second);
	expect(OK, b, acquire(b, "before"));
	commits(b, "before", BIZLOCK_OK, "");
	own_server_do(&servers[0], "kill");
	expect(OK, b, acquire(b, "k", .wait_ms = PATIENCE_MS));
	commits(b, "k", BIZLOCK_OK, "");
	commits(b, "before", BIZLOCK_LOST, "the hold is over");
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	bizlock_close(b);
}

Test(own_one_address, a_failover_is_followed)
{
	begin_haproxy("first");
	follow_failover();
}

Test(own_one_address, a_failover_of_router_is_followed)
{
	begin_router();
	follow_failover();
}

/* While no server is there, HAProxy closes each connection at once. */
Test(own_one_address, a_wait_outlasts_the_servers)
{
	bizlock *b;
	struct call c;

	begin_haproxy("first");
	b = client_behind(&between, NULL);
	works(b);
	own_server_do(&servers[1], "kill");
	own_server_do(&servers[0], "kill");
	call_start(&c, b, "k", .wait_ms = 2 * PATIENCE_MS, .owner = "task-1");
	steadily(!c.done, 1000);
	own_server_do(&servers[0], "restart");
	expect(OK, b, call_join(&c));
	expect(OK, b, bizlock_release(b, KEY("k"), "task-1", NULL));
	bizlock_close(b);
}

/* Either would give the lock, and neither knows of the other's rows. A client sees it at its second
 * connection, and its calls go on with the first. */
Test(own_one_address, servers_that_share_no_tables_are_noticed)
{
	struct world w;
	struct findings f;
	MYSQL *tx = mysql_init(NULL);
	bizlock *b;

	begin_haproxy("roundrobin");
	w = world_behind(&between);
	f = doctor_of(&w, NULL, BIZLOCK_OK);
	expect_finding(&f, "proxy", BIZLOCK_BAD, "one server");
	b = client_behind(&between, NULL);
	expect(OK, b, acquire(b, "k"));
	expect(CONN, b, bizlock_connect(b, tx));
	expect_message(b, "leads to two servers");
	mysql_close(tx);
	bizlock_close(b);
}
