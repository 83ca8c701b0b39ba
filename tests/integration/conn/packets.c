/* The packets that are sent when nobody else wants the lock. */
#define _GNU_SOURCE 1
#include "cr_test.h"

/* After an answer as slow as this, another statement may follow. */
#define SLOW_MS 100

TestSuite(packets, .init = world_begin, .fini = world_end, .timeout = 240);

/* A client that is connected, has prepared its statements, and has seen the key before. */
static bizlock *warm_client(const struct proxy *p, const char *const *options)
{
	bizlock *b = client_through(p, options);

	for (int i = 0; i < 3; i++) {
		expect(OK, b, acquire(b, "k", .wait_ms = -1));
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	}
	return b;
}

static void acquire_and_release_are(unsigned acquire_packets, const char *queue, int64_t wait_ms)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = warm_client(p, OPTIONS("queue", queue));

	for (int i = 0; i < 10; i++) {
		unsigned before = proxy_packets(p), acquired;
		int64_t start = now_ms();

		expect(OK, b, acquire(b, "k", .wait_ms = wait_ms));
		acquired = proxy_packets(p);
		cr_assert(acquired - before == acquire_packets || now_ms() - start >= SLOW_MS);
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
		cr_assert_eq(proxy_packets(p) - acquired, 1);
	}
	proxy_stop(p);
}

/* What any client sends before its first statement. */
static unsigned login_packets(void)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	struct server at = proxy_address(p);
	MYSQL *db = db_connect(&at, world.schema, 0, PATIENCE_MS / 1000);
	unsigned sent = proxy_packets(p);

	mysql_close(db);
	proxy_stop(p);
	return sent;
}

/* From open to release: settings, mark, server, compound (MariaDB), tables, doorbells; the lock,
 * and its release. A second connection would be more. */
#define LIFE_PACKETS 8

Test(packets, a_client_that_lives_for_one_lock_sends_few)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	struct server at = proxy_address(p);
	struct world by_way = world_by_way_of(&world, &at);
	unsigned login = login_packets(), sent;
	bizlock *b = client_open(&by_way, OPTIONS("ssl_mode", "disabled"));

	expect(OK, b, acquire(b, "k"));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	sent = proxy_packets(p) - login;
	bizlock_close(b);
	cr_assert_leq(sent, LIFE_PACKETS, "%u packets, and %u to log in", sent, login);
	proxy_stop(p);
}

Test(packets, acquire_and_release_are_one_each)
{
	acquire_and_release_are(1, "auto", -1);
}

Test(packets, a_single_try_that_succeeds_is_one)
{
	acquire_and_release_are(1, "auto", 0);
}

/* The fence is drawn a second time, when the row is there; and then it asks for a rival. */
Test(packets, without_the_queue_an_acquire_is_three)
{
	acquire_and_release_are(3, "off", -1);
}

Test(packets, a_new_key_costs_no_more)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = warm_client(p, NULL);
	unsigned before = proxy_packets(p);
	int64_t start = now_ms();

	expect(OK, b, acquire(b, "never seen", .wait_ms = -1));
	expect(OK, b, bizlock_release(b, KEY("never seen"), NULL, NULL));
	cr_assert(proxy_packets(p) - before == 2 || now_ms() - start >= SLOW_MS);
	proxy_stop(p);
}

Test(packets, reentry_and_its_release_are_one_each)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = warm_client(p, NULL);
	unsigned before;

	for (int i = 0; i < 3; i++) /* the second re-entry prepares its statement */
		expect(OK, b, acquire(b, "k", .wait_ms = -1));
	before = proxy_packets(p);
	expect(OK, b, acquire(b, "k", .wait_ms = -1));
	cr_assert_eq(proxy_packets(p) - before, 1);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	cr_assert_eq(proxy_packets(p) - before, 2);
	proxy_stop(p);
}

/* The first one finds a row whose lease is over, and leaves it as it is. A statement is prepared
 * when it is sent for the second time, so the third time both are. */
Test(packets, a_takeover_costs_one_more)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *stale = client_through(p, OPTIONS("queue", "off")), *b = warm_client(p, NULL);

	for (int i = 0; i < 3; i++) {
		bizlock_grant grant = BIZLOCK_GRANT_INIT;
		unsigned before;
		int64_t start;

		/* The doorbell of the last release may be given back by another connection, a
		 * moment later. */
		expect(OK, stale, acquire(stale, "k", .lease_ms = 100, .wait_ms = -1));
		lease_is_over("k");
		before = proxy_packets(p);
		start = now_ms();
		expect(OK, b, acquire(b, "k", .grant = &grant));
		cr_assert_eq(grant.flags, BIZLOCK_TOOK_OVER);
		cr_assert(i < 2 || proxy_packets(p) - before == 2 || now_ms() - start >= SLOW_MS);
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
		expect(LOST, stale, bizlock_release(stale, KEY("k"), NULL, NULL));
	}
	proxy_stop(p);
}

Test(packets, what_the_client_knows_alone_costs_none)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = warm_client(p, NULL);
	unsigned before;

	expect(OK, b, acquire_as(b, "k", "task-1"));
	before = proxy_packets(p);
	cr_assert_gt(bizlock_left_ms(b, KEY("k"), "task-1"), 0);
	cr_assert_leq(bizlock_left_ms(b, KEY("k"), NULL), 0);
	expect(NOT_OWNER, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(NOT_OWNER, b, bizlock_release(b, KEY("k"), "task-2", NULL));
	expect(NOT_OWNER, b, bizlock_renew(b, KEY("k"), "task-2", 0));
	cr_assert_eq(proxy_packets(p), before);
	proxy_stop(p);
}
