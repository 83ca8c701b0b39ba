/* Two nodes of a Galera cluster: one lock, and fences that only grow. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_crew.h"
#include "cr_galera.h"
#include "keyset.h"
#include "proxy.h"

TestSuite(galera, .fini = galera_end, .timeout = 480);

/* Both nodes share one counter. It grows in steps of two: even numbers on one node, odd ones on the
 * other. */
Test(galera, fences_grow_across_the_nodes)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	uint64_t fence = 0;
	bizlock *b[2];

	galera_begin();
	b[0] = galera_client(0);
	b[1] = galera_client(1);
	for (int i = 0; i < 200; i++) {
		bizlock *turn = b[i % 2];

		expect(OK, turn, acquire(turn, "k", .wait_ms = PATIENCE_MS, .grant = &grant));
		cr_assert_gt(grant.fence, fence, "round %d", i);
		fence = grant.fence;
		expect(OK, turn, bizlock_release(turn, KEY("k"), NULL, NULL));
	}
	bizlock_close(b[0]);
	bizlock_close(b[1]);
}

Test(galera, fences_grow_across_takeovers)
{
	bizlock *b[2];

	galera_begin();
	b[0] = galera_client(0);
	b[1] = galera_client(1);
	takeovers_in_turn(b, 2);
	bizlock_close(b[0]);
	bizlock_close(b[1]);
}

/* A doorbell keeps away the contenders of its node alone. Those of the other one may have had the
 * lock, with a larger fence, between the draw and the row. So it is drawn again with the row in
 * hand. */
Test(galera, fences_are_drawn_with_the_row_in_hand)
{
	struct server at;
	struct proxy *p;
	struct world w;
	unsigned before;
	bizlock *b;

	galera_begin();
	at = server_over_tcp(galera_nodes[0].at, "127.0.0.1", galera_nodes[0].at.port);
	p = proxy_start(&at, "127.0.0.1");
	w = world;
	w.at = proxy_address(p);
	b = client_open(&w, NULL);
	for (int i = 0; i < 2; i++)
		works(b); /* statements are prepared */
	before = proxy_packets(p);
	expect(OK, b, acquire(b, "k"));
	cr_assert_eq(proxy_packets(p) - before, 2);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	bizlock_close(b);
	proxy_stop(p);
}

static uint64_t conflicts(bizlock *b)
{
	bizlock_numbers n = {.size = sizeof(n)};

	expect(OK, b, bizlock_stats(b, &n));
	return n.retried_conflict;
}

/* What has the row locked may be a statement of bizlock's own that waits for the other nodes'
 * consent. No transaction of the application's has fenced it. */
Test(galera, a_release_waits_for_a_row_that_the_cluster_keeps_locked)
{
	struct call call;
	MYSQL *other;
	bizlock *b;

	galera_begin();
	b = galera_client(0);
	other = db_open(&world.at, world.schema);
	call_prepare(&call, b, "k", .wait_ms = 0, .owner = "holder");
	expect(OK, b, acquire_as(b, "k", "holder"));
	db_run(other, "BEGIN");
	db_number(other, "SELECT reentrant FROM biz_lock WHERE %s FOR UPDATE",
	          slot_0_where(KEY("k")));
	call_start_release(&call);
	eventually(conflicts(b) > 0 || call.done);
	steadily(!call.done, 1000);
	db_run(other, "ROLLBACK");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	mysql_close(other);
	bizlock_close(b);
}

/* ---- contention ------------------------------------------------------------- */

struct contender {
	bizlock *b;
	size_t keys; /* keys of a set; 0: one key, by bizlock_acquire() */
	bool reverse;
	pthread_t thread;
	int64_t end;
	atomic_int *inside;
	unsigned taken, overlaps, errors;
};

static int take(struct contender *c, struct keyset *s)
{
	keyset_make(s, c->keys, "k");
	if (c->reverse)
		keyset_reverse(s);
	return c->keys ? keyset_acquire(c->b, s, .wait_ms = PATIENCE_MS, .lease_ms = 60000)
	               : acquire(c->b, "hot", .wait_ms = PATIENCE_MS, .lease_ms = 60000);
}

static int give_back(struct contender *c, const struct keyset *s)
{
	return c->keys ? keyset_release(c->b, s, NULL)
	               : bizlock_release(c->b, KEY("hot"), NULL, NULL);
}

static void *contend(void *arg)
{
	struct contender *c = arg;
	struct keyset s;

	while (now_ms() < c->end) {
		if (take(c, &s) != BIZLOCK_OK) {
			fprintf(stderr, "%s\n", bizlock_errmsg(c->b));
			c->errors++;
			continue;
		}
		c->overlaps += atomic_fetch_add(c->inside, 1) != 0;
		pause_ms(1);
		atomic_fetch_sub(c->inside, 1);
		c->errors += give_back(c, &s) != BIZLOCK_OK;
		c->taken++;
		/* There is no order of arrival across nodes: this lets others in. */
		pause_ms(10);
	}
	return NULL;
}

/* The doorbells of the nodes are not connected, and a row that one node has just written may not
 * have reached the other. So the cluster's certification decides. */
static void nodes_exclude_each_other(size_t keys)
{
	struct contender c[GALERA_NODES] = {{0}, {0}};
	atomic_int inside = 0;

	galera_begin();
	for (int i = 0; i < GALERA_NODES; i++) {
		c[i].b = galera_client(i);
		c[i].keys = keys;
		c[i].reverse = i > 0;
		c[i].inside = &inside;
		c[i].end = now_ms() + 3000;
	}
	for (int i = 0; i < GALERA_NODES; i++)
		if (pthread_create(&c[i].thread, NULL, contend, &c[i]) != 0)
			die("no thread");
	for (int i = 0; i < GALERA_NODES; i++)
		pthread_join(c[i].thread, NULL);
	for (int i = 0; i < GALERA_NODES; i++) {
		cr_assert_eq(c[i].overlaps, 0);
		cr_assert_eq(c[i].errors, 0);
		cr_assert_gt(c[i].taken, 0);
		bizlock_close(c[i].b);
	}
}

Test(galera, nodes_exclude_each_other)
{
	nodes_exclude_each_other(0);
}

Test(galera, sets_of_two_nodes_exclude_each_other)
{
	nodes_exclude_each_other(6);
}

/* The cluster could undo the DELETE of a batch after it was answered. */
Test(galera, requests_do_not_travel_together)
{
	struct crew c;
	unsigned before;

	galera_begin();
	crew_begin(&c, "on");
	crew_line_up(&c);
	before = proxy_packets(c.proxy);
	crew_go(&c);
	crew_all_are(&c, BIZLOCK_OK);
	crew_sent(&c, before, CREW);
	crew_releases(&c, true);
	crew_all_together(&c);
	crew_all_are(&c, BIZLOCK_OK);
	crew_end(&c);
}
