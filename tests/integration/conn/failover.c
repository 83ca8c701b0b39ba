/* Several hosts, of which one is silent: how little that costs, and which host is tried next. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "cr_test.h"
#include "mute.h"

#define LONG "600000" /* for timeouts that a test would never wait for */
#define LEASE "12000" /* one of several hosts then has 2 s for an answer */
#define WAITERS 4

TestSuite(failover, .init = world_begin, .fini = world_end, .timeout = 240);

static const char *both(unsigned first, unsigned second)
{
	static char hosts[64];

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u,127.0.0.1:%u", first, second);
	return hosts;
}

static unsigned good_port(void)
{
	skip_unless(world.at.port && strcmp(world.at.host, "127.0.0.1") == 0,
	            "the server has no port on this machine");
	return world.at.port;
}

Test(failover, a_silent_host_does_not_keep_the_next_one_waiting)
{
	struct mute m = mute_start();
	bizlock *b = client(OPTIONS("host", both(m.port, good_port()), "connect_timeout_ms", LONG));

	works(b);
	cr_assert_geq(mute_stop(&m), 1, "the first host was not tried");
}

Test(failover, a_host_that_failed_lately_comes_last)
{
	struct mute m = mute_start();
	bizlock *b = client(OPTIONS("host", both(m.port, good_port()), "connect_timeout_ms", LONG));
	unsigned dials;

	for (int i = 0; i < 20; i++) {
		kill_connections();
		expect(OK, b, acquire(b, "k", .wait_ms = PATIENCE_MS));
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	}
	dials = mute_stop(&m);
	cr_assert_lt(dials, 20, "%u connections to a host that does not answer", dials);
}

/* The first host, through a proxy, and the same server without it. */
struct way {
	struct proxy *proxy;
	bizlock *b;
};

static struct way way_begin(const char *max_connections)
{
	struct way w;
	const char *hosts;

	good_port();
	w.proxy = proxy_start(&world.at, "127.0.0.1");
	hosts = both(proxy_address(w.proxy).port, world.at.port);
	w.b = client_open(&world, OPTIONS("host", hosts, "io_timeout_ms", LONG,
	                                  "connect_timeout_ms", LONG, "lease_ms", LEASE, "ssl_mode",
	                                  "disabled", "max_connections", max_connections));
	return w;
}

static void way_end(struct way *w)
{
	proxy_stop(w->proxy);
	bizlock_close(w->b);
}

static bizlock_numbers numbers_of(bizlock *b)
{
	bizlock_numbers n = {.size = sizeof(n)};

	expect(OK, b, bizlock_stats(b, &n));
	return n;
}

Test(failover, a_host_that_falls_silent_is_left_long_before_the_lease_ends)
{
	struct way w = way_begin("8");

	expect(OK, w.b, acquire_renewed(w.b, "held"));
	proxy_hold_replies(w.proxy, true);
	expect(OK, w.b, acquire(w.b, "k", .wait_ms = PATIENCE_MS));
	expect(OK, w.b, bizlock_release(w.b, KEY("k"), NULL, NULL));
	expect(OK, w.b, bizlock_verify(w.b, KEY("held"), NULL));
	expect(OK, w.b, bizlock_release(w.b, KEY("held"), NULL, NULL));
	way_end(&w);
}

static void held_is_renewed(void)
{
	long long end_us = row_of(&world, KEY("held")).timeout_us;

	eventually(row_of(&world, KEY("held")).timeout_us > end_us);
}

/* There would be time for it to wait for another 8 s. */
Test(failover, a_renewal_is_given_up_as_soon_as_other_answers)
{
	struct way w = way_begin("8");
	int64_t begun;

	expect(OK, w.b, acquire_renewed(w.b, "held", .lease_ms = 24000));
	held_is_renewed();
	eventually(bizlock_left_ms(w.b, KEY("held"), NULL) > 20000);
	proxy_hold_replies(w.proxy, true);
	held_is_renewed(); /* which is not answered */
	begun = now_ms();
	held_is_renewed();
	cr_assert_lt(now_ms() - begun, 6000);
	way_end(&w);
}

