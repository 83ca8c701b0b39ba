/* What bizlock_close() releases, and that it returns. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_tx.h"
#include "proxy.h"

TestSuite(closing, .init = world_begin, .fini = world_end, .timeout = 240);

static bool is_there(const char *id)
{
	return row_of(&world, KEY(id)).there;
}

Test(closing, releases_what_is_held)
{
	bizlock *b = client_open(&world, NULL), *stranger = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	for (int i = 0; i < 3; i++)
		expect(OK, b, acquire_renewed(b, "deep"));
	expect(OK, b, acquire_renewed(b, "named", .owner = "task-1"));
	expect(OK, b, acquire(b, "unrenewed"));
	cr_assert_eq(bizlock_close(b), BIZLOCK_OK);
	cr_assert_eq(all_rows(&world), 0);
	expect(OK, stranger, acquire(stranger, "deep", .grant = &grant));
	cr_assert_eq(grant.flags, 0, "it had been released");
}

Test(closing, wakes_waiters)
{
	bizlock *b = client_open(&world, NULL), *waiter = client(NULL);
	struct call call;

	expect(OK, b, acquire_as(b, "k", "holder"));
	call_start(&call, waiter, "k", .wait_ms = -1, .owner = "task-1");
	eventually(doorbell_waiters(&world) == 1);
	bizlock_close(b);
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_eq(call.grant.flags, 0);
}

Test(closing, releases_more_than_one_statement_can)
{
	bizlock *b = client_open(&world, NULL);
	char id[16];

	for (int i = 0; i < 700; i++) {
		snprintf(id, sizeof(id), "k%d", i);
		expect(OK, b, acquire_renewed(b, id));
	}
	cr_assert_eq(bizlock_close(b), BIZLOCK_OK);
	cr_assert_eq(all_rows(&world), 0);
}

/* The renewer would remove the row as well, but mostly comes too late. */
Test(closing, removes_what_an_acquisition_of_unknown_outcome_left)
{
	struct fault fault = {.what = FAULT_CUT, .side = FAULT_REPLIES, .for_ever = true};
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	struct server at = proxy_address(p);
	struct world by_way = world_by_way_of(&world, &at);

	for (int i = 0; i < 5; i++) {
		bizlock *b = client_open(&by_way, OPTIONS("ssl_mode", "disabled"));
		char id[8];

		snprintf(id, sizeof(id), "k-%d", i);
		works(b);
		expect(OK, b, acquire_as(b, "kept", "task-1")); /* prepared from here on */
		proxy_arm(p, &fault);
		expect(UNKNOWN, b, acquire_as(b, id, "task-1"));
		cr_assert(is_there(id));
		proxy_arm(p, NULL);
		bizlock_close(b);
		cr_assert(!is_there(id) && no_row(&world, KEY("kept")));
	}
	proxy_stop(p);
}

Test(closing, does_not_release_where_the_client_says_so)
{
	bizlock *b = client_open(&world, OPTIONS("release_on_close", "off"));
	bizlock *stranger = client(NULL);

	expect(OK, b, acquire_renewed(b, "k"));
	cr_assert_eq(bizlock_close(b), BIZLOCK_OK);
	cr_assert(is_there("k"));
	expect(BUSY, stranger, acquire(stranger, "k"));
}

Test(closing, and_nothing_is_renewed_any_more)
{
	bizlock *b = client_open(&world, OPTIONS("release_on_close", "off"));
	long long end;

	expect(OK, b, acquire_renewed(b, "k", .lease_ms = 1500));
	bizlock_close(b);
	end = row_of(&world, KEY("k")).timeout_us;
	eventually(server_us() > end);
	cr_assert_eq(row_of(&world, KEY("k")).timeout_us, end);
}

static void take_and_end(void *arg)
{
	expect(OK, arg, acquire_renewed(arg, "k", .lease_ms = 60000));
}

Test(closing, does_not_release_what_an_ended_thread_held)
{
	bizlock *b = client_open(&world, NULL);

	in_another_thread(take_and_end, b);
	cr_assert_eq(bizlock_close(b), BIZLOCK_OK);
	cr_assert(is_there("k"));
}

Test(closing, does_not_release_what_others_took_over)
{
	bizlock *b = client_open(&world, NULL), *stranger = client(NULL);
	const char *before;

	expect(OK, b, acquire(b, "k", .lease_ms = 300, .wait_ms = -1));
	lease_is_over("k");
	expect(OK, stranger, acquire(stranger, "k"));
	before = row_text("k");
	cr_assert_eq(bizlock_close(b), BIZLOCK_OK);
	cr_assert_str_eq(row_text("k"), before);
}

/* A fenced lock cannot be released. The others are, by whichever statement. */
Test(closing, releases_what_no_transaction_has_fenced)
{
	bizlock *b = client_open(&world, NULL), *stranger = client(NULL);
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	int64_t start;
	MYSQL *tx;

	expect(OK, b, acquire_renewed(b, "a"));
	expect(OK, b, acquire_renewed(b, "fenced"));
	opts.min_hold_ms = 60000;
	expect(OK, b, bizlock_acquire(b, KEY("fenced and resting"), &opts, NULL));
	expect(OK, b, bizlock_acquire(b, KEY("resting"), &opts, NULL));
	expect(OK, b, acquire_renewed(b, "z"));
	tx = tx_open();
	db_run(tx, "BEGIN");
	expect(OK, b, bizlock_fence(b, KEY("fenced"), NULL, tx));
	expect(OK, b, bizlock_fence(b, KEY("fenced and resting"), NULL, tx));
	start = now_ms();
	cr_assert_eq(bizlock_close(b), BIZLOCK_UNKNOWN);
	cr_assert_lt(now_ms() - start, 5000, "no longer than the network may take");
	cr_assert(!is_there("a") && !is_there("z"));
	cr_assert_str_eq(row_of(&world, KEY("resting")).owner, "");
	cr_assert(is_there("fenced"));
	expect(BUSY, stranger, acquire(stranger, "fenced"));
	cr_assert_str_neq(row_of(&world, KEY("fenced and resting")).owner, "");
	tx_close(tx);
}

