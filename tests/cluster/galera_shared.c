/* Two nodes of a Galera cluster, and a shared lock: a doorbell and a wake-up reach one node alone,
 * so the rows have to do. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_galera.h"

TestSuite(galera_shared, .fini = galera_end, .timeout = 480);

#define LEASE_MS (20u * PATIENCE_MS)

enum { THREADS = 8, RUN_MS = 6000 };

struct crowd {
	bizlock *b[GALERA_NODES];
	uint32_t limit;
	int64_t end;
	pthread_mutex_t mu;
	int sharing, alone;
	uint64_t fence;
	unsigned times[2];
	char problem[512];
};

struct member {
	struct crowd *c;
	bizlock *b;
	bool alone;
	pthread_t thread;
};

static void note(struct crowd *c, const char *problem, const char *more)
{
	if (!c->problem[0])
		snprintf(c->problem, sizeof(c->problem), "%s %s", problem, more);
}

static void be_inside(struct member *m, const bizlock_grant *grant)
{
	struct crowd *c = m->c;
	int *count = m->alone ? &c->alone : &c->sharing;

	pthread_mutex_lock(&c->mu);
	++*count;
	if (c->alone > 1 || (c->alone && c->sharing))
		note(c, "somebody beside who has it alone", "");
	if (c->limit && c->sharing > (int)c->limit)
		note(c, "too many", "");
	if (grant->fence <= c->fence)
		note(c, "a fence went back", "");
	if (m->alone)
		c->fence = grant->fence;
	c->times[m->alone]++;
	pthread_mutex_unlock(&c->mu);
	pause_ms(1);
	pthread_mutex_lock(&c->mu);
	--*count;
	pthread_mutex_unlock(&c->mu);
}

static void *take_part(void *arg)
{
	struct member *m = arg;
	struct crowd *c = m->c;

	while (now_ms() < c->end) {
		bizlock_grant grant = BIZLOCK_GRANT_INIT;
		bizlock_acquire_opts opts =
		        OPTS(.wait_ms = -1, .lease_ms = LEASE_MS, .limit = m->alone ? 0 : c->limit,
		             .flags = m->alone ? 0 : BIZLOCK_SHARED);
		int rc = bizlock_acquire(m->b, KEY("k"), &opts, &grant);

		if (rc == BIZLOCK_OK) {
			be_inside(m, &grant);
			rc = bizlock_release(m->b, KEY("k"), NULL, NULL);
		}
		if (rc != BIZLOCK_OK) {
			pthread_mutex_lock(&c->mu);
			note(c, bizlock_err_name(rc), bizlock_errmsg(m->b));
			pthread_mutex_unlock(&c->mu);
			break;
		}
	}
	return NULL;
}

static void share_across_nodes(uint32_t limit)
{
	struct crowd c = {.limit = limit};
	struct member members[THREADS];

	pthread_mutex_init(&c.mu, NULL);
	for (int i = 0; i < GALERA_NODES; i++)
		c.b[i] = galera_client(i);
	c.end = now_ms() + RUN_MS;
	for (int i = 0; i < THREADS; i++) {
		members[i] = (struct member){.c = &c, .b = c.b[i % 2], .alone = i >= THREADS - 2};
		if (pthread_create(&members[i].thread, NULL, take_part, &members[i]) != 0)
			die("no thread");
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(members[i].thread, NULL);
	cr_log_info("shared %u times, alone %u times\n", c.times[0], c.times[1]);
	cr_assert_str_eq(c.problem, "");
	cr_assert_gt(c.times[0], 0);
	cr_assert_gt(c.times[1], 0);
	for (int i = 0; i < GALERA_NODES; i++)
		bizlock_close(c.b[i]);
}

Test(galera_shared, nobody_is_beside_who_has_it_alone_at_another_node)
{
	galera_begin();
	share_across_nodes(0);
	share_across_nodes(2);
}
