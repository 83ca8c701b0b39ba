/* Errors by which the members of a cluster refuse a change. A trigger raises each of them for a
 * while, with the server's own words: no caller that waits is to see it. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_numbers.h"
#include "cr_test.h"

TestSuite(cluster_errors, .init = world_begin, .fini = world_end, .timeout = 240);

static void raise_at(const char *when, const char *event, unsigned number, const char *words)
{
	db_run(world.admin,
	       "CREATE TRIGGER refuse_%s %s %s ON `%s`.biz_lock FOR EACH ROW "
	       "IF (SELECT COUNT(*) FROM `%s`.refusing WHERE until > UTC_TIMESTAMP(6)) THEN "
	       "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = %u, MESSAGE_TEXT = %s; END IF",
	       event, when, event, world.schema, world.schema, number, db_literal(words));
}

static void refuse(bool refuses)
{
	db_run(world.admin, "UPDATE refusing SET until = UTC_TIMESTAMP(6) + INTERVAL %d HOUR",
	       refuses ? 1 : -1);
}

static uint64_t refusals(bizlock *b)
{
	bizlock_numbers n = numbers_of(b);

	return n.retried_conflict + n.retried_lost + n.reconnects;
}

/* The server refuses until the call has been refused, and has gone on. */
static void is_refused_first(struct call *call)
{
	uint64_t before = refusals(call->b);

	refuse(true);
	call_go(call);
	eventually(atomic_load(&call->done) || refusals(call->b) > before);
	refuse(false);
	cr_assert_eq(call_join(call), BIZLOCK_OK, "%s", call->errmsg);
}

static bizlock_numbers survives_by(bizlock *b, const char *when, unsigned number, const char *words)
{
	bizlock_numbers n;
	struct call call;

	db_run(world.admin, "CREATE TABLE refusing (until DATETIME(6)) ENGINE=InnoDB "
	                    "AS SELECT UTC_TIMESTAMP(6) AS until");
	raise_at(when, "INSERT", number, words);
	raise_at(when, "DELETE", number, words);
	call_prepare(&call, b, "k", .wait_ms = PATIENCE_MS, .owner = "task");
	call.opts.lease_ms = 20 * PATIENCE_MS;
	is_refused_first(&call);
	cr_assert_eq(row_of(&world, KEY("k")).fence, call.grant.fence);
	cr_assert_eq(call.grant.flags, 0);
	call.releases = true;
	atomic_store(&call.done, false);
	is_refused_first(&call);
	cr_assert(!row_of(&world, KEY("k")).there);
	n = numbers_of(b);
	db_run(world.admin, "DROP TABLE refusing; DROP TRIGGER refuse_INSERT;"
	                    " DROP TRIGGER refuse_DELETE");
	return n;
}

static bizlock_numbers survives(unsigned number, const char *words)
{
	bizlock *b = client(NULL);

	works(b);
	return survives_by(b, "BEFORE", number, words);
}

/* Rolled back: the same is sent again, on the same connection. */
static void is_a_conflict(unsigned number, const char *words)
{
	bizlock_numbers n = survives(number, words);

	cr_assert_gt(n.retried_conflict, 1);
	cr_assert_eq(n.reconnects, 0);
}

/* Rolled back, by a server that is no place for a lock now. `lost`: how many answers count as lost.
 */
static void is_another_place_with(unsigned number, const char *words, uint64_t lost)
{
	bizlock_numbers n = survives(number, words);

	cr_assert_eq(n.retried_conflict, 0);
	cr_assert_leq(n.retried_lost, lost);
	cr_assert_gt(n.reconnects, 1);
}

static void is_another_place(unsigned number, const char *words)
{
	is_another_place_with(number, words, 0);
}

/* A release is one compound with its doorbell on MariaDB, and such an error may come between them.
 */
static void may_leave_between(unsigned number, const char *words)
{
	is_another_place_with(number, words, server_is_mysql(world.admin) ? 0 : 1);
}

/* Nobody knows what became of it. */
static void is_in_doubt(unsigned number, const char *words)
{
	bizlock_numbers n = survives(number, words);

	cr_assert_gt(n.retried_lost, 1);
	cr_assert_gt(n.reconnects, 1);
}

Test(cluster_errors, a_member_of_several_primaries_lost_against_another)
{
	is_a_conflict(1180, "Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT");
	is_a_conflict(1180, "Fehler 149 - 'Lock deadlock; Retry transaction' beim COMMIT");
}

Test(cluster_errors, the_group_rolled_it_back)
{
	is_a_conflict(3101, "Plugin instructed the server to rollback the current transaction.");
}

Test(cluster_errors, a_fence_of_another_member_came_in_between)
{
	is_a_conflict(1869, "Auto-increment value in UPDATE conflicts with internally generated "
	                    "values");
}

Test(cluster_errors, a_node_that_lost_the_others_in_its_commit)
{
	is_in_doubt(1180, "Got error 6 \"No such device or address\" during COMMIT");
}

/* It sends the change to the others before it waits for them. */
Test(cluster_errors, a_member_that_was_expelled_in_its_commit)
{
	is_in_doubt(3100, "Error on observer while running replication hook 'before_commit'.");
}

/* And they kept it. Here the table is one in which nothing is rolled back, so that a statement that
 * failed has changed it. */
Test(cluster_errors, a_member_that_was_expelled_and_whose_change_is_there)
{
	bizlock *b = client(NULL);
	bizlock_numbers n;

	works(b);
	db_run(world.admin, "ALTER TABLE biz_lock ENGINE = MyISAM");
	n = survives_by(b, "AFTER", 3100,
	                "Error on observer while running replication hook 'before_commit'.");
	cr_assert_eq(n.retried_lost, 2);
}

Test(cluster_errors, a_member_that_is_not_ready)
{
	may_leave_between(1047, "WSREP has not yet prepared node for application use");
}

Test(cluster_errors, a_server_that_became_read_only)
{
	is_another_place(1290, "The server is running with the --read-only option so it cannot "
	                       "execute this statement");
	is_another_place(1836, "Running in read-only mode");
}

/* Error while waiting for the other members, in words that differ. */
Test(cluster_errors, a_member_that_waited_for_the_others_in_vain)
{
	for (unsigned number = 3796; number <= 3799; number++)
		is_another_place(number, "Transaction not allowed");
}

Test(cluster_errors, a_server_that_takes_no_more_for_now)
{
	is_another_place(3168, "Server isn't available");
	may_leave_between(3169, "Session was killed");
}
