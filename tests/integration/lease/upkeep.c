/* What keeps a hold: its renewals do not depend on what others have or want, and cost them nothing.
 */
#define _GNU_SOURCE 1
#include <stdio.h>

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
	db_run(world.admin, "DELETE FROM biz_lock");
	eventually(losses.count == 1);
}
