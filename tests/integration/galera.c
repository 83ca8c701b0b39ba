/* Two nodes of a Galera cluster: one lock, and fences that only grow. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <unistd.h>

#include "cr_test.h"

static struct own_server nodes[2];

static void end(void)
{
	if (world.admin)
		world_end();
	own_server_end(&nodes[1]);
	own_server_end(&nodes[0]);
}

TestSuite(galera, .fini = end, .timeout = 300);

static const char *library(void)
{
	static const char *const paths[] = {
	        "/usr/lib/galera/libgalera_smm.so",
	        "/usr/lib64/galera-4/libgalera_smm.so",
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (access(paths[i], R_OK) == 0)
			return paths[i];
	return NULL;
}

/* Where servers find wsrep_sst_nothing: beside server.sh. */
static void extend_path(void)
{
	const char *script = getenv("BIZLOCK_SERVER_SH"), *slash = strrchr(script, '/');
	char path[4096];

	snprintf(path, sizeof(path), "%.*s:%s", slash ? (int)(slash - script) : 1,
	         slash ? script : ".", getenv("PATH"));
	setenv("PATH", path, 1);
}

/* Node 0 founds the cluster, node 1 joins it. */
static void node_args(char *ret, size_t size, int node, unsigned port)
{
	char other[32] = "";

	if (node > 0)
		snprintf(other, sizeof(other), "127.0.0.1:%u", port);
	port += 2 * (unsigned)node;
	snprintf(ret, size,
	         "--binlog-format=ROW --innodb-autoinc-lock-mode=2 --wsrep-on=ON"
	         " --wsrep-provider=%s --wsrep-cluster-address=gcomm://%s"
	         " --wsrep-node-name=node%d --wsrep-node-address=127.0.0.1"
	         " --wsrep-sst-method=nothing --wsrep-provider-options='base_port=%u;"
	         "gmcast.listen_addr=tcp://127.0.0.1:%u;ist.recv_addr=127.0.0.1:%u;"
	         "gcache.size=16M'",
	         library(), other, node, port, port, port + 1);
}

static bool is_synced(const struct server *at)
{
	MYSQL *db = db_open(at, NULL);
	char *status = db_text(db, "SHOW GLOBAL STATUS WHERE Variable_name IN"
	                           " ('wsrep_local_state_comment', 'wsrep_cluster_size')");
	bool synced = strstr(status, "|Synced") && strstr(status, "|2");

	free(status);
	mysql_close(db);
	return synced;
}

static void begin_cluster(void)
{
	unsigned port = 12000 + (unsigned)getpid() % 2000 * 4;
	char args[1024];

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	skip_unless(library(), "Galera is not installed");
	extend_path();
	node_args(args, sizeof(args), 0, port);
	own_server_start(&nodes[0], args);
	own_server_do(&nodes[0], "stop");
	node_args(args, sizeof(args), 1, port);
	own_server_copy(&nodes[1], &nodes[0]);
	own_server_do(&nodes[0], "restart");
	own_server_start(&nodes[1], args);
	eventually(is_synced(&nodes[0].at) && is_synced(&nodes[1].at));
	world_make(&world, &nodes[0].at);
	world_migrate(&world);
}

/* A client of that node; its tables may take a moment to get there. */
static bizlock *client_of(int node)
{
	struct world w = world_by_way_of(&world, &nodes[node].at);
	bizlock *b = client_new(&w, NULL);

	eventually(bizlock_open(b) == BIZLOCK_OK);
	return b;
}

/* The one counter of both nodes goes up in steps of two, one even, one odd. */
Test(galera, fences_grow_across_the_nodes)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	uint64_t fence = 0;
	bizlock *b[2];

	begin_cluster();
	b[0] = client_of(0);
	b[1] = client_of(1);
	for (int i = 0; i < 200; i++) {
		bizlock *turn = b[i % 2];

		expect(OK, turn, acquire(turn, "k", PATIENCE_MS, 0, &grant));
		cr_assert_gt(grant.fence, fence, "round %d", i);
		fence = grant.fence;
		expect(OK, turn, bizlock_release(turn, KEY("k"), NULL, NULL));
	}
	bizlock_close(b[0]);
	bizlock_close(b[1]);
}

/* ---- contention ------------------------------------------------------------- */

struct contender {
	bizlock *b;
	pthread_t thread;
	int64_t end;
	atomic_int *inside;
	unsigned taken, overlaps, errors;
};

static void *contend(void *arg)
{
	struct contender *c = arg;

	while (now_ms() < c->end) {
		if (acquire(c->b, "hot", PATIENCE_MS, 60000, NULL) != BIZLOCK_OK) {
			fprintf(stderr, "%s\n", bizlock_errmsg(c->b));
			c->errors++;
			continue;
		}
		c->overlaps += atomic_fetch_add(c->inside, 1) != 0;
		pause_ms(1);
		atomic_fetch_sub(c->inside, 1);
		c->errors += bizlock_release(c->b, KEY("hot"), NULL, NULL) != BIZLOCK_OK;
		c->taken++;
	}
	return NULL;
}

/* The doorbells of the nodes are not connected, and a row that the other node
 * has just written may not have arrived: the cluster's certification decides. */
Test(galera, nodes_exclude_each_other)
{
	struct contender c[2] = {{0}, {0}};
	atomic_int inside = 0;

	begin_cluster();
	for (int i = 0; i < 2; i++) {
		c[i].b = client_of(i);
		c[i].inside = &inside;
		c[i].end = now_ms() + 3000;
	}
	for (int i = 0; i < 2; i++)
		if (pthread_create(&c[i].thread, NULL, contend, &c[i]) != 0)
			die("no thread");
	for (int i = 0; i < 2; i++)
		pthread_join(c[i].thread, NULL);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(c[i].overlaps, 0);
		cr_assert_eq(c[i].errors, 0);
		cr_assert_gt(c[i].taken, 0);
		bizlock_close(c[i].b);
	}
}
