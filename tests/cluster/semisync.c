/* Semi-synchronous replication: what was granted is on the replica that takes over. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <unistd.h>

#include "cr_test.h"

#define WORKERS 6
#define GRANTS_MAX 4000

static struct own_server servers[2];
static MYSQL *replica;

static void end_servers(void)
{
	if (replica)
		mysql_close(replica);
	if (world.admin)
		mysql_close(world.admin); /* its server is down */
	world.admin = NULL;
	own_server_end(&servers[1]);
	own_server_end(&servers[0]);
}

TestSuite(own_semisync, .fini = end_servers, .timeout = 480);

/* ---- the servers' words --------------------------------------------------------------------- */

struct words {
	const char *args, *reset, *enable, *follow, *ready, *applied;
};

static const struct words mariadb = {
        .args = "--log-bin=binlog --gtid-strict-mode=ON --rpl-semi-sync-slave-enabled=ON"
                " --rpl-semi-sync-master-wait-point=AFTER_SYNC"
                " --rpl-semi-sync-master-timeout=3600000",
        .reset = "RESET MASTER; SET GLOBAL gtid_slave_pos = ''",
        .enable = "SET GLOBAL rpl_semi_sync_master_enabled = ON",
        .follow = "CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%u, MASTER_USER='%s',"
                  " MASTER_PASSWORD='%s', MASTER_USE_GTID=slave_pos; START REPLICA",
        .ready = "Rpl_semi_sync_master_clients",
        .applied = "SHOW REPLICA STATUS",
};

static const struct words mysql = {
        .args = "--plugin-load-add=semisync_source.so --plugin-load-add=semisync_replica.so"
                " --gtid-mode=ON --enforce-gtid-consistency=ON --rpl-semi-sync-replica-enabled=ON"
                " --rpl-semi-sync-source-wait-point=AFTER_SYNC"
                " --rpl-semi-sync-source-timeout=3600000",
        .reset = "RESET BINARY LOGS AND GTIDS",
        .enable = "SET GLOBAL rpl_semi_sync_source_enabled = ON",
        .follow = "CHANGE REPLICATION SOURCE TO SOURCE_HOST='%s', SOURCE_PORT=%u, SOURCE_USER='%s',"
                  " SOURCE_PASSWORD='%s', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1;"
                  " START REPLICA",
        .ready = "Rpl_semi_sync_source_clients",
        .applied = "SELECT IF(GTID_SUBSET(RECEIVED_TRANSACTION_SET, @@GLOBAL.gtid_executed),"
                   " 'has read all relay log', '') FROM"
                   " performance_schema.replication_connection_status",
};

static const struct words *find_words(void)
{
	struct server at = server_from_env();
	MYSQL *db = db_open(&at, NULL);
	bool is_mysql = server_is_mysql(db);

	mysql_close(db);
	return is_mysql ? &mysql : &mariadb;
}

/* A copy would have the name of the server it was copied from. */
static void forget_name(const struct own_server *s)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/data/auto.cnf", s->dir);
	unlink(path);
}

static void reset_logs(MYSQL *db, const struct words *words)
{
	bool older = server_is_mysql(db) && mysql_get_server_version(db) < 80200;

	db_run(db, "%s", older ? "RESET MASTER" : words->reset);
}

/* Semi-synchronous from when the replica is there: before, each commit would wait for one. */
static void begin_pair(const struct words *words)
{
	char args[1024];

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	snprintf(args, sizeof(args), "--server-id=1 %s", words->args);
	own_server_start(&servers[0], args);
	world_make(&world, &servers[0].at);
	world_migrate(&world);
	mysql_close(world.admin);
	own_server_do(&servers[0], "stop");
	own_server_copy(&servers[1], &servers[0]);
	forget_name(&servers[1]);
	own_server_do(&servers[0], "restart");
	snprintf(args, sizeof(args), "--server-id=2 --read-only=ON %s", words->args);
	own_server_start(&servers[1], args);
	world.admin = db_open(&servers[0].at, world.schema);
	replica = db_open(&servers[1].at, world.schema);
	reset_logs(world.admin, words);
	reset_logs(replica, words);
	db_run(world.admin, "%s", words->enable);
	db_run(replica, words->follow, servers[0].at.host, servers[0].at.port, servers[0].at.user,
	       servers[0].at.password);
	eventually(db_status(world.admin, words->ready) == 1);
}