Test(closing, says_that_a_fenced_lock_stays)
{
	bizlock *b = client_open(&world, NULL);
	MYSQL *tx;

	expect(OK, b, acquire_renewed(b, "k"));
	tx = tx_open();
	db_run(tx, "BEGIN");
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	cr_assert_eq(bizlock_close(b), BIZLOCK_UNKNOWN);
	tx_close(tx);
	cr_assert(is_there("k"));
}

/* The row is locked for a moment only, by a transaction that the client does not know. */
static void *lets_go(void *tx)
{
	pause_ms(20);
	db_run(tx, "ROLLBACK");
	return NULL;
}

Test(closing, releases_what_somebody_has_locked_for_a_moment)
{
	bizlock *b = client_open(&world, NULL);
	MYSQL *tx = db_open(&world.at, world.schema);
	pthread_t thread;

	expect(OK, b, acquire_renewed(b, "k"));
	db_run(tx, "BEGIN");
	db_run(tx, "SELECT 1 FROM biz_lock WHERE %s FOR UPDATE", slot_0_where(KEY("k")));
	cr_assert_eq(pthread_create(&thread, NULL, lets_go, tx), 0);
	cr_assert_eq(bizlock_close(b), BIZLOCK_OK);
	pthread_join(thread, NULL);
	cr_assert(!is_there("k"));
	mysql_close(tx);
}

/* It has nothing to ask the server for. */
Test(closing, of_a_client_that_holds_nothing_needs_no_server)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	struct server at = proxy_address(p);
	struct world by_way = world_by_way_of(&world, &at);
	bizlock *b = client_open(&by_way, NULL);

	expect(OK, b, acquire(b, "k"));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	proxy_hold_dials(p, true);
	proxy_cut(p);
	cr_assert_eq(bizlock_close(b), BIZLOCK_OK);
	proxy_stop(p);
}

/* ---- with a server that does not answer -------------------------------------------- */

static struct own_server server;

static void end_own_world(void)
{
	if (world.admin)
		own_server_do(&server, "thaw");
	if (world.admin)
		world_end();
	own_server_end(&server);
}

TestSuite(own_closing, .fini = end_own_world, .timeout = 480);

#define TIMEOUT_MS 3000
#define SLACK_MS 2500 /* less than another timeout */

/* A client that holds three locks, and whose server is stopped. */
static bizlock *client_of_a_frozen_server(uint32_t lease_ms)
{
	bizlock *b;

	own_server_start(&server, "");
	world_make(&world, &server.at);
	world_migrate(&world);
	b = client_open(&world, OPTIONS("io_timeout_ms", "3000", "connect_timeout_ms", "3000"));
	expect(OK, b, acquire_renewed(b, "k", .lease_ms = lease_ms));
	expect(OK, b, acquire_renewed(b, "other", .lease_ms = lease_ms));
	expect(OK, b, acquire_renewed(b, "named", .owner = "task-1", .lease_ms = lease_ms));
	own_server_do(&server, "freeze");
	return b;
}

static void closes_in_time(bizlock *b)
{
	int64_t start = now_ms();

	cr_assert_eq(bizlock_close(b), BIZLOCK_UNKNOWN);
	cr_assert_lt(now_ms() - start, TIMEOUT_MS + SLACK_MS, "%lld ms",
	             (long long)(now_ms() - start));
}

Test(own_closing, comes_back_though_the_server_does_not_answer)
{
	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	closes_in_time(client_of_a_frozen_server(60000));
}

/* The client is in the middle of a renewal that gets no answer. */
Test(own_closing, comes_back_though_a_renewal_hangs)
{
	bizlock *b;

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	b = client_of_a_frozen_server(3000);
	pause_ms(1500); /* more than a third of the lease; if it is too short, the test is weaker */
	closes_in_time(b);
}

static void *verifies(void *b)
{
	return (void *)(intptr_t)bizlock_verify(b, KEY("named"), "task-1");
}

static void *releases(void *b)
{
	return (void *)(intptr_t)bizlock_release(b, KEY("named"), "task-1", NULL);
}

/* When a call is cut off, the next one is sent to the server, and must be cut off, too. */
Test(own_closing, comes_back_though_calls_wait_for_each_other)
{
	void *(*const calls[])(void *) = {verifies, releases};
	pthread_t threads[2];
	bizlock *b;

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	b = client_of_a_frozen_server(60000);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(pthread_create(&threads[i], NULL, calls[i], b), 0);
		pause_ms(300); /* until the call waits; if it is too short, the test is weaker */
	}
	closes_in_time(b);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

Test(own_closing, comes_back_though_a_thread_waits_at_the_server)
{
	struct call call;
	bizlock *b;

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	b = client_of_a_frozen_server(60000);
	call_start(&call, b, "named", .wait_ms = -1, .owner = "waiter");
	call_blocks(&call);
	closes_in_time(b);
	cr_assert_eq(call_join(&call), BIZLOCK_CANCELLED);
}
