/* What bizlock_waiters() shows of waiters. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_test.h"

#define PASSWORD "c0rrect-horse"

static void end_users(void)
{
	db_run(world.admin, "DROP USER IF EXISTS '%s_a'@'%%', '%s_a'@'localhost'", world.schema,
	       world.schema);
	db_run(world.admin, "DROP USER IF EXISTS '%s_b'@'%%', '%s_b'@'localhost'", world.schema,
	       world.schema);
	world_end();
}

TestSuite(waiters, .init = world_begin, .fini = end_users, .timeout = 240);

struct seen {
	unsigned count, stop_after;
	bool sorted;
	bizlock_waiter last;
	char id[BIZLOCK_ID_MAX + 1], type[BIZLOCK_TYPE_MAX + 1], user[128], host[128];
	char ids[256]; /* "a b a " */
	bizlock *use;  /* called from inside, unless NULL */
};

static int see(void *arg, const bizlock_waiter *w)
{
	struct seen *s = arg;
	size_t len = strlen(s->ids);

	s->sorted = s->count == 0 || (s->sorted && w->waited_ms <= s->last.waited_ms);
	s->last = *w;
	snprintf(s->id, sizeof(s->id), "%s", w->biz_id);
	snprintf(s->type, sizeof(s->type), "%s", w->biz_type);
	snprintf(s->user, sizeof(s->user), "%s", w->user);
	snprintf(s->host, sizeof(s->host), "%s", w->host);
	snprintf(s->ids + len, sizeof(s->ids) - len, "%s ", w->biz_id);
	if (s->use)
		works(s->use);
	return ++s->count == s->stop_after;
}

static struct seen look(bizlock *b, const bizlock_key *keys, size_t n)
{
	struct seen s = {.count = 0};

	expect(OK, b, bizlock_waiters(b, keys, n, see, &s));
	return s;
}

static unsigned waiting_for(bizlock *b, const char *id)
{
	bizlock_key key = KEY(id);

	return look(b, &key, 1).count;
}

/* `holder` holds `id`, and each of n clients waits for it. */
static void hold_and_wait(bizlock *holder, const char *id, bizlock **b, struct call *calls,
                          unsigned n)
{
	static const char *const owners[] = {"w-0", "w-1", "w-2"};

	expect(OK, holder, acquire_as(holder, id, "holder"));
	for (unsigned i = 0; i < n; i++) {
		call_start(&calls[i], b[i], id, .wait_ms = -1, .owner = owners[i]);
		eventually(waiting_for(holder, id) == i + 1);
	}
}

/* One client after the other gets the lock and gives it back. */
static void serve(bizlock *holder, const char *id, bizlock **b, struct call *calls, unsigned n)
{
	expect(OK, holder, bizlock_release(holder, KEY(id), "holder", NULL));
	for (unsigned i = 0; i < n; i++) {
		cr_assert_eq(call_join(&calls[i]), BIZLOCK_OK, "%s", calls[i].errmsg);
		expect(OK, b[i], bizlock_release(b[i], KEY(id), calls[i].opts.owner, NULL));
	}
}

Test(waiters, a_waiter_is_seen_while_it_waits)
{
	bizlock *holder = client(NULL), *b = client(NULL);
	bizlock_key key = KEY("k");
	struct call call;
	struct seen s;

	cr_assert_eq(waiting_for(holder, "k"), 0);
	hold_and_wait(holder, "k", &b, &call, 1);
	s = look(holder, &key, 1);
	cr_assert_eq(s.count, 1);
	cr_assert_geq(s.last.size, sizeof(bizlock_waiter));
	cr_assert_str_eq(s.type, "test");
	cr_assert_str_eq(s.id, "k");
	cr_assert(s.last.waited_ms >= 0 && s.last.waited_ms < PATIENCE_MS);
	cr_assert_eq(db_number(world.admin,
	                       "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = %llu"
	                       " AND USER = %s AND HOST = %s AND STATE = 'User lock'",
	                       (unsigned long long)s.last.connection, db_literal(s.user),
	                       db_literal(s.host)),
	             1);
	serve(holder, "k", &b, &call, 1);
	cr_assert_eq(waiting_for(holder, "k"), 0);
}