/* Nothing but renewals is sent here. */
Test(failover, renewals_go_back_to_the_first_host)
{
	struct way w = way_begin("8");
	unsigned packets;

	expect(OK, w.b, acquire_renewed(w.b, "held", .lease_ms = 9000));
	proxy_hold_replies(w.proxy, true);
	held_is_renewed();
	held_is_renewed();
	proxy_hold_replies(w.proxy, false);
	do {
		packets = proxy_packets(w.proxy);
		pause_ms(1000); /* dials that came second end */
	} while (proxy_packets(w.proxy) > packets);
	eventually(proxy_packets(w.proxy) > packets);
	expect(OK, w.b, bizlock_release(w.b, KEY("held"), NULL, NULL));
	way_end(&w);
}

static const char *const ids[WAITERS] = {"k0", "k1", "k2", "k3"};

/* Each key is acquired, and its doorbell held, on a connection of its own. */
static void acquire_after_waiting(bizlock *b)
{
	bizlock *holder = client(NULL);
	struct call calls[WAITERS];

	for (int i = 0; i < WAITERS; i++)
		expect(OK, holder, acquire(holder, ids[i], .owner = "holder"));
	for (int i = 0; i < WAITERS; i++)
		call_start(&calls[i], b, ids[i], .wait_ms = PATIENCE_MS, .owner = "waiter");
	eventually(doorbell_waiters(&world) == WAITERS);
	for (int i = 0; i < WAITERS; i++)
		expect(OK, holder, bizlock_release(holder, KEY(ids[i]), "holder", NULL));
	for (int i = 0; i < WAITERS; i++)
		cr_assert_eq(call_join(&calls[i]), BIZLOCK_OK, "%s", calls[i].errmsg);
}

/* Nothing is sent on these: it would be silent for as long again. */
Test(failover, idle_connections_to_a_host_that_fell_silent_are_left)
{
	struct way w = way_begin("12");
	uint64_t lost;

	acquire_after_waiting(w.b);
	proxy_hold_replies(w.proxy, true);
	for (int i = 0; i < WAITERS; i++)
		expect(OK, w.b, bizlock_release(w.b, KEY(ids[i]), "waiter", NULL));
	lost = numbers_of(w.b).retried_lost;
	cr_assert_eq(lost, 1, "%llu statements were sent to it", (unsigned long long)lost);
	way_end(&w);
}

/* Nothing that this client sends is in doubt, but nobody would wake it. */
Test(failover, a_waiter_does_not_sleep_on_at_a_silent_host)
{
	struct way w = way_begin("8");
	bizlock *holder = client(NULL);
	struct call call;

	expect(OK, holder, acquire_as(holder, "k", "holder"));
	call_start(&call, w.b, "k", .wait_ms = 20 * PATIENCE_MS, .owner = "waiter");
	eventually(doorbell_waiters(&world) == 1);
	proxy_hold_replies(w.proxy, true);
	expect(OK, holder, bizlock_release(holder, KEY("k"), "holder", NULL));
	eventually(call.done);
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	expect(OK, w.b, bizlock_release(w.b, KEY("k"), "waiter", NULL));
	way_end(&w);
}

/* ---- a host that is there, and at whose doorbell a thread sleeps --------------------------- */

/* The connection that waits at a doorbell. 0: none. */
static long long sleeper(void)
{
	return db_number(world.admin,
	                 "SELECT COALESCE(MAX(id), 0) FROM information_schema.processlist "
	                 "WHERE db = '%s' AND state = 'User lock'",
	                 world.schema);
}

static void sleep_at_doorbell(struct call *call, struct way *w, bizlock *holder)
{
	expect(OK, holder, acquire_as(holder, "k", "holder"));
	call_start(call, w->b, "k", .wait_ms = 20 * PATIENCE_MS, .owner = "waiter");
	eventually(sleeper());
}

