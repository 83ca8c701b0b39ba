/* A group of three MySQL servers: one lock, and fences that only grow; and what clients that name
 * all of them see of a change. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdio.h>

#include "cr_group.h"
#include "crowd.h"
#include "proxy.h"

TestSuite(group, .fini = group_end, .timeout = 480);

/* Leases and waits are longer than a group needs to go on without a primary that was killed: up to
 * 20 s. */
static const struct crowd_plan plan = {.processes = 12,
                                       .keys = 3,
                                       .seed = 1,
                                       .lease_ms = 60000,
                                       .wait_ms = 60000,
                                       .long_in = 8,
                                       .long_hold_ms = 200};

/* Every call got what it wanted. */
static void was_all_good(struct crowd *crowd, const char *when)
{
	struct crowd_tale tale;

	crowd_pause(crowd);
	tale = crowd_tell(crowd);
	cr_assert_eq(tale.overlaps, 0, "%s", when);
	cr_assert_eq(tale.backward, 0, "%s", when);
	cr_assert_gt(tale.acquired, 0, "%s", when);
	for (int i = 0; i < 16; i++)
		cr_assert(i == BIZLOCK_OK || tale.codes[i] == 0, "%s: %lu times %s", when,
		          tale.codes[i], bizlock_err_name(i));
	crowd_resume(crowd);
}

/* ---- several primaries -------------------------------------------------------------- */

static void fences_grow_across_the_members(void)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	bizlock *b[CLUSTER_NODES];
	uint64_t fence = 0;

	for (int i = 0; i < CLUSTER_NODES; i++)
		b[i] = group_client(i);
	for (int i = 0; i < 60; i++) {
		bizlock *turn = b[i % CLUSTER_NODES];

		expect(OK, turn, acquire(turn, "k", .wait_ms = PATIENCE_MS, .grant = &grant));
		cr_assert_gt(grant.fence, fence, "round %d", i);
		fence = grant.fence;
		expect(OK, turn, bizlock_release(turn, KEY("k"), NULL, NULL));
	}
	for (int i = 0; i < CLUSTER_NODES; i++)
		bizlock_close(b[i]);
}

static void fences_grow_across_takeovers(void)
{
	bizlock *b[CLUSTER_NODES];

	for (int i = 0; i < CLUSTER_NODES; i++)
		b[i] = group_client(i);
	takeovers_in_turn(b, CLUSTER_NODES);
	for (int i = 0; i < CLUSTER_NODES; i++)
		bizlock_close(b[i]);
}

/* Four processes at each. Whoever loses against another member tries again, unseen. */
static void members_exclude_each_other(void)
{
	struct crowd_plan spread = plan;
	struct crowd *crowd;

	spread.servers = group.nodes;
	spread.servers_count = CLUSTER_NODES;
	crowd = crowd_start(&world, &spread, NULL);
	for (int64_t end = now_ms() + 6000; pause_before(end);)
		;
	cr_assert_geq(crowd_goes_on(crowd, PATIENCE_MS), 0);
	was_all_good(crowd, "three primaries");
	cr_assert(crowd_end(crowd));
}

static long long rows_at(int member, const char *id)
{
	MYSQL *db = group_admin(member);
	long long rows = db_number(db, "SELECT COUNT(*) FROM `%s`.biz_lock WHERE biz_id = '%s'",
	                           world.schema, id);

	mysql_close(db);
	return rows;
}

/* It takes writes then, as it does when it has tried in vain to join again. */
static void leave(int member)
{
	MYSQL *db = group_admin(member);

	db_run(db, "STOP GROUP_REPLICATION");
	db_run(db, "SET GLOBAL super_read_only = OFF");
	db_run(db, "SET GLOBAL read_only = OFF");
	mysql_close(db);
}

#define LATE_MS 12000 /* longer than it takes to leave */

static void *release_late(void *arg)
{
	bizlock *b = arg;

	expect(OK, b, bizlock_release(b, KEY("late"), "me", NULL));
	return NULL;
}

