#define _GNU_SOURCE 1
#include "cr_galera.h"

#include <stdio.h>
#include <unistd.h>

struct own_server galera_nodes[GALERA_NODES];

void galera_end(void)
{
	if (world.admin)
		world_end();
	own_server_end(&galera_nodes[1]);
	own_server_end(&galera_nodes[0]);
}

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

static bool is_mysql(void)
{
	struct server at = server_from_env();
	MYSQL *db = db_open(&at, NULL);
	bool mysql = server_is_mysql(db);

	mysql_close(db);
	return mysql;
}

void galera_begin(void)
{
	unsigned port = 12000 + (unsigned)getpid() % 2000 * 4;
	char args[1024];

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	not_here_unless(!is_mysql(), "Galera is MariaDB's");
	skip_unless(library(), "Galera is not installed");
	extend_path();
	node_args(args, sizeof(args), 0, port);
	own_server_start(&galera_nodes[0], args);
	own_server_do(&galera_nodes[0], "stop");
	node_args(args, sizeof(args), 1, port);
	own_server_copy(&galera_nodes[1], &galera_nodes[0]);
	own_server_do(&galera_nodes[0], "restart");
	own_server_start(&galera_nodes[1], args);
	eventually(is_synced(&galera_nodes[0].at) && is_synced(&galera_nodes[1].at));
	world_make(&world, &galera_nodes[0].at);
	world_migrate(&world);
}

/* A client of that node. The tables may take a moment to get there. */
bizlock *galera_client(int node)
{
	struct world w = world_by_way_of(&world, &galera_nodes[node].at);
	bizlock *b = client_new(&w, NULL);

	eventually(bizlock_open(b) == BIZLOCK_OK);
	return b;
}
