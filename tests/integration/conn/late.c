/* A statement that was sent to the first of two hosts arrives long after the client has gone on to
 * the second. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_test.h"

TestSuite(late, .init = world_begin, .fini = world_end, .timeout = 240);

#define LEASE "12000" /* one of several hosts then has 2 s for an answer */
#define LATE_MS 20000 /* more than it takes to give a host up, and to be back */
#define LONG_MS 600000

/* Two ways to one server, which seems to be two, as the members of a cluster are: by the first way
 * it has another port. What would end a connection there has no effect by the second way. */
struct two {
	struct proxy *first, *second;
	bizlock *b;
	char port[32], other[32];
};

/* The client begins with the first one, however slow that is. */
static void two_begin(struct two *t)
{
	struct fault refuse = {.what = FAULT_CUT, .side = FAULT_REPLIES, .for_ever = true};
	char hosts[64];
	long long port = db_number(world.admin, "SELECT @@port");

	skip_unless(world.at.port && port, "the server has no port");
	snprintf(t->port, sizeof(t->port), ":%lld:", port);
	snprintf(t->other, sizeof(t->other), ":%lld:", port % 10 == 9 ? port - 1 : port + 1);
	t->first = proxy_start(&world.at, "127.0.0.1");
	t->second = proxy_start(&world.at, "127.0.0.1");
	proxy_replace(t->first, t->port, t->other);
	proxy_replace(t->second, "KILL IF(", "KILL NO(");
	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u,127.0.0.1:%u", proxy_address(t->first).port,
	         proxy_address(t->second).port);
	proxy_arm(t->second, &refuse);
	t->b = client_open(&world, OPTIONS("host", hosts, "lease_ms", LEASE, "max_connections", "1",
	                                   "connect_timeout_ms", "5000", "ssl_mode", "disabled"));
	works(t->b);
	proxy_arm(t->second, NULL);
}

static void two_end(struct two *t)
{
	proxy_hold_dials(t->first, false);
	bizlock_close(t->b);
	proxy_stop(t->first);
	if (t->second)
		proxy_stop(t->second);
}

/* The next statement, by the first way. Its client goes on to the second host: a dial to the first
 * one, tried beside a second host that is slow, would win, and end the connection of the statement.
 */
static void make_late(const struct two *t)
{
	struct fault fault = {.what = FAULT_DELAY, .side = FAULT_REQUESTS, .delay_ms = LATE_MS};

	proxy_hold_dials(t->first, true);
	proxy_arm(t->first, &fault);
}

/* The client is at the second host when it loses that one, too. Back at the first, it ends what it
 * has left there. */
Test(late, an_acquisition_is_ended_when_its_host_is_used_again)
{
	struct two t;

	two_begin(&t);
	make_late(&t);
	expect(OK, t.b, acquire(t.b, "k", .wait_ms = PATIENCE_MS));
	cr_assert_gt(proxy_fired(t.first), 0);
	expect(OK, t.b, bizlock_release(t.b, KEY("k"), NULL, NULL));
	cr_assert(proxy_is_late(t.first), "this machine was too slow to try it");
	proxy_stop(t.second);
	t.second = NULL;
	proxy_hold_dials(t.first, false);
	expect(OK, t.b, acquire(t.b, "other", .wait_ms = PATIENCE_MS));
	eventually(!proxy_is_late(t.first));
	steadily(!row_of(&world, KEY("k")).there, 300);
	two_end(&t);
}

/* Is the lease at the server at least what the client believes? */
static void expect_no_false_belief(const struct two *t)
{
	int64_t left_ms = bizlock_left_ms(t->b, KEY("k"), NULL);
	struct row row = row_of(&world, KEY("k"));

	cr_assert_leq(left_ms, row.left_us / 1000 + 1000, "%lld ms are left", row.left_us / 1000);
}

Test(late, a_renewal_does_not_shorten_a_lease_behind_the_back_of_its_holder)
{
	struct two t;

	two_begin(&t);
	expect(OK, t.b, acquire(t.b, "k", .lease_ms = LONG_MS));
	for (int i = 0; i < 2; i++) /* the next one is one packet */
		expect(OK, t.b, bizlock_renew(t.b, KEY("k"), NULL, LONG_MS));
	make_late(&t);
	expect(OK, t.b, bizlock_renew(t.b, KEY("k"), NULL, 2 * LATE_MS));
	cr_assert_gt(proxy_fired(t.first), 0);
	expect(OK, t.b, bizlock_renew(t.b, KEY("k"), NULL, LONG_MS));
	cr_assert(proxy_is_late(t.first), "this machine was too slow to try it");
	cr_assert_gt(row_of(&world, KEY("k")).left_us / 1000, 3 * LATE_MS);
	eventually(row_of(&world, KEY("k")).left_us / 1000 < 2 * LATE_MS);
	expect_no_false_belief(&t);
	expect(OK, t.b, bizlock_verify(t.b, KEY("k"), NULL));
	expect_no_false_belief(&t);
	two_end(&t);
}