/* The statement is on its way while its member leaves: that was online when it was asked. */
static void what_a_member_commits_after_it_left_is_not_believed(void)
{
	struct fault late = {.what = FAULT_DELAY, .side = FAULT_REQUESTS, .delay_ms = LATE_MS};
	struct proxy *proxy = proxy_start(&group.nodes[1], "127.0.0.1");
	struct server way = proxy_address(proxy);
	struct world there = world_by_way_of(&world, &way);
	char hosts[256];
	pthread_t thread;
	bizlock *b;

	snprintf(hosts, sizeof(hosts), "%.99s:%u,%.99s:%u", way.host, way.port, group.nodes[0].host,
	         group.nodes[0].port);
	b = client_open(&there,
	                OPTIONS("host", hosts, "io_timeout_ms", "30000", "lease_ms", "120000"));
	works(b);
	expect(OK, b, acquire_as(b, "late", "me"));
	group_catches_up(1);
	proxy_arm(proxy, &late);
	cr_assert_eq(pthread_create(&thread, NULL, release_late, b), 0);
	eventually(proxy_fired(proxy));
	leave(1);
	cr_assert(proxy_is_late(proxy));
	pthread_join(thread, NULL);
	cr_assert_eq(rows_at(0, "late"), 0);
	bizlock_close(b);
	proxy_stop(proxy);
}

/* What it gave out would be given out by the others, too. */
static void a_member_that_has_left_gives_no_lock(void)
{
	struct world there = group_world(2);
	char hosts[256];
	bizlock *alone = group_client(2), *old, *fresh;

	snprintf(hosts, sizeof(hosts), "%.99s:%u,%.99s:%u", group.nodes[2].host,
	         group.nodes[2].port, group.nodes[0].host, group.nodes[0].port);
	old = client_open(&there, OPTIONS("host", hosts));
	works(old);
	works(alone);
	leave(2);
	expect(OK, old, acquire(old, "old"));
	expect(CONN, alone, acquire(alone, "alone"));
	fresh = client_open(&there, OPTIONS("host", hosts));
	expect(OK, fresh, acquire(fresh, "fresh"));
	cr_assert_eq(rows_at(0, "old") + rows_at(0, "fresh"), 2);
	cr_assert_eq(rows_at(2, "old") + rows_at(2, "fresh") + rows_at(2, "alone"), 0);
	bizlock_close(alone);
	bizlock_close(old);
	bizlock_close(fresh);
}

Test(group, several_primaries)
{
	group_begin("--several");
	fences_grow_across_the_members();
	fences_grow_across_takeovers();
	members_exclude_each_other();
	what_a_member_commits_after_it_left_is_not_believed();
	a_member_that_has_left_gives_no_lock();
}

/* ---- one primary -------------------------------------------------------------------- */

/* Of the sessions of a client of member 0, when that has this default. The user may set nothing but
 * what everybody may. */
static void sessions_have(const char *want, const char *by_default)
{
	char *seen;
	bizlock *b;

	db_run(world.admin, "SET GLOBAL group_replication_consistency = %s", by_default);
	b = group_client(0);
	works(b);
	seen = db_text(
	        world.admin,
	        "SELECT DISTINCT VARIABLE_VALUE FROM performance_schema.variables_by_thread v"
	        " JOIN performance_schema.threads t USING (THREAD_ID)"
	        " WHERE VARIABLE_NAME = 'group_replication_consistency'"
	        " AND PROCESSLIST_DB = '%s' AND PROCESSLIST_ID <> CONNECTION_ID()",
	        world.schema);
	seen[strcspn(seen, "\n")] = '\0';
	cr_assert_str_eq(seen, want, "%s by default: %s", by_default, seen);
	free(seen);
	bizlock_close(b);
}

static void sessions_ask_for_consistency(void)
{
	sessions_have("BEFORE_ON_PRIMARY_FAILOVER", "EVENTUAL");
	sessions_have("BEFORE_ON_PRIMARY_FAILOVER", "BEFORE_ON_PRIMARY_FAILOVER");
	sessions_have("AFTER", "AFTER");
	db_run(world.admin, "SET GLOBAL group_replication_consistency = DEFAULT");
}

static void goes_on(struct crowd *crowd, const char *when)
{
	cr_assert_geq(crowd_goes_on(crowd, PATIENCE_MS), 0, "%s", when);
	was_all_good(crowd, when);
}

Test(group, one_primary_that_changes)
{
	struct crowd *crowd;

	group_begin("");
	sessions_ask_for_consistency();
	crowd = crowd_start(&world, &plan, OPTIONS("host", group_hosts()));
	goes_on(crowd, "at first");
	cr_assert(cluster_do(&group, "primary", 1));
	goes_on(crowd, "another primary");
	cr_assert(cluster_do(&group, "kill", 1));
	goes_on(crowd, "the primary was killed");
	cr_assert(crowd_end(crowd));
}
