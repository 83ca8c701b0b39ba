/* More keys are waited for than there are connections: one connection watches those that are left.
 */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_test.h"

TestSuite(watching, .init = world_begin, .fini = world_end, .timeout = 240);

/* Of 4 connections, one may sleep at a doorbell, another one at that of a hot key, and one may
 * watch. */
#define FEW OPTIONS("max_connections", "4")
#define N 12

/* The calls of one client that wait for N keys, which another one holds. */
struct waits {
	bizlock *b, *holder;
	char ids[N][8], owners[N][16];
	struct call calls[N];
};

static void hold_by(struct waits *w, bizlock *holder)
{
	w->holder = holder;
	for (int i = 0; i < N; i++) {
		snprintf(w->ids[i], sizeof(w->ids[i]), "k-%d", i);
		expect(OK, w->holder, acquire_as(w->holder, w->ids[i], "holder"));
	}
}

static void give_back(struct waits *w, int i)
{
	expect(OK, w->holder, bizlock_release(w->holder, KEY(w->ids[i]), "holder", NULL));
}

static void begin_for(struct waits *w, bizlock *b, int64_t wait_ms, const char *task)
{
	w->b = b;
	for (int i = 0; i < N; i++) {
		snprintf(w->owners[i], sizeof(w->owners[i]), "%s-%d", task, i);
		call_start(&w->calls[i], b, w->ids[i], .wait_ms = wait_ms, .owner = w->owners[i]);
	}
}

static void begin_beside(struct waits *w, bizlock *holder, bizlock *b)
{
	hold_by(w, holder);
	begin_for(w, b, -1, "task");
	eventually(watchers(&world) == 1);
	eventually(doorbell_waiters(&world) == 1);
}

static void begin(struct waits *w)
{
	begin_beside(w, client(NULL), client(FEW));
}

static void all_are_granted(struct waits *w)
{
	for (int i = 0; i < N; i++)
		cr_assert_eq(call_join(&w->calls[i]), BIZLOCK_OK, "%s", w->calls[i].errmsg);
}

/* A watcher looks at its keys once a second unless it is woken: that would take 12 s here, one key
 * after the other. */
Test(watching, a_release_wakes_the_watcher)
{
	struct waits w;
	int64_t took = 0, rounds = 0;

	begin(&w);
	for (int i = 0; i < N; i++) {
		rounds += round_ms(w.holder);
		took -= now_ms();
		give_back(&w, i);
		cr_assert_eq(call_join(&w.calls[i]), BIZLOCK_OK, "%s", w.calls[i].errmsg);
		took += now_ms();
	}
	cr_assert_lt(took, N * 1000 / 3 + 4 * rounds);
}

/* The same for the keys of a set, which are given back by one statement. */
Test(watching, a_release_of_several_wakes_the_watcher)
{
	struct waits w;
	bizlock_key keys[N];
	int64_t start, took, rounds;

	begin(&w);
	for (int i = 0; i < N; i++)
		keys[i] = KEY(w.ids[i]);
	rounds = round_ms(w.holder);
	start = now_ms();
	expect(OK, w.holder, bizlock_release_all(w.holder, keys, N, "holder"));
	all_are_granted(&w);
	took = now_ms() - start;
	rounds += round_ms(w.holder);
	cr_assert_lt(took, N * 1000 / 3 + N * rounds);
}

/* The packets of the release. */
static unsigned release_beside(struct waits *w, struct proxy *proxy, bizlock *holder, bizlock *b)
{
	bizlock_key keys[N];
	unsigned before;

	begin_beside(w, holder, b);
	for (int i = 0; i < N; i++)
		keys[i] = KEY(w->ids[i]);
	eventually(watchers(&world) == 1);
	before = proxy_packets(proxy);
	expect(OK, holder, bizlock_release_all(holder, keys, N, "holder"));
	before = proxy_packets(proxy) - before;
	all_are_granted(w);
	for (int i = 0; i < N; i++)
		expect(OK, b, bizlock_release(b, keys[i], w->owners[i], NULL));
	return before;
}

/* And it is not by its next look, which may come soon: after the packet of the release another one
 * asks who watches, and one ends the sleep. Now and then the watcher is awake at that time. */
