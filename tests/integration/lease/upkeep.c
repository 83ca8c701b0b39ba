/* What keeps a hold: its renewals do not depend on what others have or want, and cost them nothing.
 */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cr_numbers.h"
#include "cr_tx.h"

static struct own_server server;
static struct losses losses;

static void begin_own_world(const char *args)
{
	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	own_server_start(&server, args);
	world_make(&world, &server.at);
	world_migrate(&world);
}

static void end_own_world(void)
{
	if (world.admin)
		world_end();
	own_server_end(&server);
}

TestSuite(upkeep, .init = world_begin, .fini = world_end, .timeout = 240);
TestSuite(own_upkeep, .fini = end_own_world, .timeout = 240);

static bizlock *watched_client(const char *const *options)
{
	bizlock *b = client(options);

	losses_watch(&losses, b);
	return b;
}

/* ---- it asks for nobody else's rows, nor for the table --------------------------------------- */

#define GATE "bizlock_test_gate"

#define COPY_SLOW                                                                                  \
	"INSERT INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout, bell, note, "          \
	"gmt_create, gmt_modified) SELECT 'slow', 'test', '', 0, UTC_TIMESTAMP(6), 0, '', "        \
	"UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)"

/* A statement that writes the row of "slow" waits for the gate, with all locks that it has. */
static void build_gate(const char *when)
{
	db_run(world.admin,
	       "CREATE TRIGGER slow %s ON biz_lock FOR EACH ROW BEGIN IF NEW.biz_id = 'slow' "
	       "THEN DO GET_LOCK('" GATE "', 60), RELEASE_LOCK('" GATE "'); END IF; END",
	       when);
	cr_assert_eq(db_number(world.admin, "SELECT GET_LOCK('" GATE "', 0)"), 1);
}

static bool is_at_gate(void)
{
	return db_number(world.admin, "SELECT COUNT(*) FROM information_schema.processlist WHERE "
	                              "STATE = 'User lock' AND ID <> CONNECTION_ID()") > 0;
}

/* Of the one transaction that is open: of the table it may have the intention to lock rows, and of
 * the index that row alone. */
static void expect_locks_of_one_row(void)
{
	if (server_is_mysql(world.admin))
		cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM "
		                                    "performance_schema.data_locks WHERE LOCK_MODE "
		                                    "NOT IN ('IX', 'X,REC_NOT_GAP')"),
		             0);
	cr_assert_eq(db_number(world.admin,
	                       "SELECT SUM(trx_lock_structs) FROM information_schema.innodb_trx"),
	             2);
}

/* The counter's lock would be the whole table's, and kept until the renewal is committed. */
Test(own_upkeep, a_renewal_keeps_nobody_from_acquiring)
{
	bizlock *b, *other;

	begin_own_world("--innodb-autoinc-lock-mode=1");
	build_gate("BEFORE UPDATE");
	b = watched_client(NULL);
	other = client(NULL);
	works(other);
	expect(OK, b, acquire_renewed(b, "slow", .lease_ms = 24000));
	eventually(is_at_gate());
	expect_locks_of_one_row();
	for (int i = 0; i < 20; i++)
		works(other);
	cr_assert(is_at_gate());
	db_run(world.admin, "DO RELEASE_LOCK('" GATE "')");
	eventually(numbers_of(b).renewals > 0);
	expect(OK, b, bizlock_release(b, KEY("slow"), NULL, NULL));
	cr_assert_eq(losses.count, 0);
}

