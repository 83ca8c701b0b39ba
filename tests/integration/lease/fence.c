/* Every first acquisition of a key gets a larger fence than any before it. */
#define _GNU_SOURCE 1
#include "cr_crew.h"
#include "cr_test.h"

TestSuite(fence, .init = world_begin, .fini = world_end, .timeout = 240);

/* Takes "k", for a lease of this length (0: the default), and returns its fence, which must be
 * larger than `last`. */
static uint64_t take_for(bizlock *b, uint32_t lease_ms, uint64_t last)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b, acquire(b, "k", .lease_ms = lease_ms, .wait_ms = -1, .grant = &grant));
	cr_assert_gt(grant.fence, last);
	return grant.fence;
}

static uint64_t take(bizlock *b, uint64_t last)
{
	return take_for(b, 0, last);
}

static uint64_t take_and_release(bizlock *b, uint64_t last)
{
	last = take(b, last);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	return last;
}

/* Takes "k" for a moment and lets the lease run out. */
static uint64_t take_and_lose(bizlock *b, uint64_t last)
{
	last = take_for(b, 100, last);
	lease_is_over("k");
	return last;
}

Test(fence, grows_across_releases)
{
	bizlock *a = client(NULL), *b = client(NULL);
	uint64_t fence = 0;

	for (int i = 0; i < 20; i++) {
		fence = take_and_release(a, fence);
		fence = take_and_release(b, fence);
	}
}

Test(fence, grows_across_takeovers)
{
	uint64_t fence = 0;
	bizlock *b[4];

	for (int i = 0; i < 4; i++) {
		b[i] = client(NULL);
		fence = take_and_lose(b[i], fence);
	}
}

Test(fence, grows_when_an_operator_deletes_the_row)
{
	bizlock *a = client(NULL), *b = client(NULL);
	uint64_t fence = take(a, 0);

	db_run(world.admin, "DELETE FROM biz_lock");
	fence = take(b, fence);
	db_run(world.admin, "DELETE FROM biz_lock");
	expect(LOST, a, bizlock_release(a, KEY("k"), NULL, NULL));
	take(a, fence);
}

Test(fence, is_kept_by_reentry_and_renewal)
{
	bizlock *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	uint64_t fence = take(b, 0);

	expect(OK, b, acquire(b, "k", .grant = &grant));
	cr_assert_eq(grant.fence, fence);
	expect(OK, b, bizlock_renew(b, KEY("k"), NULL, 0));
	cr_assert_eq(row_of(&world, KEY("k")).fence, fence);
}

/* A contender that was refused must not have touched the holder's fence. */
Test(fence, is_kept_while_others_are_refused)
{
	bizlock *a = client(NULL), *b = client(NULL);
	uint64_t fence = take(a, 0);

	for (int i = 0; i < 10; i++)
		expect(BUSY, b, acquire(b, "k"));
	cr_assert_eq(row_of(&world, KEY("k")).fence, fence);
	expect(OK, a, bizlock_verify(a, KEY("k"), NULL));
}

static bool is_inserting(void)
{
	return db_number(world.admin,
	                 "SELECT COUNT(*) FROM information_schema.PROCESSLIST"
	                 " WHERE DB = '%s' AND INFO LIKE 'INSERT INTO `biz_lock`%%'",
	                 world.schema) > 0;
}

/* Longer than an answer that is believed to have come at once. */
#define LATE_MS 200

/* `since`: when it was first seen at each look from then on. */
static bool inserts_for_long(int64_t *since)
{
	if (!is_inserting())
		*since = now_ms();
	return now_ms() - *since >= LATE_MS;
}

/* A statement that waits for the row has drawn its fence already. Meanwhile the key is taken with a
 * larger fence, and released. The statement must wait for a while: with the doorbell, an answer
 * that comes at once cannot have been overtaken. */
static uint64_t overtake(const struct call *call, const char *id)
{
	const char *where = row_where(KEY(id));
	int64_t since = now_ms();
	uint64_t between;

	eventually(inserts_for_long(&since));
	cr_assert(!atomic_load(&call->done));
	db_run(world.admin,
	       "INSERT INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout, gmt_create,"
	       " gmt_modified) SELECT biz_id, biz_type, 'x', 1, timeout, gmt_create,"
	       " gmt_modified FROM biz_lock WHERE %s ON DUPLICATE KEY UPDATE fence = VALUES(fence)",
	       where);
	between = (uint64_t)db_number(world.admin, "SELECT fence FROM biz_lock WHERE %s", where);
	db_run(world.admin, "DELETE FROM biz_lock WHERE %s", where);
	db_run(world.admin, "COMMIT");
	return between;
}

static void occupy_row(void)
{
	db_run(world.admin, "INSERT INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout,"
	                    " gmt_create, gmt_modified) VALUES ('k-000', 'test', 'x', 1,"
	                    " '2000-01-01', '2000-01-01', '2000-01-01')");
	db_run(world.admin, "START TRANSACTION");
	db_run(world.admin, "SELECT * FROM biz_lock FOR UPDATE");
}

