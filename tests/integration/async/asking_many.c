/* Thousands of requests: together in batches, on few connections, without a thread for each. */
#include "cr_ask.h"

#include <dirent.h>
#include <stdio.h>

TestSuite(asking_many, .init = world_begin, .fini = world_end, .timeout = 480);

#define N 2000

static struct ask asks[N];

static void start_some(bizlock *b, int n, int64_t wait_ms, uint32_t flags)
{
	for (int i = 0; i < n; i++) {
		char id[16];

		snprintf(id, sizeof(id), "k-%d", i);
		ask_for(&asks[i], b, id, "task", .wait_ms = wait_ms, .flags = flags);
	}
}

static void start_all(bizlock *b, int64_t wait_ms)
{
	start_some(b, N, wait_ms, 0);
}

static int answered(void)
{
	int n = 0;

	for (int i = 0; i < N; i++)
		n += asks[i].calls;
	return n;
}

static int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static long long connections(void)
{
	return db_number(world.admin,
	                 "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = '%s'",
	                 world.schema);
}

static long long in_sleep(void)
{
	return db_number(world.admin,
	                 "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = '%s' AND "
	                 "STATE = 'User sleep'",
	                 world.schema);
}

static void release_all(bizlock *b)
{
	for (int i = 0; i < N; i++)
		ask_release(&asks[i]);
	dispatch_until(b, answered() == N);
	for (int i = 0; i < N; i++)
		cr_assert_eq(asks[i].rc, BIZLOCK_OK, "%d: %s", i, asks[i].errmsg);
	cr_assert_eq(all_rows(&world), 0);
}

/* One by one they would be N packets for the acquisitions, and N for the releases. */
Test(asking_many, what_is_started_together_travels_together)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("combine", "on"));
	unsigned before = proxy_packets(p);

	start_all(b, -1);
	dispatch_until(b, answered() == N);
	for (int i = 0; i < N; i++)
		cr_assert_eq(asks[i].rc, BIZLOCK_OK, "%d: %s", i, asks[i].errmsg);
	cr_assert_eq(all_rows(&world), N);
	cr_assert_lt(proxy_packets(p) - before, N / 2);
	before = proxy_packets(p);
	release_all(b);
	cr_assert_lt(proxy_packets(p) - before, N / 2);
	proxy_stop(p);
}

/* A row that says that a lock is shared is missing at first, so more statements are needed. */
Test(asking_many, those_that_share_travel_together)
{
	enum { SOME = 512 };
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("combine", "on"));
	unsigned before = proxy_packets(p);

	start_some(b, SOME, -1, BIZLOCK_SHARED);
	dispatch_until(b, answered() == SOME);
	for (int i = 0; i < SOME; i++)
		cr_assert_eq(asks[i].rc, BIZLOCK_OK, "%d: %s", i, asks[i].errmsg);
	cr_assert_lt(proxy_packets(p) - before, SOME / 4);
	before = proxy_packets(p);
	for (int i = 0; i < SOME; i++)
		ask_release(&asks[i]);
	dispatch_until(b, answered() == SOME);
	for (int i = 0; i < SOME; i++)
		cr_assert_eq(asks[i].rc, BIZLOCK_OK, "%d: %s", i, asks[i].errmsg);
	cr_assert_lt(proxy_packets(p) - before, SOME / 4);
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE owner <> ''"), 0);
	proxy_stop(p);
}

/* The server takes longer for a batch than an answer may take that tells the fences. One by one
 * they would be drawn again by as many packets. */
Test(asking_many, fences_that_come_late_are_drawn_again_together)
{
	enum { SOME = 256 };
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("combine", "on"));
	unsigned before;

	works(b);
	db_run(world.admin, "CREATE TRIGGER slow BEFORE INSERT ON biz_lock FOR EACH ROW "
	                    "SET @slept = SLEEP(0.004)");
	before = proxy_packets(p);
	start_some(b, SOME, -1, 0);
	dispatch_until(b, answered() == SOME);
	cr_assert_lt(proxy_packets(p) - before, SOME / 4);
	for (int i = 0; i < SOME; i++) {
		cr_assert_eq(asks[i].rc, BIZLOCK_OK, "%d: %s", i, asks[i].errmsg);
		cr_assert_eq(row_of(&world, KEY(asks[i].id)).fence, asks[i].grant.fence);
		expect(OK, b, bizlock_verify(b, KEY(asks[i].id), "task"));
	}
	proxy_stop(p);
}

static bizlock *hold_all(void)
{
	bizlock *b = client_open(&world, NULL);
	bizlock_acquire_opts opts = OPTS(.owner = "holder", .lease_ms = 20 * PATIENCE_MS);
	char ids[N][16];
	bizlock_key keys[N];

	for (int i = 0; i < N; i++) {
		snprintf(ids[i], sizeof(ids[i]), "k-%d", i);
		keys[i] = KEY(ids[i]);
	}
	for (int i = 0; i < N; i += 200)
		expect(OK, b, bizlock_acquire_all(b, keys + i, 200, &opts, NULL));
	return b;
}

Test(asking_many, waits_share_connections_and_threads)
{
	bizlock *other = hold_all(), *b;
	long long theirs = connections();
	int before = threads();

	b = client(NULL);
	start_all(b, -1);
	dispatch_until(b, watchers(&world) == 4);
	if (!server_is_mysql(world.admin)) /* see bl_sql_sleep() */
		cr_assert_leq(in_sleep(), 1);
	cr_assert_eq(answered(), 0);
	cr_assert_leq(connections() - theirs, 16);
	dispatch_until(b, threads() - before <= 5); /* those that dial end */
	for (int i = 0; i < N; i += N / 10) {
		int64_t start = now_ms();

		expect(OK, other, bizlock_release(other, KEY(asks[i].id), "holder", NULL));
		ask_ends(OK, &asks[i]);
		cr_assert_lt(now_ms() - start, 10000);
	}
	cr_assert_eq(answered(), 10);
	bizlock_close(other);
	dispatch_until(b, answered() == N);
	release_all(b);
}