Test(watching, a_release_of_several_ends_the_sleep)
{
	struct proxy *proxy = proxy_start(&world.at, "127.0.0.1");
	bizlock *holder = client_through(proxy, NULL), *b = client(FEW);
	unsigned packets = 0;
	struct waits w;

	for (int i = 0; i < 10 && packets < 3; i++)
		packets = release_beside(&w, proxy, holder, b);
	cr_assert_geq(packets, 3);
	proxy_stop(proxy);
}

/* A connection to sleep at a doorbell goes to the wait that is the oldest then. */
Test(watching, the_last_one_waits_at_its_doorbell)
{
	struct waits w;

	begin(&w);
	for (int i = 0; i < N - 1; i++) {
		give_back(&w, i);
		cr_assert_eq(call_join(&w.calls[i]), BIZLOCK_OK, "%s", w.calls[i].errmsg);
		expect(OK, w.b, bizlock_release(w.b, KEY(w.ids[i]), w.owners[i], NULL));
	}
	eventually(doorbell_waiters(&world) == 1 && watchers(&world) == 0);
	give_back(&w, N - 1);
	cr_assert_eq(call_join(&w.calls[N - 1]), BIZLOCK_OK, "%s", w.calls[N - 1].errmsg);
}

/* Others have taken its keys in the meantime. */
Test(watching, one_that_came_too_late_waits_at_its_doorbell)
{
	struct waits w;
	long long id;

	begin(&w);
	db_run(world.admin, "UPDATE biz_lock SET fence = fence + 1000000");
	eventually((id = watcher(&world)) != 0); /* now and then it is awake */
	db_run(world.admin, "KILL QUERY %lld", id);
	eventually(doorbell_waiters(&world) == 2);
	db_run(world.admin, "UPDATE biz_lock SET fence = fence - 1000000");
	for (int i = 0; i < N; i++)
		give_back(&w, i);
	all_are_granted(&w);
}

Test(watching, ends_when_nobody_waits)
{
	struct waits w;

	begin(&w);
	for (int i = 0; i < N; i++)
		give_back(&w, i);
	all_are_granted(&w);
	eventually(watchers(&world) == 0);
}

Test(watching, a_deadline_is_a_deadline)
{
	struct waits w;

	hold_by(&w, client(NULL));
	begin_for(&w, client(FEW), 3000, "task");
	eventually(watchers(&world) == 1);
	for (int i = 0; i < N; i++) {
		cr_assert_eq(call_join(&w.calls[i]), BIZLOCK_TIMEOUT);
		cr_assert(strstr(w.calls[i].errmsg, "held by"), "%s", w.calls[i].errmsg);
	}
}

Test(watching, an_interrupt_ends_all_waits)
{
	struct waits w;

	begin(&w);
	bizlock_interrupt(w.b);
	for (int i = 0; i < N; i++)
		cr_assert_eq(call_join(&w.calls[i]), BIZLOCK_CANCELLED, "%s", w.calls[i].errmsg);
}

/* The end of a lease wakes nobody. */
Test(watching, the_end_of_a_lease_is_noticed)
{
	struct waits w;

	hold_by(&w, client(NULL));
	db_run(world.admin, "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6) + INTERVAL 5 SECOND");
	begin_for(&w, client(FEW), -1, "task");
	eventually(watchers(&world) == 1);
	all_are_granted(&w);
}

Test(watching, a_watcher_that_is_lost_is_replaced)
{
	struct waits w;

	begin(&w);
	for (int i = 0; i < 3; i++) {
		long long id;

		eventually((id = watcher(&world)) != 0); /* now and then it is awake */
		db_run(world.admin, "KILL %lld", id);
		eventually(watcher(&world) != id && watchers(&world) == 1);
	}
	for (int i = 0; i < N; i++)
		give_back(&w, i);
	all_are_granted(&w);
}