Test(waiters, the_time_of_the_wait_grows)
{
	bizlock *holder = client(NULL), *b = client(NULL);
	bizlock_key key = KEY("k");
	struct call call;
	int64_t start;

	hold_and_wait(holder, "k", &b, &call, 1);
	start = now_ms();
	eventually(look(holder, &key, 1).last.waited_ms >= 1500);
	cr_assert_geq(now_ms() - start, 100);
	serve(holder, "k", &b, &call, 1);
}

Test(waiters, they_come_by_key_and_the_longest_wait_first)
{
	bizlock *holder = client(NULL), *b[] = {client(NULL), client(NULL), client(NULL)};
	bizlock *other = client(NULL);
	bizlock_key keys[] = {KEY("a"), KEY("none"), KEY("b"), {"other", "a"}};
	struct call calls[3], one;
	struct seen s;

	hold_and_wait(holder, "a", b, calls, 3);
	hold_and_wait(holder, "b", &other, &one, 1);
	s = look(holder, keys, 4);
	cr_assert_eq(s.count, 4);
	cr_assert(s.sorted);
	cr_assert_str_eq(s.ids, "a a a b ");
	cr_assert_eq(look(holder, keys, 1).count, 3);
	cr_assert_eq(look(holder, &keys[1], 1).count, 0);
	cr_assert_str_eq(look(holder, &keys[1], 3).ids, "b ");
	cr_assert_eq(look(holder, keys, 0).count, 0);
	serve(holder, "a", b, calls, 3);
	serve(holder, "b", &other, &one, 1);
}

/* One query reads the process list, and one more for each 512 keys asks who watches; the bound is
 * twice that. A text that listed all keys would be longer than a connection may send. */
Test(waiters, ten_thousand_keys_are_few_queries)
{
	enum { KEYS = 10000 };
	bizlock *holder = client(NULL), *b = client(NULL);
	static bizlock_key keys[KEYS];
	static char ids[KEYS][16];
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *looker = client_through(p, NULL);
	struct call call;
	unsigned before;

	for (int i = 0; i < KEYS; i++) {
		snprintf(ids[i], sizeof(ids[i]), "id-%d", i);
		keys[i] = KEY(ids[i]);
	}
	hold_and_wait(holder, "id-7777", &b, &call, 1);
	cr_assert_eq(look(looker, keys, 1).count, 0);
	before = proxy_packets(p);
	cr_assert_str_eq(look(looker, keys, KEYS).ids, "id-7777 ");
	cr_assert_leq(proxy_packets(p) - before, 2 + (KEYS + 255) / 256);
	serve(holder, "id-7777", &b, &call, 1);
	proxy_stop(p);
}

Test(waiters, those_of_another_prefix_or_database_are_not_meant)
{
	bizlock *holder = client(NULL), *b = client(NULL), *prefixed;
	struct world other;
	struct call call;
	bizlock *there = client_new(&world, OPTIONS("table_prefix", "p_"));

	expect(OK, there, bizlock_migrate(there));
	bizlock_close(there);
	prefixed = client(OPTIONS("table_prefix", "p_"));
	world_make(&other, &world.at);
	world_migrate(&other);
	there = client_open(&other, NULL);
	hold_and_wait(holder, "k", &b, &call, 1);
	cr_assert_eq(waiting_for(prefixed, "k"), 0);
	cr_assert_eq(waiting_for(there, "k"), 0);
	bizlock_close(there);
	world_drop(&other);
	serve(holder, "k", &b, &call, 1);
}

/* ---- who watches ----------------------------------------------------------------- */

struct kinds {
	unsigned at_bells, watched[16];
	bool sorted;
};

/* The keys are "0" and so on. */
static int count_kind(void *arg, const bizlock_waiter *w)
{
	struct kinds *k = arg;

	if (w->waited_ms < 0)
		k->watched[strtoul(w->biz_id, NULL, 10)]++;
	else
		k->at_bells++;
	k->sorted &= w->waited_ms < 0 || memcmp(k->watched, (unsigned[16]){0}, 64) == 0;
	return 0;
}

/* `clients` wait for each key, `bells` of them at doorbells, the others by watching. A connection
 * whose wait was interrupted may still be at its doorbell. */
