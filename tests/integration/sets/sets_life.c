/* Sets: renewal, loss, numbers, and cost. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cr_keyset.h"
#include "cr_numbers.h"
#include "cr_test.h"

TestSuite(sets_life, .init = world_begin, .fini = world_end, .timeout = 240);

#define LEASE_MS 60000

/* ---- renewed, or lost ------------------------------------------------------------ */

static void outlives_two_leases(const char *queue)
{
	bizlock *b = client(OPTIONS("queue", queue));
	long long ends[3];
	struct keyset s;

	keyset_make(&s, 3, "k");
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = 4000));
	for (size_t i = 0; i < s.n; i++)
		ends[i] = row_of(&world, s.keys[i]).timeout_us;
	for (size_t i = 0; i < s.n; i++)
		eventually(row_of(&world, s.keys[i]).timeout_us > ends[i] + 4000 * 1000);
	expect_held(b, &s, NULL, 1);
	cr_assert_geq(numbers_of(b).renewals, 2 * s.n);
	expect(OK, b, keyset_release(b, &s, NULL));
}

Test(sets_life, each_key_is_renewed)
{
	outlives_two_leases("auto");
}

Test(sets_life, each_key_is_renewed_without_the_queue)
{
	deadlocks_may_happen();
	outlives_two_leases("off");
}

Test(sets_life, it_is_not_renewed_if_that_is_not_wanted)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	struct keyset s;

	keyset_make(&s, 3, "k");
	opts.flags = BIZLOCK_NO_RENEW;
	opts.lease_ms = 300;
	expect(OK, b, bizlock_acquire_all(b, s.keys, s.n, &opts, NULL));
	for (size_t i = 0; i < s.n; i++)
		lease_is_over(s.ids[i]);
	expect(LOST, b, keyset_release(b, &s, NULL));
	eventually(rows() == 0);
}

static atomic_uint losses;
static atomic_ullong lost_fence;

static void count_loss(void *arg, bizlock_key key, uint64_t fence)
{
	(void)arg;
	(void)key;
	atomic_store(&lost_fence, fence);
	atomic_fetch_add(&losses, 1);
}

Test(sets_life, the_loss_of_one_key_is_reported_of_that_one)
{
	bizlock *a = client(NULL), *b = client(NULL);
	struct keyset s;

	keyset_make(&s, 4, "k");
	expect(OK, b, bizlock_on_lost(b, count_loss, NULL));
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = 3000));
	expect(OK, a, bizlock_break(a, s.keys[2], s.grants[2].fence));
	eventually(atomic_load(&losses) == 1);
	cr_assert_eq(atomic_load(&lost_fence), s.grants[2].fence);
	for (size_t i = 0; i < s.n; i++) {
		int rc = bizlock_verify(b, s.keys[i], NULL);

		cr_assert_eq(rc, i == 2 ? BIZLOCK_LOST : BIZLOCK_OK, "%s: %s", s.ids[i],
		             bizlock_err_name(rc));
	}
	expect(LOST, b, keyset_release(b, &s, NULL));
	cr_assert_eq(rows(), 0);
	cr_assert_eq(atomic_load(&losses), 1);
}

Test(sets_life, closing_the_client_releases_it)
{
	bizlock *b = client_open(&world, NULL);
	struct keyset s;

	keyset_make(&s, 100, "k");
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
	bizlock_close(b);
	cr_assert_eq(all_rows(&world), 0);
}

static int hold_and_die(void)
{
	bizlock *b = client_open(&world, NULL);
	struct keyset s;

	keyset_make(&s, 5, "k");
	return keyset_acquire(b, &s, .lease_ms = 1000);
}

Test(sets_life, what_a_process_held_that_died_is_taken_over)
{
	bizlock *b;
	struct keyset s;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(hold_and_die());
	cr_assert(waitpid(pid, &status, 0) == pid && status == 0);
	b = client(NULL);
	keyset_make(&s, 7, "k");
	expect(OK, b, keyset_acquire(b, &s, .wait_ms = -1, .lease_ms = LEASE_MS));
	for (size_t i = 0; i < s.n; i++)
		cr_assert_eq(s.grants[i].flags, i < 5 ? BIZLOCK_TOOK_OVER : 0, "%s", s.ids[i]);
	expect_held(b, &s, NULL, 1);
}

/* ---- counted ------------------------------------------------------------------------ */

