/* HAProxy leads to the nodes of a Galera cluster in turn, so that the connections of one client are
 * to several nodes. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_behind.h"
#include "cr_findings.h"
#include "cr_galera.h"
#include "cr_tx.h"

static struct between haproxy;

static void end_cluster(void)
{
	between_end(&haproxy);
	galera_end();
}

TestSuite(galera_address, .fini = end_cluster, .timeout = 480);

static void begin_in_turn(void)
{
	struct server nodes[GALERA_NODES];

	need_haproxy();
	galera_begin();
	for (int i = 0; i < GALERA_NODES; i++)
		nodes[i] = galera_nodes[i].at;
	bizlock_close(galera_client(1)); /* the tables are there, too */
	haproxy_start(&haproxy, nodes, GALERA_NODES, "roundrobin", "1h");
}

/* ---- contention ------------------------------------------------------------------------- */

#define CLIENTS 4

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
		if (acquire(c->b, "hot", .wait_ms = PATIENCE_MS, .lease_ms = 60000) != BIZLOCK_OK) {
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

Test(galera_address, clients_exclude_each_other)
{
	struct contender c[CLIENTS];
	atomic_int inside = 0;

	begin_in_turn();
	for (int i = 0; i < CLIENTS; i++) {
		c[i] = (struct contender){.b = client_behind(&haproxy, NULL),
		                          .inside = &inside,
		                          .end = now_ms() + 5000};
		if (pthread_create(&c[i].thread, NULL, contend, &c[i]) != 0)
			die("no thread");
	}
	for (int i = 0; i < CLIENTS; i++) {
		pthread_join(c[i].thread, NULL);
		cr_assert_eq(c[i].overlaps, 0);
		cr_assert_eq(c[i].errors, 0);
		cr_assert_gt(c[i].taken, 0);
		bizlock_close(c[i].b);
	}
}

Test(galera_address, sets_are_taken)
{
	struct world w;
	struct findings f;

	begin_in_turn();
	w = world_behind(&haproxy);
	f = doctor_of(&w, NULL, BIZLOCK_OK);
	expect_finding(&f, "proxy", BIZLOCK_GOOD, "stay together");
	for (int i = 0; i < 10; i++) {
		struct keyset s;
		bizlock *b = client_behind(&haproxy, NULL);

		keyset_make(&s, 6, "s");
		expect(OK, b, keyset_acquire(b, &s, .wait_ms = PATIENCE_MS));
		expect(OK, b, keyset_release(b, &s, NULL));
		bizlock_close(b);
	}
}

/* A node may be behind the one that has given the lock. wsrep_sync_wait lets the transaction begin
 * when the node has caught up. */
Test(galera_address, transactions_commit_on_either_node)
{
	bizlock *b;

	begin_in_turn();
	db_run(world.admin, "CREATE TABLE ledger (id INT PRIMARY KEY) ENGINE=InnoDB");
	b = client_behind(&haproxy, NULL);
	for (int i = 1; i <= 20; i++) {
		MYSQL *tx = db_connect(&haproxy.at, NULL, 0, 0);

		expect(OK, b, acquire(b, "k", .wait_ms = PATIENCE_MS, .lease_ms = 60000));
		db_run(tx, "SET SESSION wsrep_sync_wait = 1");
		db_run(tx, "START TRANSACTION");
		db_run(tx, "INSERT INTO `%s`.ledger VALUES (%d)", world.schema, i);
		expect(OK, b, bizlock_commit(b, KEY("k"), NULL, tx));
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
		mysql_close(tx);
	}
	db_run(world.admin, "SET SESSION wsrep_sync_wait = 1");
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM ledger"), 20);
	bizlock_close(b);
}