static void overtaken(const char *queue)
{
	bizlock *b = client(OPTIONS("queue", queue));
	struct call call;
	uint64_t between;

	occupy_row();
	call_start(&call, b, "k-000", .wait_ms = -1, .owner = "task-1");
	between = overtake(&call, "k-000");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_gt(call.grant.fence, between);
	cr_assert_eq(row_of(&world, call.key).fence, call.grant.fence);
}

static void set_overtaken(const char *queue)
{
	bizlock *b = client(OPTIONS("queue", queue));
	struct keyset set;
	struct call call;
	uint64_t between;

	keyset_make(&set, 3, "k");
	occupy_row();
	call_start_all(&call, b, &set, .wait_ms = -1, .owner = "task-1");
	between = overtake(&call, "k-000");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	for (size_t i = 0; i < set.n; i++) {
		cr_assert_gt(set.grants[i].fence, between);
		cr_assert_eq(row_of(&world, set.keys[i]).fence, set.grants[i].fence);
	}
}

Test(fence, grows_past_one_that_was_quicker)
{
	overtaken("off");
}

/* As when the server is slow, and another client has gone past the doorbell. */
Test(fence, grows_past_one_that_was_quicker_in_front_of_the_doorbell)
{
	overtaken("auto");
}

Test(fence, of_a_set_grows_past_one_that_was_quicker)
{
	set_overtaken("off");
}

Test(fence, of_a_set_grows_past_one_that_was_quicker_in_front_of_the_doorbells)
{
	set_overtaken("auto");
}

/* The fences of a batch are drawn before the row of k-3 is free. */
Test(fence, of_what_travels_together_grows_past_one_that_was_quicker)
{
	struct crew c;
	uint64_t between;

	crew_begin(&c, "on");
	crew_line_up(&c);
	db_run(world.admin, "START TRANSACTION");
	db_run(world.admin, "INSERT INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout,"
	                    " gmt_create, gmt_modified) VALUES ('k-3', 'test', 'x', 1,"
	                    " '2000-01-01', '2000-01-01', '2000-01-01')");
	proxy_hold_replies(c.proxy, false);
	eventually(atomic_load(&c.occupant.done)); /* else its INSERT may be the one that is seen */
	between = overtake(&c.calls[3], "k-3");
	crew_go(&c);
	crew_all_are(&c, BIZLOCK_OK);
	for (int i = 0; i < CREW; i++)
		cr_assert_eq(row_of(&world, KEY(c.ids[i])).fence, c.calls[i].grant.fence);
	cr_assert_gt(c.calls[3].grant.fence, between);
	crew_release_held(&c);
	crew_end(&c);
}

/* ---- across the death of the server --------------------------------------- */

static struct own_server server;

static void end_own_world(void)
{
	if (world.admin)
		world_end();
	own_server_end(&server);
}

TestSuite(own_fence, .fini = end_own_world, .timeout = 300);

static void begin_own_world(void)
{
	own_server_start(&server, "--innodb-flush-log-at-trx-commit=1");
	world_make(&world, &server.at);
	world_migrate(&world);
}

static void restart_after(const char *how)
{
	own_server_do(&server, how);
	own_server_do(&server, "restart");
	mysql_close(world.admin);
	world.admin = db_open(&world.at, world.schema);
}

/* The table is empty when the server ends: only the counter keeps the last fence. */
static uint64_t restart_empty(const char *how, uint64_t fence)
{
	bizlock *b = client_open(&world, NULL);

	fence = take_and_release(b, fence);
	restart_after(how);
	bizlock_close(b);
	b = client_open(&world, NULL);
	fence = take_and_release(b, fence);
	bizlock_close(b);
	return fence;
}

/* The newest fence was drawn by a takeover, which is an UPDATE of a row. */
static uint64_t restart_after_takeover(const char *how, uint64_t fence)
{
	bizlock *a = client_open(&world, NULL), *b = client_open(&world, NULL);

	fence = take_and_lose(a, fence);
	fence = take(b, fence);
	db_run(world.admin, "DELETE FROM biz_lock");
	restart_after(how);
	bizlock_close(a);
	bizlock_close(b);
	a = client_open(&world, NULL);
	fence = take_and_release(a, fence);
	bizlock_close(a);
	return fence;
}

Test(own_fence, grows_across_restarts_of_the_server)
{
	uint64_t fence = 0;

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	begin_own_world();
	fence = restart_empty("kill", fence);
	fence = restart_after_takeover("kill", fence);
	fence = restart_empty("stop", fence);
	restart_after_takeover("stop", fence);
}

/* A client that was connected goes on, and what it held is still held. */
Test(own_fence, a_client_survives_the_server)
{
	bizlock *a, *b;
	uint64_t fence;

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	begin_own_world();
	a = client(NULL);
	b = client(NULL);
	fence = take_for(a, 600000, 0);
	restart_after("kill");
	expect(BUSY, b, acquire(b, "k"));
	expect(OK, a, bizlock_verify(a, KEY("k"), NULL));
	expect(OK, a, bizlock_release(a, KEY("k"), NULL, NULL));
	take(b, fence);
}