static bool waits_are(bizlock *b, const bizlock_key *keys, unsigned n, unsigned bells,
                      unsigned clients)
{
	struct kinds k = {.sorted = true};
	unsigned watched = 0, most = 0;

	expect(OK, b, bizlock_waiters(b, keys, n, count_kind, &k));
	cr_assert(k.sorted);
	for (unsigned i = 0; i < n; i++) {
		most = k.watched[i] > most ? k.watched[i] : most;
		watched += k.watched[i];
	}
	return k.at_bells >= bells && watched == n * clients - bells && most <= clients;
}

/* Of its 4 connections one may sleep at a doorbell, and one watches what is left. */
Test(waiters, watched_keys_have_waiters)
{
	enum { KEYS = 12 };
	static char ids[KEYS][4], owners[2][KEYS][8];
	static struct call calls[2][KEYS];
	bizlock *holder = client(NULL), *b[2];
	bizlock_key keys[KEYS];

	for (unsigned i = 0; i < KEYS; i++) {
		snprintf(ids[i], sizeof(ids[i]), "%u", i);
		keys[i] = KEY(ids[i]);
		expect(OK, holder, acquire_as(holder, ids[i], "holder"));
	}
	cr_assert(waits_are(holder, keys, KEYS, 0, 0));
	for (unsigned i = 0; i < 2; i++) {
		b[i] = client(OPTIONS("max_connections", "4"));
		for (unsigned j = 0; j < KEYS; j++) {
			snprintf(owners[i][j], sizeof(owners[i][j]), "w%u-%u", i, j);
			call_start(&calls[i][j], b[i], ids[j], .wait_ms = -1,
			           .owner = owners[i][j]);
		}
		eventually(waits_are(holder, keys, KEYS, i + 1, i + 1));
	}
	/* Who wakes, and is not asleep again yet, is not seen for a moment. */
	for (unsigned i = 0; i < 10; i++) {
		pause_ms(100);
		eventually(waits_are(holder, keys, KEYS, 2, 2));
	}
	for (unsigned i = 0; i < 2; i++)
		bizlock_interrupt(b[i]);
	for (unsigned i = 0; i < 2 * KEYS; i++)
		cr_assert_eq(call_join(&calls[i / KEYS][i % KEYS]), BIZLOCK_CANCELLED);
	eventually(waits_are(holder, keys, KEYS, 0, 0));
}

/* ---- who may see whom ---------------------------------------------------------- */

/* A client of a user named like the schema and `end`, with bizlock's privileges alone. */
static bizlock *client_of(const char *end)
{
	static const char *const hosts[] = {"%", "localhost"};
	char name[64];

	snprintf(name, sizeof(name), "%s_%s", world.schema, end);
	for (int i = 0; i < 2; i++)
		db_run(world.admin,
		       "CREATE USER '%s'@'%s' IDENTIFIED BY '" PASSWORD "';"
		       "GRANT SELECT, INSERT, UPDATE, DELETE ON `%s`.* TO '%s'@'%s'",
		       name, hosts[i], world.schema, name, hosts[i]);
	return client(OPTIONS("user", name, "password", PASSWORD));
}

Test(waiters, without_the_privilege_process_one_sees_its_own_user)
{
	bizlock *root = client(NULL), *a = client_of("a"), *b = client_of("b"), *now;
	struct call call;
	bizlock_key key = KEY("k");
	char name[64];
	struct seen s;

	hold_and_wait(root, "k", &a, &call, 1);
	s = look(a, &key, 1);
	cr_assert_eq(s.count, 1);
	cr_assert(strstr(s.user, "_a"), "%s", s.user);
	cr_assert_eq(waiting_for(b, "k"), 0);
	snprintf(name, sizeof(name), "%s_b", world.schema);
	db_run(world.admin, "GRANT PROCESS ON *.* TO '%s'@'%%', '%s'@'localhost'", name, name);
	/* A connection has the privileges of its login. */
	now = client(OPTIONS("user", name, "password", PASSWORD));
	cr_assert_eq(waiting_for(now, "k"), 1);
	serve(root, "k", &a, &call, 1);
}