/* What others do to the counter is no reason to fail: an acquisition that has time waits for it. */
Test(own_upkeep, an_acquisition_waits_for_the_counter)
{
	struct call call;
	MYSQL *copy;

	begin_own_world("--innodb-autoinc-lock-mode=1");
	build_gate("AFTER INSERT");
	copy = db_open(&server.at, world.schema);
	cr_assert_eq(mysql_query(copy, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"),
	             0);
	cr_assert_eq(mysql_send_query(copy, COPY_SLOW, sizeof(COPY_SLOW) - 1), 0);
	eventually(is_at_gate());
	call_start(&call, client(NULL), "k", .wait_ms = PATIENCE_MS);
	steadily(!call.done, 2500);
	db_run(world.admin, "DO RELEASE_LOCK('" GATE "')");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_eq(mysql_read_query_result(copy), 0);
	mysql_close(copy);
}

static void outlives_its_lease(bizlock *b, uint32_t lease_ms)
{
	int64_t end = now_ms() + 2 * (int64_t)lease_ms;

	while (pause_before(end))
		cr_assert_gt(bizlock_left_ms(b, KEY("k"), NULL), 0);
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	cr_assert_eq(losses.count, 0);
}

/* With old versions of each row, an UPDATE of one has other affected rows than one. */
Test(upkeep, is_not_told_by_affected_rows)
{
	bizlock *b = watched_client(NULL);

	not_here_unless(!server_is_mysql(world.admin), "MySQL has no system versioning");
	db_run(world.admin, "ALTER TABLE biz_lock ADD SYSTEM VERSIONING");
	expect(OK, b, acquire_renewed(b, "k", .lease_ms = 3000));
	outlives_its_lease(b, 3000);
	/* With gaps locked it and a renewal at that moment would be a deadlock. */
	db_run(world.admin, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
	db_run(world.admin, "DELETE FROM biz_lock");
	eventually(losses.count == 1);
}

/* ---- it needs no connection that has yet to be made ------------------------------------------ */

#define PASSWORD "c0rrect-horse"
#define LEASE_MS 6000

static void alter_user(const char *what)
{
	db_run(world.admin, "ALTER USER '%s'@'%%' %s", world.schema, what);
	db_run(world.admin, "ALTER USER '%s'@'localhost' %s", world.schema, what);
}

/* How many connections its user may have; 0: any number. */
static bizlock *client_of_user(unsigned connections)
{
	static const char *const hosts[] = {"%", "localhost"};

	for (int i = 0; i < 2; i++) {
		db_run(world.admin,
		       "CREATE USER '%s'@'%s' IDENTIFIED BY '" PASSWORD
		       "' WITH MAX_USER_CONNECTIONS %u",
		       world.schema, hosts[i], connections);
		db_run(world.admin, "GRANT SELECT, INSERT, UPDATE, DELETE ON `%s`.* TO '%s'@'%s'",
		       world.schema, world.schema, hosts[i]);
	}
	return watched_client(OPTIONS("user", world.schema, "password", PASSWORD));
}

static void end_user(void)
{
	db_run(world.admin, "DROP USER IF EXISTS '%s'@'%%', '%s'@'localhost'", world.schema,
	       world.schema);
	world_end();
}

TestSuite(upkeep_crowded, .init = world_begin, .fini = end_user, .timeout = 240);

Test(upkeep_crowded, a_user_with_no_connection_left_keeps_its_lock)
{
	bizlock *b = client_of_user(1);

	expect(OK, b, acquire_renewed(b, "k", .lease_ms = LEASE_MS));
	outlives_its_lease(b, LEASE_MS);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

Test(upkeep_crowded, a_password_that_was_changed_costs_no_lock)
{
	bizlock *b = client_of_user(0);

	expect(OK, b, acquire_renewed(b, "k", .lease_ms = LEASE_MS));
	alter_user("IDENTIFIED BY 'another'");
	outlives_its_lease(b, LEASE_MS);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

Test(upkeep_crowded, an_account_that_was_locked_costs_no_lock)
{
	bizlock *b = client_of_user(0);

	expect(OK, b, acquire_renewed(b, "k", .lease_ms = LEASE_MS));
	alter_user("ACCOUNT LOCK");
	outlives_its_lease(b, LEASE_MS);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

Test(upkeep_crowded, a_process_without_descriptors_keeps_its_lock)
{
	bizlock *b = client_of_user(0);
	struct rlimit all, few;
	int lowest;

	expect(OK, b, acquire_renewed(b, "k", .lease_ms = LEASE_MS));
	lowest = dup(0);
	close(lowest);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &all), 0);
	few = (struct rlimit){(rlim_t)lowest, all.rlim_max};
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	outlives_its_lease(b, LEASE_MS);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &all), 0);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

#define CROWD 12
#define OF_USER 4

/* Threads of the client want keys that another one has, and would sleep on every connection that
 * there is: that of a hold without a doorbell, too. */
static void outlives_a_crowd_of_its_own(uint32_t flags)
{
	bizlock *b = client_of_user(OF_USER), *other = client(NULL);
	struct call calls[CROWD];
	char ids[CROWD][8];

	for (int i = 0; i < CROWD; i++) {
		snprintf(ids[i], sizeof(ids[i]), "w%d", i);
		expect(OK, other, acquire_as(other, ids[i], "holder"));
	}
	expect(OK, b,
	       bizlock_acquire(b, KEY("k"), &OPTS(.lease_ms = LEASE_MS, .flags = flags), NULL));
	for (int i = 0; i < CROWD; i++)
		call_start(&calls[i], b, ids[i], .wait_ms = 3 * LEASE_MS);
	outlives_its_lease(b, LEASE_MS);
	for (int i = 0; i < CROWD; i++)
		call_join(&calls[i]);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

Test(upkeep_crowded, waiters_of_the_same_client_cost_no_lock)
{
	outlives_a_crowd_of_its_own(0);
}

Test(upkeep_crowded, waiters_of_the_same_client_cost_no_lock_without_a_doorbell)
{
	outlives_a_crowd_of_its_own(BIZLOCK_NO_QUEUE);
}

Test(upkeep_crowded, waiters_of_the_same_client_cost_no_shared_lock)
{
	outlives_a_crowd_of_its_own(BIZLOCK_SHARED);
}

/* What is idle for long is ended, unless it may be needed: nobody could make it anew. */
Test(own_upkeep, the_last_connection_does_not_become_idle)
{
	bizlock_acquire_opts opts = OPTS(.lease_ms = 24000, .flags = BIZLOCK_NO_QUEUE);
	bizlock *b;

	begin_own_world("--wait-timeout=4");
	db_run(world.admin, "SET wait_timeout = 600");
	b = client_of_user(1);
	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	outlives_its_lease(b, 8000);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	cr_assert_eq(numbers_of(b).reconnects, 0);
}

/* ---- why it failed --------------------------------------------------------------------------- */

static void is_lost_with(bizlock *b, const char *words)
{
	eventually(losses.count == 1);
	expect(LOST, b, bizlock_last_renewal(b, KEY("k"), NULL));
	expect_message(b, words);
	expect(LOST, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect_message(b, words);
	expect(NOT_OWNER, b, bizlock_last_renewal(b, KEY("k"), NULL));
}

Test(upkeep_crowded, a_loss_tells_why_nobody_was_let_in)
{
	bizlock *b = client_of_user(0);

	expect(OK, b, acquire_renewed(b, "k", .lease_ms = LEASE_MS));
	expect(OK, b, bizlock_last_renewal(b, KEY("k"), NULL));
	alter_user("ACCOUNT LOCK");
	kill_connections();
	eventually(numbers_of(b).renew_unreached > 0);
	is_lost_with(b, "locked");
	cr_assert_eq(numbers_of(b).renew_refused, 0);
}

Test(upkeep, a_loss_tells_what_the_server_refused)
{
	bizlock *b = watched_client(NULL);
	int rc;

	expect(OK, b, acquire_renewed(b, "k", .lease_ms = LEASE_MS));
	db_run(world.admin, "CREATE TRIGGER refuse BEFORE UPDATE ON biz_lock FOR EACH ROW "
	                    "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no room for this'");
	eventually((rc = bizlock_last_renewal(b, KEY("k"), NULL)) != BIZLOCK_OK);
	cr_assert(rc == BIZLOCK_DB || rc == BIZLOCK_LOST);
	expect_message(b, "no room for this");
	is_lost_with(b, "no room for this (1644)");
	cr_assert_gt(numbers_of(b).renew_refused, 0);
}

/* It was not done, so the lease is what it was. */
Test(upkeep, a_shorter_lease_that_is_refused_shortens_nothing)
{
	bizlock *b = watched_client(NULL);

	expect(OK, b, acquire_renewed(b, "k", .lease_ms = 60000));
	db_run(world.admin, "CREATE TRIGGER refuse BEFORE UPDATE ON biz_lock FOR EACH ROW "
	                    "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no room for this'");
	expect(DB, b, bizlock_renew(b, KEY("k"), NULL, 1000));
	cr_assert_gt(bizlock_left_ms(b, KEY("k"), NULL), 5000);
	db_run(world.admin, "DROP TRIGGER refuse");
	expect(OK, b, bizlock_renew(b, KEY("k"), NULL, 0));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

Test(upkeep, a_loss_tells_of_a_transaction)
{
	bizlock *b = watched_client(NULL);
	MYSQL *tx = db_open(&world.at, world.schema);

	expect(OK, b, acquire_renewed(b, "k", .lease_ms = LEASE_MS));
	db_run(tx, "START TRANSACTION");
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	eventually(numbers_of(b).renew_fenced > 0);
	is_lost_with(b, "a transaction that is open has fenced it");
	mysql_close(tx);
	cr_assert_lt(numbers_of(b).renew_unreached, numbers_of(b).renew_fenced);
}