Test(sets_life, each_key_counts)
{
	bizlock *b = client(NULL);
	bizlock_numbers was = numbers_of(b), now;
	struct keyset s;

	keyset_make(&s, 7, "k");
	expect(OK, b, acquire(b, s.ids[3], .lease_ms = LEASE_MS));
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
	now = numbers_of(b);
	cr_assert_eq(now.held - was.held, 7);
	cr_assert_eq(now.acquired - was.acquired, 7);
	cr_assert_eq(now.reentered - was.reentered, 1);
	expect(OK, b, keyset_release(b, &s, NULL));
	now = numbers_of(b);
	cr_assert_eq(now.held - was.held, 1);
	cr_assert_eq(now.released - was.released, 6);
	cr_assert_eq(now.lost + now.busy + now.timed_out + now.retried_conflict, 0);
}

Test(sets_life, what_was_taken_over_counts)
{
	bizlock *a = client(NULL), *b = client(NULL);
	struct keyset s;

	keyset_make(&s, 4, "k");
	expect(OK, a, acquire(a, s.ids[0], .lease_ms = 150, .wait_ms = -1));
	expect(OK, a, acquire(a, s.ids[3], .lease_ms = 150, .wait_ms = -1));
	lease_is_over(s.ids[0]);
	lease_is_over(s.ids[3]);
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
	cr_assert_eq(numbers_of(b).acquired, 4);
	cr_assert_eq(numbers_of(b).taken_over, 2);
}

Test(sets_life, what_was_not_obtained_counts)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_numbers n;
	struct keyset s;
	struct call call;

	keyset_make(&s, 4, "k");
	expect(OK, a, acquire_as(a, s.ids[2], "holder"));
	expect(OK, b, acquire_as(b, s.ids[1], "task-1"));
	expect(BUSY, b, keyset_acquire(b, &s, .owner = "task-1"));
	cr_assert_gt(numbers_of(b).busy, 0);
	expect(TIMEOUT, b, keyset_acquire(b, &s, .wait_ms = 50, .owner = "task-1"));
	cr_assert_gt(numbers_of(b).timed_out, 0);
	call_start_all(&call, b, &s, .wait_ms = -1, .owner = "task-1");
	call_blocks(&call);
	bizlock_interrupt(b);
	cr_assert_eq(call_join(&call), BIZLOCK_CANCELLED);
	n = numbers_of(b);
	cr_assert_gt(n.cancelled, 0);
	cr_assert(n.held == 1 && n.acquired == 1 && n.reentered == 0 && n.released == 0,
	          "held %llu, acquired %llu, reentered %llu, released %llu",
	          (unsigned long long)n.held, (unsigned long long)n.acquired,
	          (unsigned long long)n.reentered, (unsigned long long)n.released);
}

/* ---- cheap --------------------------------------------------------------------------- */

/* A few statements, however many keys there are. */
Test(sets_life, its_packets_do_not_grow_with_its_keys)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	unsigned packets[2];
	struct keyset s;

	for (int large = 0; large < 2; large++) {
		keyset_make(&s, large ? 64 : 2, large ? "large" : "small");
		for (int round = 0; round < 3; round++) {
			unsigned before = proxy_packets(p);

			expect(OK, b, keyset_acquire(b, &s, .wait_ms = -1, .lease_ms = LEASE_MS));
			expect(OK, b, keyset_release(b, &s, NULL));
			packets[large] = proxy_packets(p) - before;
		}
	}
	cr_assert_leq(packets[0], 8, "%u for two keys", packets[0]);
	cr_assert_leq(packets[1], packets[0] + 2, "%u for two keys, %u for sixty-four", packets[0],
	              packets[1]);
	proxy_stop(p);
}

static struct own_server server;

static void end_own_world(void)
{
	if (world.admin)
		world_end();
	own_server_end(&server);
}

TestSuite(own_sets, .fini = end_own_world, .timeout = 480);

/* Of the log, where the server counts these by themselves: MySQL 8.0 flushes pages meanwhile. */
static long long fsyncs(void)
{
	long long of_log = db_status(world.admin, "Innodb_os_log_fsyncs");

	return of_log >= 0 ? of_log : db_status(world.admin, "Innodb_data_fsyncs");
}

/* One commit for the acquisition and one for the release. The server adds some of its own. */
Test(own_sets, each_costs_one_fsync)
{
	enum { ROUNDS = 50 };
	struct keyset s;
	long long before;
	bizlock *b;

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	own_server_start(&server, "--innodb-flush-log-at-trx-commit=1");
	world_make(&world, &server.at);
	world_migrate(&world);
	b = client(NULL);
	keyset_make(&s, 32, "k");
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
	expect(OK, b, keyset_release(b, &s, NULL));
	before = fsyncs();
	for (int i = 0; i < ROUNDS; i++) {
		expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
		expect(OK, b, keyset_release(b, &s, NULL));
	}
	cr_assert_leq(fsyncs() - before, 4 * ROUNDS, "%lld for %d sets", fsyncs() - before, ROUNDS);
}
