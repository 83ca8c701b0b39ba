/* The client renews what it holds: in time, no more than asked for, and many
 * leases in few statements. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_numbers.h"
#include "cr_test.h"

TestSuite(renewing, .init = world_begin, .fini = world_end, .timeout = 240);

#define LEASE_MS 2400

static struct losses losses;

static bizlock *watched_client(const char *const *options)
{
	bizlock *b = client(options);

	losses_watch(&losses, b);
	return b;
}

/* ---- that it is renewed ---------------------------------------------------------- */

static void outlives_three_leases(const char *const *options, uint32_t flags)
{
	bizlock *b = watched_client(options), *stranger = client(NULL);
	uint32_t lease_ms = busy_lease_ms(b, LEASE_MS);
	uint64_t fence;
	long long start;

	expect(OK, b,
	       bizlock_acquire(b, KEY("k"), &OPTS(.lease_ms = lease_ms, .flags = flags), NULL));
	fence = row_of(&world, KEY("k")).fence;
	start = began_us("k");
	while (server_us() < start + 3500LL * lease_ms) {
		expect(BUSY, stranger, acquire(stranger, "k"));
		cr_assert_gt(bizlock_left_ms(b, KEY("k"), NULL), 0);
		pause_ms(50);
	}
	cr_assert_eq(row_of(&world, KEY("k")).fence, fence);
	cr_assert_eq(began_us("k"), start);
	cr_assert_eq(losses.count, 0);
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	cr_assert(no_row(&world, KEY("k")));
}

Test(renewing, a_hold_outlives_three_leases)
{
	outlives_three_leases(NULL, 0);
}

Test(renewing, a_hold_without_doorbells_outlives_three_leases)
{
	deadlocks_may_happen();
	outlives_three_leases(OPTIONS("queue", "off"), 0);
}

Test(renewing, with_one_connection_a_hold_outlives_three_leases)
{
	outlives_three_leases(OPTIONS("max_connections", "1"), 0);
}

Test(renewing, goes_on_when_connections_are_killed)
{
	bizlock *b = watched_client(NULL);
	long long start;

	expect(OK, b, acquire_renewed(b, "k", .lease_ms = LEASE_MS));
	start = began_us("k");
	while (server_us() < start + 3500LL * LEASE_MS) {
		kill_connections();
		pause_ms(150);
	}
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	cr_assert_eq(losses.count, 0);
}

/* A process whose threads all wait must renew what they hold. */
Test(renewing, goes_on_while_the_owner_waits_for_another_lock)
{
	bizlock *b = watched_client(OPTIONS("max_connections", "2")), *other = client(NULL);
	long long start;

	expect(OK, other, acquire_as(other, "wanted", "holder"));
	expect(OK, b, acquire_renewed(b, "k", .lease_ms = LEASE_MS));
	start = began_us("k");
	while (server_us() < start + 3500LL * LEASE_MS)
		expect(TIMEOUT, b, acquire(b, "wanted", .wait_ms = 500));
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	cr_assert_eq(losses.count, 0);
}

/* ---- how often --------------------------------------------------------------------- */

/* Waits for the next change of the row of "k". Returns how many ms it came after the one at *at. */
static long long next_change_ms(long long *at)
{
	long long before = *at;

	eventually((*at = modified_us("k")) != before);
	return (*at - before) / 1000;
}

/* Renewals come after a third of the lease, by the server's clock. Where one comes late, the next
 * one comes sooner after it, so their sum is what counts. */
static void renews_by_thirds(bizlock *b, uint32_t lease_ms)
{
	long long at = modified_us("k"), ms, sum = 0;

	next_change_ms(&at);
	for (int i = 0; i < 4; i++) {
		ms = next_change_ms(&at);
		cr_assert_lt(ms, lease_ms, "after %lld ms", ms);
		sum += ms;
	}
	cr_assert(sum >= 4 * lease_ms / 4 && sum < 4 * lease_ms / 2, "%lld ms", sum);
	/* The row may be seen to change before the client has its answer. */
	eventually(numbers_of(b).renewals >= 5);
}

Test(renewing, comes_every_third_of_the_lease)
{
	bizlock *b = watched_client(NULL);

	expect(OK, b, acquire_renewed(b, "k", .lease_ms = 3000));
	renews_by_thirds(b, 3000);
}

Test(renewing, comes_every_third_of_the_lease_the_client_has)
{
	bizlock *b = watched_client(OPTIONS("lease_ms", "2400"));

	expect(OK, b, acquire_renewed(b, "k"));
	renews_by_thirds(b, 2400);
}

/* After a renewal by hand, the lease is renewed with the length given there. */
Test(renewing, takes_over_the_length_of_a_renewal_by_hand)
{
	bizlock *b = watched_client(NULL);

	expect(OK, b, acquire_renewed(b, "k", .lease_ms = 600000));
	expect(OK, b, bizlock_renew(b, KEY("k"), NULL, 2400));
	cr_assert_leq(row_of(&world, KEY("k")).left_us, 2400 * 1000);
	renews_by_thirds(b, 2400);
	cr_assert_leq(row_of(&world, KEY("k")).left_us, 2400 * 1000);
}