/* ---- who is not seen --------------------------------------------------------------- */

Test(waiters, those_who_poll_are_not_seen)
{
	bizlock *holder = client(NULL), *b = client(OPTIONS("queue", "off"));
	struct call call;

	deadlocks_may_happen();
	expect(OK, holder, acquire_as(holder, "k", "holder"));
	call_start(&call, b, "k", .wait_ms = -1, .owner = "w-0");
	call_blocks(&call);
	cr_assert_eq(waiting_for(holder, "k"), 0);
	serve(holder, "k", &b, &call, 1);
}

Test(waiters, of_one_client_the_first_in_line_is_seen)
{
	bizlock *holder = client(NULL), *b = client(NULL);
	bizlock *both[] = {b, b};
	struct call calls[2];

	hold_and_wait(holder, "k", &b, calls, 1);
	call_start(&calls[1], b, "k", .wait_ms = -1, .owner = "w-1");
	call_blocks(&calls[1]);
	cr_assert_eq(waiting_for(holder, "k"), 1);
	serve(holder, "k", both, calls, 2);
}

/* MySQL's information_schema.PROCESSLIST refuses then, for as long as it runs. */
static void *sleep_long(void *db)
{
	db_try(db, "SELECT SLEEP(600) /* \xf0\x9f\x94\x92 */");
	return NULL;
}

Test(waiters, others_may_run_what_they_like)
{
	bizlock *holder = client(NULL), *b = client(NULL);
	MYSQL *other = db_open(&world.at, world.schema);
	const char *list = server_is_mysql(other) ? "performance_schema" : "information_schema";
	unsigned long id = mysql_thread_id(other);
	struct call call;
	pthread_t thread;

	hold_and_wait(holder, "k", &b, &call, 1);
	cr_assert_eq(pthread_create(&thread, NULL, sleep_long, other), 0);
	eventually(db_number(world.admin,
	                     "SELECT COUNT(*) FROM %s.processlist"
	                     " WHERE ID = %lu AND STATE = 'User sleep'",
	                     list, id));
	steadily(waiting_for(holder, "k") == 1, 500);
	db_run(world.admin, "KILL %lu", id);
	pthread_join(thread, NULL);
	mysql_close(other);
	serve(holder, "k", &b, &call, 1);
}

/* ---- calls ------------------------------------------------------------------------- */

Test(waiters, the_callback_may_call_the_library_and_end_the_walk)
{
	bizlock *holder = client(NULL), *b[] = {client(NULL), client(NULL)};
	struct seen s = {.stop_after = 1};
	bizlock_key key = KEY("wanted");
	struct call calls[2];

	s.use = client(OPTIONS("max_connections", "1"));
	hold_and_wait(holder, "wanted", b, calls, 2);
	expect(OK, s.use, bizlock_waiters(s.use, &key, 1, see, &s));
	cr_assert_eq(s.count, 1);
	serve(holder, "wanted", b, calls, 2);
}

Test(waiters, an_idle_connection_that_was_closed_is_replaced)
{
	bizlock *b = client(NULL);

	cr_assert_eq(waiting_for(b, "k"), 0);
	kill_connections();
	cr_assert_eq(waiting_for(b, "k"), 0);
}

Test(waiters, bad_calls)
{
	bizlock *b = client(NULL), *closed = client_new(&world, NULL);
	bizlock_key keys[] = {KEY("k"), {"test", ""}};
	struct seen s = {.count = 0};

	expect(INVALID, b, bizlock_waiters(b, keys, 2, see, &s));
	expect_message(b, "keys[1]");
	expect(INVALID, b, bizlock_waiters(b, NULL, 1, see, &s));
	expect_message(b, "keys");
	expect(INVALID, b, bizlock_waiters(b, keys, 1, NULL, &s));
	expect_message(b, "fn");
	expect(OK, b, bizlock_waiters(b, NULL, 0, see, &s));
	expect(MISUSE, closed, bizlock_waiters(closed, keys, 1, see, &s));
	cr_assert_eq(bizlock_waiters(NULL, keys, 1, see, &s), BIZLOCK_INVALID);
	cr_assert_eq(s.count, 0);
	bizlock_close(closed);
}
