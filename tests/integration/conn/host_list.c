/* Several servers in the option host. Servers that are down, do not answer or refuse writes are
 * skipped. When the server in use is lost, the next one is used. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bizlock_ops.h>

#include "cr_test.h"
#include "mute.h"

TestSuite(host_list, .init = world_begin, .fini = world_end, .timeout = 240);

#define DEAD "127.0.0.1:1" /* no server listens there */

/* The server under test, by its port. Tests put other hosts before and after it. */
static const char *good(void)
{
	static char host[32];

	skip_unless(world.at.port && strcmp(world.at.host, "127.0.0.1") == 0,
	            "the server has no port on this machine");
	snprintf(host, sizeof(host), "127.0.0.1:%u", world.at.port);
	return host;
}

static const char *list(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static const char *list(const char *fmt, ...)
{
	static char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return text;
}

static void works_with(const char *hosts)
{
	works(client(OPTIONS("host", hosts, "connect_timeout_ms", "1000")));
}

Test(host_list, the_first_that_answers_is_used)
{
	works_with(list("%s,%s", DEAD, good()));
}

Test(host_list, what_comes_after_a_good_one_does_not_matter)
{
	works_with(list("%s,%s", good(), DEAD));
}

Test(host_list, addresses_of_ipv6_stand_in_brackets)
{
	works_with(list("[::1]:1,%s", good()));
}

Test(host_list, a_host_without_a_port_has_that_of_the_option)
{
	char port[16];

	good();
	snprintf(port, sizeof(port), "%u", world.at.port);
	works(client(OPTIONS("host", DEAD ",127.0.0.1", "port", port)));
}

Test(host_list, if_all_are_down_it_says_so)
{
	expect_open(CONN, &world, OPTIONS("host", DEAD ",127.0.0.1:2"), "127.0.0.1");
}

Test(host_list, one_that_does_not_answer_is_passed_by)
{
	struct mute m = mute_start();

	works_with(list("127.0.0.1:%u,%s", m.port, good()));
	mute_stop(&m);
}

/* Each connection ends after a while, without a word. */
static void *refuse_late(void *arg)
{
	struct mute *m = arg;
	int fd;

	for (; (fd = accept(m->fd, NULL, NULL)) >= 0 || errno == EAGAIN; pause_ms(1))
		if (fd >= 0) {
			pause_ms(400);
			close(fd);
		}
	return NULL;
}

/* Hosts that are asked anew while others have not answered would be asked for ever. */
Test(host_list, if_all_refuse_and_are_slow_they_are_believed)
{
	struct mute m = mute_start();
	char text[512];
	pthread_t thread;

	if (pthread_create(&thread, NULL, refuse_late, &m) != 0)
		die("no thread");
	cr_assert_eq(try_open(&world,
	                      OPTIONS("host", list(DEAD ",127.0.0.1:%u", m.port),
	                              "connect_timeout_ms", "20000"),
	                      text),
	             BIZLOCK_CONN, "%s", text);
	cr_assert(!strstr(text, "no answer in time"), "%s", text);
	shutdown(m.fd, SHUT_RDWR);
	pthread_join(thread, NULL);
	mute_stop(&m);
}

static int count_migration(void *arg, const bizlock_migration *m)
{
	(void)m;
	++*(int *)arg;
	return 0;
}

/* A lock would be given 2 s. The tables may be large, or somebody may be at work on them. */
Test(host_list, what_is_done_to_the_tables_may_take_longer_than_an_answer_for_a_lock)
{
	struct fault fault = {.what = FAULT_DELAY, .side = FAULT_REPLIES, .delay_ms = 4000};
	struct proxy *p;
	struct fault_trace trace;
	const char *hosts;
	bizlock *b;
	int n = 0;

	good();
	p = proxy_start(&world.at, "127.0.0.1");
	hosts = list("127.0.0.1:%u,%s", proxy_address(p).port, DEAD);
	b = client_new(&world, OPTIONS("host", hosts, "io_timeout_ms", "30000", "lease_ms", "12000",
	                               "ssl_mode", "disabled"));
	expect(OK, b, bizlock_each_migration(b, count_migration, &n));
	trace = proxy_trace(p);
	for (unsigned i = 0, replies = 0; i < trace.count; i++)
		if (trace.packets[i].side == FAULT_REPLIES)
			fault.packet = replies++;
	proxy_arm(p, &fault);
	expect(OK, b, bizlock_each_migration(b, count_migration, &n));
	cr_assert_eq(proxy_fired(p), 1);
	bizlock_close(b);
	proxy_stop(p);
}

/* ---- two servers -------------------------------------------------------------------- */

static struct own_server servers[2];
static struct world worlds[2];

static void end_own_worlds(void)
{
	for (int i = 0; i < 2; i++) {
		if (worlds[i].admin)
			mysql_close(worlds[i].admin);
		own_server_end(&servers[i]);
	}
}

TestSuite(own_host_list, .fini = end_own_worlds, .timeout = 480);

/* By now another test's server may have the port of a server that has ended. That server must not
 * let the clients of this test in. */
static const char *password(void)
{
	static char text[32];

	snprintf(text, sizeof(text), "secret-%d", (int)getpid());
	return text;
}

/* Schema and user have the same names on both servers. Their fences never have the same numbers, so
 * that a statement meant for one server changes nothing on the other. */
static void begin_on(int i)
{
	struct world *w = &worlds[i];

	own_server_start(&servers[i], "");
	world_make(w, &servers[i].at);
	db_run(w->admin, "DROP DATABASE `%s`; CREATE DATABASE shop; USE shop", w->schema);
	snprintf(w->schema, sizeof(w->schema), "shop");
	world_migrate(w);
	db_run(w->admin,
	       "CREATE USER app@'127.0.0.1' IDENTIFIED BY '%s';"
	       " GRANT SELECT, INSERT, UPDATE, DELETE ON shop.* TO app@'127.0.0.1';"
	       " ALTER TABLE shop.biz_lock AUTO_INCREMENT = %d",
	       password(), 1 + 1000 * i);
}

static void refuse_writes(int i, int refuse)
{
	db_run(worlds[i].admin, "SET GLOBAL read_only = %d", refuse);
}

/* The second one takes no writes before the first is lost: else a first one that is slow to take a
 * connection would be passed by. */
static void begin_two(void)
{
	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	begin_on(0);
	begin_on(1);
	refuse_writes(1, 1);
}

static void lose_first(const char *how)
{
	own_server_do(&servers[0], how);
	refuse_writes(1, 0);
}

/* A client of the first server, or of the second where the first cannot be used. Its user may not
 * write to a server that is read-only. */
static bizlock *client_of_both(void)
{
	const char *hosts =
	        list("127.0.0.1:%u,127.0.0.1:%u", servers[0].at.port, servers[1].at.port);
	struct world w = worlds[0];

	snprintf(w.at.user, sizeof(w.at.user), "app");
	snprintf(w.at.password, sizeof(w.at.password), "%s", password());
	return client_open(
	        &w, OPTIONS("host", hosts, "io_timeout_ms", "2000", "connect_timeout_ms", "5000"));
}

static bool is_on(int i, const char *id)
{
	return row_of(&worlds[i], KEY(id)).there;
}

/* The lock is held, and its row is on this server. */
static void expect_on(int i, bizlock *b, const char *id)
{
	expect(OK, b, bizlock_verify(b, KEY(id), NULL));
	cr_assert(is_on(i, id), "%s is held for another %lld ms, but not on server %d", id,
	          (long long)bizlock_left_ms(b, KEY(id), NULL), i);
}

static void holds_on(int i, bizlock *b, const char *id)
{
	expect(OK, b, acquire(b, id, .wait_ms = PATIENCE_MS));
	expect_on(i, b, id);
	expect(OK, b, bizlock_release(b, KEY(id), NULL, NULL));
	cr_assert(!is_on(i, id));
}

static bool is_used(int i, bizlock *b)
{
	bool there;

	expect(OK, b, acquire(b, "k", .wait_ms = PATIENCE_MS));
	there = is_on(i, "k");
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	return there;
}

Test(own_host_list, the_first_that_takes_writes_is_used)
{
	bizlock *b;

	begin_two();
	b = client_of_both();
	holds_on(0, b, "k");
	bizlock_close(b);
	refuse_writes(0, 1);
	refuse_writes(1, 0);
	b = client_of_both();
	holds_on(1, b, "k");
	bizlock_close(b);
	refuse_writes(0, 0);
	refuse_writes(1, 1);
	b = client_of_both();
	holds_on(0, b, "k");
	bizlock_close(b);
}

/* The connections to it stay open, but they cannot be used for locks any more. */
Test(own_host_list, one_that_stops_to_take_writes_is_left)
{
	bizlock *b;

	begin_two();
	b = client_of_both();
	holds_on(0, b, "k");
	refuse_writes(0, 1);
	refuse_writes(1, 0);
	holds_on(1, b, "k");
	bizlock_close(b);
}

static void is_left_when(const char *lost)
{
	bizlock *b;

	begin_two();
	b = client_of_both();
	holds_on(0, b, "k");
	lose_first(lost);
	expect(OK, b, acquire(b, "k", .wait_ms = 15000));
	expect_on(1, b, "k");
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	bizlock_close(b);
}

Test(own_host_list, one_that_dies_is_left)
{
	is_left_when("kill");
}

Test(own_host_list, one_that_is_shut_down_is_left)
{
	is_left_when("stop");
}

Test(own_host_list, one_that_does_not_answer_any_more_is_left)
{
	is_left_when("freeze");
}

/* Clients that were sent away meet at the first host again. */
Test(own_host_list, one_that_came_back_is_used_again)
{
	bizlock *b;

	begin_two();
	b = client_of_both();
	lose_first("kill");
	holds_on(1, b, "k");
	own_server_do(&servers[0], "restart");
	mysql_close(worlds[0].admin);
	worlds[0].admin = db_open(&servers[0].at, worlds[0].schema);
	/* A replica would have brought the counter along; without it, its fences are refused. */
	db_run(worlds[0].admin, "ALTER TABLE biz_lock AUTO_INCREMENT = 1000000000");
	eventually(is_used(0, b));
	bizlock_close(b);
}

Test(own_host_list, a_waiter_goes_along)
{
	bizlock *b, *holder;
	struct call call;

	begin_two();
	holder = client_open(&worlds[0], OPTIONS("release_on_close", "off"));
	b = client_of_both();
	expect(OK, holder, acquire(holder, "k"));
	call_start(&call, b, "k", .wait_ms = PATIENCE_MS, .owner = "task-1");
	eventually(doorbell_waiters(&worlds[0]) == 1);
	lose_first("kill");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert(is_on(1, "k"));
	expect(OK, b, bizlock_release(b, KEY("k"), "task-1", NULL));
	bizlock_close(b);
	bizlock_close(holder);
}

/* A lock that was held on the old server is not held on the new one: no client may believe that it
 * is. */
Test(own_host_list, what_was_held_on_a_dead_server_is_lost)
{
	static struct losses losses;
	bizlock *b;

	begin_two();
	b = client_of_both();
	losses_watch(&losses, b);
	expect(OK, b, acquire_renewed(b, "k", .lease_ms = 3000));
	lose_first("kill");
	eventually(losses.count == 1);
	cr_assert_leq(bizlock_left_ms(b, KEY("k"), NULL), 0);
	expect(LOST, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(OK, b, acquire(b, "k", .wait_ms = PATIENCE_MS));
	expect_on(1, b, "k");
	bizlock_close(b);
}
