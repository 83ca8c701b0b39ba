/* Transactions at one primary of a group, takeovers at another. */
#define _GNU_SOURCE 1
#include <bizlock_tx.h>
#include <mysqld_error.h>

#include "cr_group.h"

static MYSQL *tx, *late;

static void end(void)
{
	if (tx)
		mysql_close(tx);
	if (late)
		mysql_close(late);
	group_end();
}

TestSuite(group_tx, .fini = end, .timeout = 240);

/* Long enough to outlast the beginning of the transaction. */
#define SHORT_MS 3000

static long long ledger_at(int member, int id)
{
	MYSQL *db = group_admin(member);
	long long n;

	group_catches_up(member ? 0 : 1);
	n = db_number(db, "SELECT COUNT(*) FROM `%s`.ledger WHERE id = %d", world.schema, id);
	mysql_close(db);
	return n;
}

/* b takes `key` at member 0, and a transaction there writes `id`. */
static void begin(const char *key, int id, uint32_t lease_ms, bizlock *b)
{
	expect(OK, b, acquire(b, key, .lease_ms = lease_ms));
	if (!tx)
		tx = db_open(&group.nodes[0], world.schema);
	db_run(tx, "START TRANSACTION");
	db_run(tx, "INSERT INTO ledger VALUES (%d)", id);
}

static void taken_over_elsewhere(const char *key)
{
	bizlock *other = group_client(1);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, other,
	       acquire(other, key, .wait_ms = PATIENCE_MS, .lease_ms = 60000, .grant = &grant));
	cr_assert_eq(grant.flags, BIZLOCK_TOOK_OVER);
	bizlock_close(other);
}

static void a_holder_commits(bizlock *b)
{
	begin("held", 1, 600000, b);
	expect(OK, b, bizlock_fence(b, KEY("held"), NULL, tx));
	expect(OK, b, bizlock_commit(b, KEY("held"), NULL, tx));
	cr_assert_eq(ledger_at(1, 1), 1);
}

static void a_stale_holder_does_not(bizlock *b)
{
	begin("stale", 2, SHORT_MS, b);
	taken_over_elsewhere("stale");
	eventually(bizlock_left_ms(b, KEY("stale"), NULL) <= 0);
	expect(LOST, b, bizlock_commit(b, KEY("stale"), NULL, tx));
	cr_assert_eq(ledger_at(0, 2), 0);
}

/* A transaction sees what it has changed itself, however old its snapshot is. */
static void one_that_has_read_before_the_grant_does_not(bizlock *b)
{
	begin("before", 5, 600000, b);
	expect(OK, b, bizlock_release(b, KEY("before"), NULL, NULL));
	db_number(tx, "SELECT COUNT(*) FROM ledger");
	expect(OK, b, acquire(b, "before", .lease_ms = 600000));
	for (int i = 0; i < 2; i++)
		expect(STALE, b, bizlock_fence(b, KEY("before"), NULL, tx));
	expect(STALE, b, bizlock_commit(b, KEY("before"), NULL, tx));
	cr_assert_eq(ledger_at(0, 5), 0);
}

/* A deadlock has ended the transaction, and the connector does not know. A change of the lock's row
 * would be a transaction of its own, and COMMIT would say OK to nothing. */
static void one_that_is_over_does_not(bizlock *b)
{
	static const char wants[] = "INSERT INTO ledger VALUES (4)";
	MYSQL *heavier = db_open(&group.nodes[0], world.schema);

	begin("over", 4, 600000, b);
	db_run(heavier, "START TRANSACTION");
	db_run(heavier, "INSERT INTO ledger VALUES (40), (41), (42), (43), (44), (45)");
	cr_assert_eq(mysql_send_query(heavier, wants, sizeof(wants) - 1), 0);
	cr_assert(!db_try(tx, "INSERT INTO ledger VALUES (40)"));
	cr_assert_eq(mysql_errno(tx), ER_LOCK_DEADLOCK);
	expect(MISUSE, b, bizlock_commit(b, KEY("over"), NULL, tx));
	cr_assert_eq(mysql_read_query_result(heavier), 0);
	mysql_close(heavier);
}

/* ---- a member that lags behind ---------------------------------------------------------- */

static long long waiting_at(MYSQL *db)
{
	return db_number(db, "SELECT COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE"
	                     " FROM performance_schema.replication_group_member_stats"
	                     " WHERE MEMBER_ID = @@server_uuid");
}

/* Member 0 knows of the takeover, and has not applied it. So nothing there ends the transaction. */
static void a_fence_holds_where_the_takeover_is_not_applied(bizlock *b)
{
	long long waiting;

	begin("late", 3, SHORT_MS, b);
	expect(OK, b, bizlock_fence(b, KEY("late"), NULL, tx));
	late = group_hold_up();
	waiting = waiting_at(world.admin);
	taken_over_elsewhere("late");
	eventually(waiting_at(world.admin) > waiting);
	cr_assert(!db_try(tx, "COMMIT"));
	mysql_close(late);
	late = NULL;
	cr_assert_eq(ledger_at(0, 3), 0);
	cr_assert_eq(ledger_at(1, 3), 0);
}

static bizlock *begin_group(const char *args)
{
	group_begin(args);
	db_run(world.admin, "CREATE TABLE ledger (id INT PRIMARY KEY) ENGINE=InnoDB");
	group_catches_up(0);
	return group_client(0);
}

Test(group_tx, several_primaries)
{
	bizlock *b = begin_group("--several");

	a_holder_commits(b);
	a_stale_holder_does_not(b);
	one_that_has_read_before_the_grant_does_not(b);
	one_that_is_over_does_not(b);
	a_fence_holds_where_the_takeover_is_not_applied(b);
	bizlock_close(b);
}

/* It goes over to several while the client is open. */
Test(group_tx, one_primary)
{
	bizlock *b = begin_group("");

	a_holder_commits(b);
	one_that_has_read_before_the_grant_does_not(b);
	free(db_text(world.admin, "SELECT group_replication_switch_to_multi_primary_mode()"));
	a_fence_holds_where_the_takeover_is_not_applied(b);
	bizlock_close(b);
}