/* What was received is not applied yet: until it is, the replica does not know all locks. */
static bool has_applied(const struct words *words)
{
	char *text = db_text(replica, "%s", words->applied);
	bool applied = strstr(text, "has read all relay log") != NULL;

	free(text);
	return applied;
}

static void promote(const struct words *words)
{
	db_run(replica, "STOP REPLICA IO_THREAD");
	eventually(has_applied(words));
	db_run(replica, "STOP REPLICA; RESET REPLICA ALL; SET GLOBAL read_only = 0");
}

/* ---- those who take locks, and keep them ---------------------------------------------------- */

struct worker {
	bizlock *b;
	unsigned number;
	atomic_uint n;
	atomic_bool *stop;
	unsigned errors;
	uint64_t fences[GRANTS_MAX];
	pthread_t thread;
};

static const char *id_of(const struct worker *w, unsigned i, char ret[32])
{
	snprintf(ret, 32, "w%u-%u", w->number, i);
	return ret;
}

static void *take_locks(void *arg)
{
	struct worker *w = arg;
	char id[32];

	for (unsigned i = 0; !*w->stop && i < GRANTS_MAX; i++) {
		bizlock_grant grant = BIZLOCK_GRANT_INIT;
		int rc = acquire(w->b, id_of(w, i, id), .wait_ms = 4 * PATIENCE_MS,
		                 .lease_ms = 3600000, .grant = &grant);

		if (rc != BIZLOCK_OK) {
			fprintf(stderr, "%s\n", bizlock_errmsg(w->b));
			w->errors++;
			break;
		}
		w->fences[i] = grant.fence;
		w->n = i + 1;
	}
	return NULL;
}

static void start(struct worker *w, unsigned number, const char *hosts, atomic_bool *stop)
{
	*w = (struct worker){.number = number, .stop = stop};
	w->b = client_open(&world, OPTIONS("host", hosts, "release_on_close", "off"));
	if (pthread_create(&w->thread, NULL, take_locks, w) != 0)
		die("no thread");
}

static void each_has(struct worker *all, unsigned more)
{
	for (unsigned i = 0; i < WORKERS; i++) {
		unsigned enough = all[i].n + more;

		eventually(all[i].n >= enough);
	}
}

static unsigned granted(struct worker *all)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WORKERS; i++)
		n += all[i].n;
	return n;
}

/* Nothing is granted any more, but for what was on its way. */
static void replica_is_cut_off(struct worker *all)
{
	unsigned before;

	db_run(replica, "STOP REPLICA IO_THREAD");
	before = granted(all);
	steadily(granted(all) <= before + WORKERS, 2000);
}

static void has_kept(const struct worker *w)
{
	struct world there = world;
	char id[32];

	there.admin = replica;
	for (unsigned i = 0; i < w->n; i++) {
		struct row row = row_of(&there, KEY(id_of(w, i, id)));

		cr_assert(row.there, "%s is missing", id);
		cr_assert_eq(row.fence, w->fences[i], "%s", id);
		cr_assert(i == 0 || w->fences[i] > w->fences[i - 1], "%s: a fence went back", id);
	}
}

Test(own_semisync, no_grant_is_lost_with_its_source)
{
	static struct worker all[WORKERS];
	const struct words *words = find_words();
	atomic_bool stop = false;
	char hosts[64];

	begin_pair(words);
	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u,127.0.0.1:%u", servers[0].at.port,
	         servers[1].at.port);
	world.at = server_over_tcp(world.at, "127.0.0.1", servers[0].at.port);
	for (unsigned i = 0; i < WORKERS; i++)
		start(&all[i], i, hosts, &stop);
	each_has(all, 20);
	replica_is_cut_off(all);
	own_server_do(&servers[0], "kill");
	promote(words);
	each_has(all, 5);
	stop = true;
	for (unsigned i = 0; i < WORKERS; i++) {
		pthread_join(all[i].thread, NULL);
		cr_assert_eq(all[i].errors, 0);
		has_kept(&all[i]);
		bizlock_close(all[i].b);
	}
}
