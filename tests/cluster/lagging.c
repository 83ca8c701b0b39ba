/* A member of a cluster takes writes, and has not applied yet what another one has committed. A
 * client that comes to it does not take for lost what that member has not heard of. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_galera.h"
#include "cr_group.h"
#include "keyset.h"
#include "proxy.h"

static struct proxy *way; /* to member 1 */

static void end(void)
{
	if (way)
		proxy_stop(way);
	if (group.dir[0])
		group_end();
	else
		galera_end();
}

TestSuite(lagging, .fini = end, .timeout = 480);

/* ---- the member that lags: 0 -------------------------------------------------------------- */

/* Lets it go on when a client asks it to catch up. */
struct keeper {
	MYSQL *late, *watch;
	const char *asks; /* how that begins */
	pthread_t thread;
};

static void *let_go_when_asked(void *arg)
{
	struct keeper *k = arg;

	eventually(db_number(k->watch,
	                     "SELECT COUNT(*) FROM information_schema.PROCESSLIST"
	                     " WHERE INFO LIKE '%s%%'",
	                     k->asks));
	mysql_close(k->late);
	mysql_close(k->watch);
	return NULL;
}

static struct keeper keep_group(void)
{
	return (struct keeper){group_hold_up(), group_admin(0), "SELECT 1 FROM `biz_lock` LIMIT 1",
	                       0};
}

/* It goes on reading, but applies nothing. */
static struct keeper keep_galera(void)
{
	struct keeper k = {db_open(&galera_nodes[0].at, NULL), db_open(&galera_nodes[0].at, NULL),
	                   "SET STATEMENT wsrep_sync_wait", 0};

	db_run(k.late, "FLUSH TABLES WITH READ LOCK");
	return k;
}

/* ---- a client that holds by way of member 1, and comes to member 0 ------------------------- */

static void open_way(const struct server *to)
{
	struct server at = server_over_tcp(*to, "127.0.0.1", to->port);

	way = proxy_start(&at, "127.0.0.1");
}

static bizlock *client_of_both(const struct server *lagging)
{
	struct world w = world;
	char hosts[64];
	bizlock *b;

	proxy_arm(way, NULL);
	w.at = proxy_address(way);
	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u,127.0.0.1:%u", w.at.port, lagging->port);
	b = client_new(&w, OPTIONS("host", hosts));
	eventually(bizlock_open(b) == BIZLOCK_OK);
	return b;
}

static void lose_way(void)
{
	struct fault fault = {.what = FAULT_CUT, .for_ever = true};

	proxy_arm(way, &fault);
	proxy_cut(way);
}

/* ---- what holders do ------------------------------------------------------------------------ */

static int release_one(bizlock *b)
{
	return bizlock_release(b, KEY("k-000"), NULL, NULL);
}

static int release_several(bizlock *b)
{
	struct keyset s;

	keyset_make(&s, 3, "k");
	return keyset_release(b, &s, NULL);
}

static int renew(bizlock *b)
{
	return bizlock_renew(b, KEY("k-000"), NULL, 0);
}

static int verify(bizlock *b)
{
	return bizlock_verify(b, KEY("k-000"), NULL);
}

static int export(bizlock *b)
{
	char ticket[BIZLOCK_EXPORT_MAX + 1];

	return bizlock_export(b, KEY("k-000"), NULL, ticket, sizeof(ticket));
}

/* The renewer's part: longer than the lease is. */
#define LEASE_MS 9000

static int keep_holding(bizlock *b)
{
	for (int64_t end = now_ms() + LEASE_MS + 1000; pause_before(end);)
		if (bizlock_left_ms(b, KEY("k-000"), NULL) <= 0)
			return BIZLOCK_LOST;
	return BIZLOCK_OK;
}

typedef int holder_fn(bizlock *b);

static void is_not_lost(struct keeper (*hold_up)(void), const struct server *lagging, holder_fn *fn,
                        uint32_t min_hold_ms)
{
	bizlock *b = client_of_both(lagging);
	struct keeper keeper = hold_up();
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	struct keyset s;

	opts.wait_ms = PATIENCE_MS;
	opts.lease_ms = LEASE_MS;
	opts.min_hold_ms = min_hold_ms;
	keyset_make(&s, 3, "k");
	expect(OK, b, bizlock_acquire_all(b, s.keys, s.n, &opts, s.grants));
	lose_way();
	if (pthread_create(&keeper.thread, NULL, let_go_when_asked, &keeper) != 0)
		die("no thread");
	expect(OK, b, fn(b));
	pthread_join(keeper.thread, NULL);
	bizlock_close(b);
}

/* The member that lags has the row, but with the lease as it was before it was made longer. */
static void is_not_over(struct keeper (*hold_up)(void), const struct server *lagging)
{
	bizlock *b = client_of_both(lagging);
	MYSQL *there = db_open(lagging, world.schema);
	struct keeper keeper;

	expect(OK, b, acquire(b, "k-000", .wait_ms = PATIENCE_MS, .lease_ms = LEASE_MS));
	eventually(db_number(there, "SELECT COUNT(*) FROM biz_lock"));
	keeper = hold_up();
	expect(OK, b, bizlock_renew(b, KEY("k-000"), NULL, 20 * PATIENCE_MS));
	eventually(db_number(there, "SELECT timeout < UTC_TIMESTAMP(6) FROM biz_lock"));
	mysql_close(there);
	lose_way();
	if (pthread_create(&keeper.thread, NULL, let_go_when_asked, &keeper) != 0)
		die("no thread");
	expect(OK, b, verify(b));
	pthread_join(keeper.thread, NULL);
	expect(OK, b, release_one(b));
	bizlock_close(b);
}

Test(lagging, member_of_a_group)
{
	static holder_fn *const all[] = {release_one, release_several, renew,
	                                 verify,      export,          keep_holding};

	group_begin("--several");
	open_way(&group.nodes[1]);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		is_not_lost(keep_group, &group.nodes[0], all[i], 0);
	is_not_lost(keep_group, &group.nodes[0], release_one, 600000);
	db_run(world.admin, "DELETE FROM biz_lock");
	is_not_over(keep_group, &group.nodes[0]);
}

Test(lagging, node_of_galera)
{
	galera_begin();
	open_way(&galera_nodes[1].at);
	is_not_lost(keep_galera, &galera_nodes[0].at, verify, 0);
	db_run(world.admin, "DELETE FROM biz_lock");
	is_not_over(keep_galera, &galera_nodes[0].at);
}
