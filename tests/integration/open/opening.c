/* Several threads use a client while it is being opened. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "cr_test.h"

TestSuite(opening, .init = world_begin, .fini = world_end, .timeout = 240);

#define ROUNDS 20
#define OPENERS 3
#define TEXT_MAX 4096

/* A call of bizlock_open() in a thread of its own, and its answer. */
struct opener {
	pthread_t thread;
	bizlock *b;
	atomic_bool done;
	int rc;
	char errmsg[512];
};

static void *run_open(void *arg)
{
	struct opener *o = arg;

	o->rc = bizlock_open(o->b);
	if (o->rc != BIZLOCK_OK)
		snprintf(o->errmsg, sizeof(o->errmsg), "%s", bizlock_errmsg(o->b));
	o->done = true;
	return NULL;
}

static void open_start(struct opener *o, bizlock *b)
{
	*o = (struct opener){.b = b};
	cr_assert_eq(pthread_create(&o->thread, NULL, run_open, o), 0);
}

static int open_join(struct opener *o)
{
	pthread_join(o->thread, NULL);
	return o->rc;
}

/* ---- one of them is at it, and gets no answer -------------------------------- */

static struct {
	struct proxy *proxy;
	bizlock *b;
	struct opener first;
} slow;

static void begin_slowly(void)
{
	struct world w;
	struct server at;

	world_begin();
	slow.proxy = proxy_start(&world.at, "127.0.0.1");
	at = proxy_address(slow.proxy);
	w = world_by_way_of(&world, &at);
	slow.b = client_new(&w, OPTIONS("ssl_mode", "disabled"));
	proxy_hold_replies(slow.proxy, true);
	open_start(&slow.first, slow.b);
	eventually(bizlock_set(slow.b, "renew", "on") == BIZLOCK_MISUSE);
}

static void go_on(void)
{
	proxy_hold_replies(slow.proxy, false);
	cr_assert_eq(open_join(&slow.first), BIZLOCK_OK, "%s", slow.first.errmsg);
}

static void end_slowly(void)
{
	proxy_stop(slow.proxy);
	world_end();
}

TestSuite(opening_slowly, .init = begin_slowly, .fini = end_slowly, .timeout = 240);

Test(opening_slowly, the_others_are_told_so)
{
	expect(MISUSE, slow.b, bizlock_open(slow.b));
	expect_message(slow.b, "being opened by another thread");
	expect(MISUSE, slow.b, bizlock_set(slow.b, "lease_ms", "1000"));
	expect_message(slow.b, "being opened by another thread");
	expect(MISUSE, slow.b, acquire(slow.b, "k"));
	expect_message(slow.b, "being opened by another thread");
	bizlock_interrupt(slow.b);
	go_on();
	works(slow.b);
	expect(MISUSE, slow.b, bizlock_open(slow.b));
	expect_message(slow.b, "open already");
	bizlock_close(slow.b);
}

Test(opening_slowly, grants_are_written_nevertheless)
{
	char text[TEXT_MAX];

	expect(OK, slow.b, bizlock_grants(slow.b, "app@%", text, sizeof(text), NULL));
	cr_assert(strstr(text, world.schema), "%s", text);
	go_on();
	bizlock_close(slow.b);
}

static void *run_close(void *arg)
{
	bizlock_close(slow.b);
	*(atomic_bool *)arg = true;
	return NULL;
}

Test(opening_slowly, a_close_waits_for_the_open)
{
	atomic_bool closed = false;
	pthread_t closer;

	cr_assert_eq(pthread_create(&closer, NULL, run_close, &closed), 0);
	steadily(!closed, 200);
	go_on();
	pthread_join(closer, NULL);
	cr_assert(closed);
}

/* ---- all at once; the sanitizers look on ------------------------------------------ */

static atomic_bool over;

static void *write_grants(void *b)
{
	while (!over) {
		char text[TEXT_MAX];

		expect(OK, b, bizlock_grants(b, "app@%", text, sizeof(text), NULL));
		cr_assert(strstr(text, world.schema), "%s", text);
	}
	return NULL;
}

static void *set_options(void *b)
{
	while (!over) {
		int rc = bizlock_set(b, "ssl_ca", "/nowhere/but/long/enough/to/be/allocated.pem");

		cr_assert(rc == BIZLOCK_OK || rc == BIZLOCK_MISUSE, "%d", rc);
	}
	return NULL;
}

static int see_migration(void *arg, const bizlock_migration *m)
{
	(void)arg;
	return m->pending;
}

static int see_finding(void *arg, const bizlock_finding *f)
{
	(void)arg;
	(void)f;
	return 0;
}

static void *look_on(void *b)
{
	while (!over) {
		expect(OK, b, bizlock_each_migration(b, see_migration, NULL));
		expect(OK, b, bizlock_migrate(b));
		expect(OK, b, bizlock_doctor(b, see_finding, NULL));
	}
	return NULL;
}

static void *interrupt(void *b)
{
	while (!over)
		bizlock_interrupt(b);
	return NULL;
}

static void open_among(void *(*const *others)(void *), size_t n)
{
	bizlock *b = client_new(&world, OPTIONS("ssl_mode", "disabled"));
	struct opener openers[OPENERS];
	pthread_t threads[4];
	unsigned opened = 0;

	over = false;
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, others[i], b), 0);
	for (int i = 0; i < OPENERS; i++)
		open_start(&openers[i], b);
	for (int i = 0; i < OPENERS; i++) {
		int rc = open_join(&openers[i]);

		opened += rc == BIZLOCK_OK;
		cr_assert(rc == BIZLOCK_OK || rc == BIZLOCK_MISUSE, "%s", openers[i].errmsg);
	}
	cr_assert_eq(opened, 1);
	over = true;
	for (size_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	works(b); /* only now: an acquisition that waits for a connection is interrupted, too */
	bizlock_close(b);
}

Test(opening, one_of_many_opens)
{
	for (int i = 0; i < ROUNDS; i++)
		open_among(NULL, 0);
}

Test(opening, others_read_and_write_the_options_meanwhile)
{
	void *(*const others[])(void *) = {write_grants, write_grants, set_options, interrupt};

	for (int i = 0; i < ROUNDS; i++)
		open_among(others, 4);
}

Test(opening, others_look_at_the_server_meanwhile)
{
	void *(*const others[])(void *) = {look_on, write_grants, interrupt};

	for (int i = 0; i < ROUNDS / 4; i++)
		open_among(others, 3);
}

static void *set_for_a_while(void *b)
{
	for (int i = 0; i < 200; i++) {
		char value[16];

		snprintf(value, sizeof(value), "prefix_%d", i);
		expect(OK, b, bizlock_set(b, "table_prefix", value));
		expect(OK, b, bizlock_set(b, "user", value));
	}
	return NULL;
}

Test(opening, several_set_options_at_once)
{
	bizlock *b = client_new(&world, NULL);
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, set_for_a_while, b), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	bizlock_close(b);
}