/* The names of a key are those of two watchers; the third looks now and then. */
Test(watching, more_clients_than_names_watch_a_key)
{
	static struct waits w, more[2];

	begin(&w);
	for (int i = 0; i < 2; i++) {
		memcpy(more[i].ids, w.ids, sizeof(w.ids));
		begin_for(&more[i], client(FEW), -1, i ? "third" : "second");
	}
	eventually(watchers(&world) == 3);
	for (int i = 0; i < N; i++)
		give_back(&w, i);
	for (int served = 0; served < 3 * N;) {
		struct waits *all[3] = {&w, &more[0], &more[1]};

		served = 0;
		for (int j = 0; j < 3; j++)
			for (int i = 0; i < N; i++) {
				struct call *c = &all[j]->calls[i];

				if (!atomic_load(&c->done))
					continue;
				served++;
				bizlock_release(all[j]->b, KEY(all[j]->ids[i]), all[j]->owners[i],
				                NULL);
			}
	}
	all_are_granted(&w);
	all_are_granted(&more[0]);
	all_are_granted(&more[1]);
}

static void *closes(void *b)
{
	bizlock_close(b);
	return NULL;
}

Test(watching, closing_ends_all_waits)
{
	static struct waits w;
	bizlock *b;
	pthread_t thread;

	hold_by(&w, client(NULL));
	b = client_open(&world, FEW);
	begin_for(&w, b, -1, "task");
	eventually(watchers(&world) == 1);
	cr_assert_eq(pthread_create(&thread, NULL, closes, b), 0);
	for (int i = 0; i < N; i++)
		cr_assert_eq(call_join(&w.calls[i]), BIZLOCK_CANCELLED, "%s", w.calls[i].errmsg);
	pthread_join(thread, NULL);
	eventually(watchers(&world) == 0);
}

/* ---- whom a KILL QUERY means ------------------------------------------------------------- */

static struct own_server server;

static void end_own_world(void)
{
	if (world.admin)
		world_end();
	own_server_end(&server);
}

TestSuite(own_watching, .fini = end_own_world, .timeout = 480);

static long long kills(const char *which)
{
	return db_number(world.admin,
	                 "SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE "
	                 "'KILL QUERY%%' AND argument %s '%%IS_USED_LOCK(%%'",
	                 which);
}

/* A number is another connection's at another host, to which a client goes over at any time: each
 * says whom it means by a named lock. Calls for more keys end the watcher's sleep. */
Test(own_watching, what_ends_a_sleep_names_whom_it_means)
{
	struct waits w;
	struct call more;

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	own_server_start(&server, "--general-log=1 --log-output=TABLE");
	world_make(&world, &server.at);
	world_migrate(&world);
	begin(&w);
	expect(OK, w.holder, acquire_as(w.holder, "more", "holder"));
	call_start(&more, w.b, "more", .wait_ms = -1, .owner = "one-more");
	eventually(kills("LIKE") > 0 || kills("NOT LIKE") > 0);
	cr_assert_eq(kills("NOT LIKE"), 0);
	expect(OK, w.holder, bizlock_release(w.holder, KEY("more"), "holder", NULL));
	cr_assert_eq(call_join(&more), BIZLOCK_OK, "%s", more.errmsg);
	for (int i = 0; i < N; i++)
		give_back(&w, i);
	all_are_granted(&w);
}

/* ---- the slow log ------------------------------------------------------------------------ */

/* A waiter sleeps in a statement. */
Test(own_watching, waits_do_not_fill_the_slow_log)
{
	bizlock *holder, *b;
	struct waits w;

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	own_server_start(&server, "--slow-query-log=1 --long-query-time=0 --log-output=TABLE");
	world_make(&world, &server.at);
	world_migrate(&world);
	db_run(world.admin, "SET SESSION long_query_time = 1000");
	holder = client(NULL);
	b = client(FEW);
	begin_beside(&w, holder, b);
	for (int i = 0; i < N; i++)
		give_back(&w, i);
	all_are_granted(&w);
	cr_assert_eq(db_number(world.admin,
	                       "SELECT COUNT(*) FROM mysql.slow_log WHERE "
	                       "sql_text LIKE '%%biz_lock%%' AND sql_text NOT LIKE '%%CREATE%%' OR "
	                       "sql_text LIKE '%%SLEEP(%%' OR sql_text LIKE '%%GET_LOCK(%%'"),
	             0);
}
