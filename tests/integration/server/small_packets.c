/* A server that takes small packets only, and many holds. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_test.h"

static struct own_server server;

static void end_own_world(void)
{
	if (world.admin)
		world_end();
	own_server_end(&server);
}

TestSuite(own_small_packets, .fini = end_own_world, .timeout = 480);

#define N 200

static char ids[N][8];
static bizlock_key keys[N];

static void begin(void)
{
	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	own_server_start(&server, "");
	world_make(&world, &server.at);
	world_migrate(&world);
	db_run(world.admin, "SET GLOBAL max_allowed_packet = 8192");
	for (int i = 0; i < N; i++) {
		snprintf(ids[i], sizeof(ids[i]), "k-%d", i);
		keys[i] = KEY(ids[i]);
	}
}

static void hold_all(bizlock *b, uint32_t lease_ms)
{
	for (int i = 0; i < N; i++)
		expect(OK, b, acquire_renewed(b, ids[i], .lease_ms = lease_ms, .owner = "o"));
}

/* All that are due are renewed by one statement, and given back by one. */
Test(own_small_packets, holds_are_renewed_and_given_back)
{
	bizlock *b;

	begin();
	b = client(NULL);
	hold_all(b, 6000);
	steadily(true, 9000);
	for (int i = 0; i < N; i++)
		expect(OK, b, bizlock_verify(b, keys[i], "o"));
	expect(OK, b, bizlock_release_all(b, keys, N, "o"));
	cr_assert_eq(all_rows(&world), 0);
}

Test(own_small_packets, a_close_gives_all_back)
{
	bizlock *b;

	begin();
	b = client_open(&world, NULL);
	hold_all(b, 20 * PATIENCE_MS);
	bizlock_close(b);
	cr_assert_eq(all_rows(&world), 0);
}

/* A set is taken by one statement or not at all. */
Test(own_small_packets, a_set_that_is_too_large_is_refused)
{
	bizlock_acquire_opts opts = OPTS(.owner = "o");
	bizlock *b;

	begin();
	b = client(NULL);
	expect(DB, b, bizlock_acquire_all(b, keys, N, &opts, NULL));
	expect_message(b, "max_allowed_packet");
	expect(OK, b, bizlock_acquire_all(b, keys, 8, &opts, NULL));
	expect(OK, b, bizlock_release_all(b, keys, 8, "o"));
}

Test(own_small_packets, stale_rows_are_reaped)
{
	bizlock *b;

	begin();
	b = client(OPTIONS("renew", "off"));
	hold_all(b, 100);
	lease_is_over(ids[N - 1]);
	db_run(world.admin, "UPDATE biz_lock SET timeout = timeout - INTERVAL 1 DAY");
	expect(OK, b, bizlock_reap(b, NULL, NULL));
	cr_assert_eq(all_rows(&world), 0);
}