Test(renewing, a_short_lease_is_renewed_beside_a_long_one)
{
	bizlock *b = watched_client(NULL);

	expect(OK, b, acquire_renewed(b, "long", .lease_ms = 600000));
	expect(OK, b, acquire_renewed(b, "k", .lease_ms = 1000));
	steadily(row_of(&world, KEY("k")).left_us > 0, 3500);
	cr_assert_eq(losses.count, 0);
}

/* The server's time comes with the answer, and may be as old as the answer took. */
Test(renewing, a_slow_answer_is_no_step_of_the_clock)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	unsigned sent;

	expect(OK, b, acquire_renewed(b, "k", .lease_ms = 7500));
	eventually(numbers_of(b).renewals == 1);
	sent = proxy_packets(p);
	proxy_hold_replies(p, true);
	eventually(proxy_packets(p) > sent);
	pause_ms(3000);
	proxy_hold_replies(p, false);
	eventually(numbers_of(b).renewals == 3);
	cr_assert_eq(numbers_of(b).clock_steps, 0);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	proxy_stop(p);
}

/* The release of every other key goes past a renewal of all of them. */
Test(renewing, releases_in_between_cost_no_statements)
{
	enum { ALL = 200, RELEASED = ALL / 2 };
	static struct keyset all, released;
	struct fault late = {.what = FAULT_DELAY, .side = FAULT_REQUESTS, .delay_ms = 1500};
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	unsigned before;

	losses_watch(&losses, b);
	keyset_make(&all, ALL, "k");
	expect(OK, b, keyset_acquire(b, &all, .lease_ms = 9000));
	before = proxy_packets(p);
	proxy_arm(p, &late);
	eventually(proxy_fired(p) == 1);
	released.n = RELEASED;
	for (int i = 0; i < RELEASED; i++)
		released.keys[i] = all.keys[2 * i];
	expect(OK, b, keyset_release(b, &released, NULL));
	cr_assert(proxy_is_late(p));
	eventually(numbers_of(b).renewals >= ALL - RELEASED);
	cr_assert_lt(proxy_packets(p) - before, 10, "%u", proxy_packets(p) - before);
	cr_assert_eq(losses.count, 0);
	proxy_stop(p);
}

/* ---- that it is not ----------------------------------------------------------------- */

static void is_not_renewed(const char *const *options, uint32_t flags)
{
	bizlock *b = watched_client(options);
	long long first_end;

	expect(OK, b,
	       bizlock_acquire(b, KEY("k"), &OPTS(.lease_ms = LEASE_MS, .flags = flags), NULL));
	first_end = row_of(&world, KEY("k")).timeout_us;
	eventually(server_us() > first_end);
	cr_assert_eq(row_of(&world, KEY("k")).timeout_us, first_end);
	eventually(losses.count == 1);
}

Test(renewing, does_not_come_where_the_call_says_so)
{
	is_not_renewed(NULL, BIZLOCK_NO_RENEW);
}

Test(renewing, does_not_come_where_the_client_says_so)
{
	is_not_renewed(OPTIONS("renew", "off"), 0);
}

/* ---- not for ever -------------------------------------------------------------------- */

#define MAX_HOLD_MS 6000
#define LATE_MS 2000 /* for a statement, on a machine that is busy */

/* The last lease is as long as the hold may last, and no longer. */
static void ends_after_max_hold(const char *const *options, uint32_t lease_ms, uint32_t max_hold_ms)
{
	bizlock *b = watched_client(options), *stranger = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	int64_t start = now_ms();
	long long began, end;

	expect(OK, b,
	       bizlock_acquire(b, KEY("k"), &OPTS(.lease_ms = lease_ms, .max_hold_ms = max_hold_ms),
	                       &grant));
	cr_assert_leq(grant.lease_ms, lease_ms);
	began = began_us("k");
	eventually(losses.count == 1);
	cr_assert_geq(losses.list[0].at - start, MAX_HOLD_MS);
	end = row_of(&world, KEY("k")).timeout_us;
	cr_assert_leq(end - began, (MAX_HOLD_MS + LATE_MS) * 1000LL);
	expect(LOST, b, bizlock_verify(b, KEY("k"), NULL));
	expect_message(b, "max_hold_ms");
	expect(OK, stranger, acquire(stranger, "k", .wait_ms = PATIENCE_MS, .grant = &grant));
	cr_assert_eq(grant.flags, BIZLOCK_TOOK_OVER);
}

Test(renewing, ends_after_the_longest_hold_the_call_allows)
{
	ends_after_max_hold(NULL, 4000, MAX_HOLD_MS);
}

Test(renewing, ends_after_the_longest_hold_the_client_allows)
{
	ends_after_max_hold(OPTIONS("max_hold_ms", "6000"), 4000, 0);
}