static bool sleeps_on(long long id, int ms)
{
	for (int64_t end = now_ms() + ms; pause_before(end);)
		if (sleeper() != id)
			return false;
	return true;
}

static atomic_bool verified_enough;

static void *verify_always(void *arg)
{
	bizlock *b = arg;

	while (!verified_enough)
		expect(OK, b, bizlock_verify(b, KEY("mine"), "task"));
	return NULL;
}

/* No connection is idle, by which the host could be asked. */
static bool is_let_be(void)
{
	struct way w = way_begin("2");
	bizlock *holder = client(NULL);
	pthread_t threads[WAITERS];
	struct call call;
	long long id;
	bool same;

	verified_enough = false;
	expect(OK, w.b, acquire_as(w.b, "mine", "task"));
	sleep_at_doorbell(&call, &w, holder);
	for (int i = 0; i < WAITERS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, verify_always, w.b), 0);
	id = sleeper();
	same = sleeps_on(id, 5000);
	verified_enough = true;
	for (int i = 0; i < WAITERS; i++)
		pthread_join(threads[i], NULL);
	expect(OK, holder, bizlock_release(holder, KEY("k"), "holder", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	way_end(&w);
	return same;
}

/* On a busy machine the second host may be quicker for once, and the sleeper be alone there. */
Test(failover, a_sleeper_is_let_be_while_the_others_keep_the_host_busy)
{
	cr_assert(is_let_be() || is_let_be() || is_let_be());
}

/* Does the next connection go to the first host again? */
static bool stays_after_a_cut(void)
{
	struct way w = way_begin("8");
	bizlock *holder = client(NULL);
	struct call call;
	long long id;
	unsigned before;
	bool stays;

	sleep_at_doorbell(&call, &w, holder);
	id = sleeper();
	stays = sleeps_on(id, 2500); /* longer than it has for an answer */
	before = proxy_packets(w.proxy);
	proxy_cut(w.proxy);
	eventually(sleeper() && sleeper() != id);
	stays &= proxy_packets(w.proxy) > before;
	expect(OK, holder, bizlock_release(holder, KEY("k"), "holder", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	expect(OK, w.b, bizlock_release(w.b, KEY("k"), "waiter", NULL));
	way_end(&w);
	return stays;
}

Test(failover, a_sleeper_that_is_cut_off_is_no_silence_of_its_host)
{
	cr_assert(stays_after_a_cut() || stays_after_a_cut() || stays_after_a_cut());
}

/* ---- a host that may not be written to yet ------------------------------------------------- */

static struct own_server server;
static struct world own;

static void end_own_world(void)
{
	if (own.admin)
		mysql_close(own.admin);
	own_server_end(&server);
}

TestSuite(own_failover, .fini = end_own_world, .timeout = 480);

struct opening {
	bizlock *b;
	int rc;
};

static void *open_client(void *arg)
{
	struct opening *o = arg;

	o->rc = bizlock_open(o->b);
	return NULL;
}

/* Another member may have been chosen meanwhile, by a group or by an operator. */
Test(own_failover, a_host_that_refused_is_asked_again_while_another_one_is_silent)
{
	struct mute m = mute_start();
	struct opening o;
	pthread_t thread;
	long long before;

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	own_server_start(&server, "");
	world_make(&own, &server.at);
	world_migrate(&own);
	db_run(own.admin, "SET GLOBAL read_only = 1");
	before = db_status(own.admin, "Connections");
	o.b = client_new(&own,
	                 OPTIONS("host", both(m.port, server.at.port), "connect_timeout_ms", LONG));
	cr_assert_eq(pthread_create(&thread, NULL, open_client, &o), 0);
	eventually(db_status(own.admin, "Connections") > before &&
	           db_status(own.admin, "Threads_connected") == 1);
	db_run(own.admin, "SET GLOBAL read_only = 0");
	pthread_join(thread, NULL);
	cr_assert_eq(o.rc, BIZLOCK_OK, "%s", bizlock_errmsg(o.b));
	works(o.b);
	mute_stop(&m);
	bizlock_close(o.b);
}
