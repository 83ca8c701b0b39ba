/* Many threads of two clients, and perhaps a reaper: nobody beside who has it alone, never more
 * than the limit, no fence back, no deadlock in the server. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_test.h"

TestSuite(shared_crowd, .init = world_begin, .fini = world_end, .timeout = 480);

enum { SHARERS = 44, ALONE = 3, RUN_MS = 4000 };

struct crowd {
	bizlock *b[2];
	uint32_t limit;
	bool reaps;
	int64_t end;
	pthread_mutex_t mu;
	int sharing, alone, most;
	uint64_t fence; /* the largest of those that had it alone, and of those that shared it */
	uint64_t shared_fence;
	unsigned shared_times, alone_times;
	char problem[256];
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

static void enter(struct member *m, const bizlock_grant *grant)
{
	struct crowd *c = m->c;

	pthread_mutex_lock(&c->mu);
	if (m->alone) {
		if (c->alone++ || c->sharing)
			note(c, "somebody beside who has it alone", "");
		if (grant->fence <= c->fence || grant->fence <= c->shared_fence)
			note(c, "a fence went back,", "alone");
		c->fence = grant->fence;
		c->alone_times++;
	} else {
		c->sharing++;
		if (c->alone)
			note(c, "a sharer beside who has it alone", "");
		if (grant->fence <= c->fence)
			note(c, "a fence went back,", "sharing");
		if (grant->fence > c->shared_fence)
			c->shared_fence = grant->fence;
		if (c->limit && (c->sharing > (int)c->limit || grant->slot > c->limit))
			note(c, "too many", "");
		if (c->sharing > c->most)
			c->most = c->sharing;
		c->shared_times++;
	}
	pthread_mutex_unlock(&c->mu);
}

static void leave(struct member *m)
{
	pthread_mutex_lock(&m->c->mu);
	if (m->alone)
		m->c->alone--;
	else
		m->c->sharing--;
	pthread_mutex_unlock(&m->c->mu);
}

static void *take_part(void *arg)
{
	static const int64_t waits[] = {-1, 0, -1, 20};
	struct member *m = arg;
	struct crowd *c = m->c;

	for (unsigned i = 0; now_ms() < c->end; i++) {
		bizlock_acquire_opts opts = OPTS(.wait_ms = waits[i % 4], .lease_ms = 60000,
		                                 .limit = m->alone ? 0 : c->limit,
		                                 .flags = m->alone ? 0 : BIZLOCK_SHARED);
		bizlock_grant grant = BIZLOCK_GRANT_INIT;
		int rc = bizlock_acquire(m->b, KEY("k"), &opts, &grant);

		if (rc == BIZLOCK_OK) {
			enter(m, &grant);
			if (m->alone)
				sched_yield();
			leave(m);
			rc = bizlock_release(m->b, KEY("k"), NULL, NULL);
		}
		if (rc != BIZLOCK_OK && rc != BIZLOCK_BUSY && rc != BIZLOCK_TIMEOUT) {
			pthread_mutex_lock(&c->mu);
			note(c, bizlock_err_name(rc), bizlock_errmsg(m->b));
			pthread_mutex_unlock(&c->mu);
			break;
		}
		if (m->alone)
			pause_ms(20);
	}
	return NULL;
}

/* While somebody shares it, slot 0 is there, whoever reaps meanwhile; but a reaper may cost a
 * deadlock. Nobody gives the lock back under the mutex. */
static void *look_on(void *arg)
{
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	MYSQL *db = db_open(&world.at, world.schema);
	struct crowd *c = arg;

	opts.older_than_ms = 0;
	while (now_ms() < c->end) {
		pthread_mutex_lock(&c->mu);
		if (c->sharing > 0 &&
		    db_number(db,
		              "SELECT COUNT(*) FROM biz_lock WHERE biz_id = 'k' AND slot = 0") == 0)
			note(c, "shared without slot 0", "");
		pthread_mutex_unlock(&c->mu);
		if (c->reaps && bizlock_reap(c->b[0], &opts, NULL) != BIZLOCK_OK)
			die("%s", bizlock_errmsg(c->b[0]));
		pause_ms(5);
	}
	mysql_close(db);
	return NULL;
}

static void crowd_runs(uint32_t limit, bool bells)
{
	const char *const *options = OPTIONS("queue", bells ? "auto" : "off");
	struct crowd c = {.limit = limit, .reaps = !bells};
	struct member members[SHARERS + ALONE];
	pthread_t looker;
	long long before;

	if (bells)
		deadlocks_are_counted();
	else
		deadlocks_may_happen();
	before = db_deadlocks(world.admin);
	c.end = now_ms() + RUN_MS;
	pthread_mutex_init(&c.mu, NULL);
	for (int i = 0; i < 2; i++)
		c.b[i] = client(options);
	for (int i = 0; i < SHARERS + ALONE; i++) {
		members[i] = (struct member){.c = &c, .b = c.b[i % 2], .alone = i >= SHARERS};
		if (pthread_create(&members[i].thread, NULL, take_part, &members[i]) != 0)
			die("no thread");
	}
	if (pthread_create(&looker, NULL, look_on, &c) != 0)
		die("no thread");
	for (int i = 0; i < SHARERS + ALONE; i++)
		pthread_join(members[i].thread, NULL);
	pthread_join(looker, NULL);
	cr_log_info("shared %u times, up to %d together; alone %u times\n", c.shared_times, c.most,
	            c.alone_times);
	cr_assert_str_eq(c.problem, "");
	cr_assert_gt(c.shared_times, 0);
	cr_assert_gt(c.alone_times, 0);
	if (bells)
		cr_assert_eq(db_deadlocks(world.admin) - before, 0);
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_lock"
	                                    " WHERE timeout > UTC_TIMESTAMP(6)"),
	             0);
}

Test(shared_crowd, any_number)
{
	crowd_runs(0, true);
}

Test(shared_crowd, four_at_most)
{
	crowd_runs(4, true);
}

Test(shared_crowd, any_number_without_doorbells)
{
	crowd_runs(0, false);
}

Test(shared_crowd, four_at_most_without_doorbells)
{
	crowd_runs(4, false);
}