Test(renewing, the_calls_longest_hold_goes_before_the_clients)
{
	ends_after_max_hold(OPTIONS("max_hold_ms", "200"), 4000, MAX_HOLD_MS);
}

Test(renewing, a_call_may_ask_for_no_longest_hold)
{
	bizlock *b = client(OPTIONS("max_hold_ms", "200"));
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b,
	       bizlock_acquire(b, KEY("k"), &OPTS(.lease_ms = 600000, .max_hold_ms = UINT32_MAX),
	                       &grant));
	cr_assert_eq(grant.lease_ms, 600000);
	cr_assert_gt(row_of(&world, KEY("k")).left_us, 300000000);
}

Test(renewing, ends_before_the_lease_does_where_that_is_longer)
{
	ends_after_max_hold(NULL, 600000, MAX_HOLD_MS);
}

/* Neither by a deeper level nor by a look at the row; but by its owner's own word. */
Test(renewing, of_a_hold_that_ends_is_for_its_owner_to_ask_for)
{
	bizlock *b = watched_client(NULL);
	bizlock_acquire_opts opts = OPTS(.lease_ms = 600000, .max_hold_ms = MAX_HOLD_MS);

	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	expect(OK, b, acquire_renewed(b, "k", .lease_ms = 600000));
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	cr_assert_leq(bizlock_left_ms(b, KEY("k"), NULL), MAX_HOLD_MS);
	cr_assert_leq(row_of(&world, KEY("k")).left_us, (MAX_HOLD_MS + LATE_MS) * 1000LL);
	expect(OK, b, bizlock_renew(b, KEY("k"), NULL, 600000));
	cr_assert_gt(bizlock_left_ms(b, KEY("k"), NULL), 300000);
}

/* Those that end at about the same time do not go one by one, although the last lease of each has a
 * length of its own. A round renews all that are due within a sixth of a lease: that makes ten
 * rounds at the most, and the renewer connects. The holds have no doorbells: each would be given
 * back when its hold is lost, by the more packets the slower the machine is. The ends are set by
 * levels that need no statement, and so are near each other on any machine. */
Test(renewing, of_many_that_end_is_not_one_by_one)
{
	enum { HOLDS = LOSSES_MAX, APART_MS = 2 };
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	bizlock_acquire_opts opts =
	        OPTS(.lease_ms = 4000, .flags = BIZLOCK_NO_QUEUE | BIZLOCK_LOCAL_REENTRY);
	unsigned packets;
	char ids[HOLDS][8];

	losses_watch(&losses, b);
	for (int i = 0; i < HOLDS; i++) {
		snprintf(ids[i], sizeof(ids[i]), "k%d", i);
		expect(OK, b, bizlock_acquire(b, KEY(ids[i]), &opts, NULL));
	}
	packets = proxy_packets(p);
	for (int i = 0; i < HOLDS; i++) {
		opts.max_hold_ms = MAX_HOLD_MS + i * APART_MS;
		expect(OK, b, bizlock_acquire(b, KEY(ids[i]), &opts, NULL));
	}
	eventually(losses.count >= HOLDS);
	packets = proxy_packets(p) - packets;
	cr_assert_lt(packets, HOLDS / 2, "%u packets", packets);
	proxy_stop(p);
}

/* ---- many ----------------------------------------------------------------------------- */

static struct own_server server;

static void end_own_world(void)
{
	if (world.admin)
		world_end();
	own_server_end(&server);
}

TestSuite(own_renewing, .fini = end_own_world, .timeout = 480);

#define MANY 1000
#define MANY_LEASE_MS 6000
#define FEW 10 /* statements a second */

static long long statements(void)
{
	char *status = db_text(world.admin, "SHOW GLOBAL STATUS LIKE 'Questions'");
	long long n = strtoll(strchr(status, '|') + 1, NULL, 10);

	free(status);
	return n;
}

static long long held_by_the_server(void)
{
	return db_number(world.admin,
	                 "SELECT COUNT(*) FROM biz_lock WHERE timeout > UTC_TIMESTAMP(6)");
}

static void take_many(bizlock *b)
{
	char id[16];

	for (int i = 0; i < MANY; i++) {
		snprintf(id, sizeof(id), "k%d", i);
		expect(OK, b, acquire_renewed(b, id, .lease_ms = MANY_LEASE_MS));
	}
}

Test(own_renewing, a_thousand_leases_need_few_statements)
{
	bizlock *b;
	long long before, mine = 0, sent;
	int64_t start;

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	own_server_start(&server, "");
	world_make(&world, &server.at);
	world_migrate(&world);
	b = watched_client(NULL);
	take_many(b);
	before = statements();
	start = now_ms();
	while (now_ms() < start + 2 * MANY_LEASE_MS) {
		cr_assert_eq(held_by_the_server(), MANY);
		mine++;
		pause_ms(500);
	}
	sent = statements() - before - mine - 1;
	cr_assert_lt(sent, 2LL * MANY_LEASE_MS / 1000 * FEW);
	cr_assert_gt(sent, 0);
	cr_assert_eq(losses.count, 0);
}
