/* MySQL Router in front of a server: nothing is missing behind it, unless it shares connections. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_behind.h"
#include "cr_findings.h"

static struct between router;

static void end_between(void)
{
	between_end(&router);
	world_end();
}

TestSuite(router, .init = world_begin, .fini = end_between, .timeout = 240);

static void begin_with(const char *more)
{
	need_router();
	skip_unless(world.at.port, "the server has no port");
	router_start(&router, &world.at, 1, "next-available", more);
}

Test(router, locks_work)
{
	begin_with(ROUTER_TRANSPARENT);
	locks_work_behind(&router);
}

Test(router, a_waiter_is_woken)
{
	begin_with(ROUTER_TRANSPARENT);
	a_waiter_is_woken_behind(&router);
}

Test(router, batches_work)
{
	begin_with(ROUTER_TRANSPARENT);
	batches_work_behind(&router);
}

Test(router, commits_are_fenced)
{
	begin_with(ROUTER_TRANSPARENT);
	commits_are_fenced_behind(&router);
}

Test(router, late_requests_are_ended)
{
	begin_with(ROUTER_TRANSPARENT);
	late_requests_are_ended_behind(&router);
}

/* ---- connections of the server that it shares among its clients ----------------------------- */

/* It can share only what it may log in anew, for which it has to see the password: so TLS ends at
 * Router, with the certificate of the server. Two connections of clients share one here. */
static void begin_sharing(void)
{
	const char *slash = strrchr(world.at.tls_ca, '/');
	int dir = slash ? (int)(slash - world.at.tls_ca) : 0;
	char sharing[1024];
	MYSQL *one, *other;
	long long id;

	skip_unless(dir, "the server's certificate is not known");
	snprintf(sharing, sizeof(sharing),
	         "client_ssl_mode=REQUIRED\nclient_ssl_cert=%.*s/server-cert.pem\n"
	         "client_ssl_key=%.*s/server-key.pem\nserver_ssl_mode=PREFERRED\n"
	         "connection_sharing=1\nconnection_sharing_delay=0",
	         dir, world.at.tls_ca, dir, world.at.tls_ca);
	begin_with(sharing);
	one = db_open(&router.at, world.schema);
	other = db_open(&router.at, world.schema);
	id = db_number(one, "SELECT CONNECTION_ID()");
	eventually(db_number(other, "SELECT CONNECTION_ID()") == id);
	mysql_close(other);
	mysql_close(one);
}

Test(router, that_shares_connections_is_noticed)
{
	struct world w;
	struct findings f;

	begin_sharing();
	w = world_behind(&router);
	expect_open(UNSUPPORTED, &w, NULL, "connection-sharing");
	f = doctor_of(&w, NULL, BIZLOCK_OK);
	expect_finding(&f, "proxy", BIZLOCK_BAD, "connection-sharing");
	expect_good(&f, SERVERS_OWN " proxy lock");
}
