/* Sets that want the same keys, each in another order. All of them go on, and the server counts no
 * deadlock. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_keyset.h"
#include "cr_test.h"

TestSuite(sets_crowd, .init = world_begin, .fini = world_end, .timeout = 480);

#define N 16
#define ROUNDS 100
#define CROWD 4
/* No wait is this long unless sets wait for each other in a circle. */
#define STUCK_MS 60000

struct worker {
	bizlock *b;
	unsigned number, rounds;
	unsigned random;       /* 0: all keys, in order, or (odd numbers) in reverse order */
	atomic_uint *inside;   /* of all workers, N of them */
	atomic_ullong *fences; /* of the last holder */
	int rc;
	char errmsg[256];
	pthread_t thread;
};

static unsigned index_of(bizlock_key key)
{
	return (unsigned)strtoul(key.biz_id + 2, NULL, 10);
}

static void look_around(struct worker *w, const struct keyset *s)
{
	for (size_t i = 0; i < s->n; i++) {
		unsigned at = index_of(s->keys[i]);

		if (atomic_fetch_add(&w->inside[at], 1) != 0)
			die("two are inside of %s", s->keys[i].biz_id);
		if (atomic_exchange(&w->fences[at], s->grants[i].fence) >= s->grants[i].fence)
			die("the fence of %s went back", s->keys[i].biz_id);
	}
	for (size_t i = 0; i < s->n; i++)
		atomic_fetch_sub(&w->inside[index_of(s->keys[i])], 1);
}

static void choose(struct worker *w, struct keyset *s)
{
	keyset_make(s, N, "k");
	if (w->random) {
		keyset_shuffle(s, &w->random);
		s->n = 1 + (size_t)rand_r(&w->random) % N;
	} else if (w->number % 2) {
		keyset_reverse(s);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct keyset s;
	char owner[16];

	snprintf(owner, sizeof(owner), "task-%u", w->number);
	for (; w->rounds < ROUNDS && w->rc == BIZLOCK_OK; w->rounds++) {
		choose(w, &s);
		w->rc = keyset_acquire(w->b, &s, .wait_ms = STUCK_MS, .lease_ms = 20 * PATIENCE_MS,
		                       .owner = owner);
		if (w->rc == BIZLOCK_OK) {
			look_around(w, &s);
			w->rc = keyset_release(w->b, &s, owner);
		}
	}
	if (w->rc != BIZLOCK_OK)
		snprintf(w->errmsg, sizeof(w->errmsg), "%s", bizlock_errmsg(w->b));
	return NULL;
}

static void everybody_gets_on(bizlock *const *clients, unsigned count, unsigned random)
{
	static atomic_uint inside[N];
	static atomic_ullong fences[N];
	static struct worker workers[CROWD];

	for (unsigned i = 0; i < count; i++) {
		workers[i] = (struct worker){.b = clients[i],
		                             .number = i,
		                             .random = random ? random + i : 0,
		                             .inside = inside,
		                             .fences = fences};
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			die("no thread");
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned i = 0; i < count; i++)
		cr_assert_eq(workers[i].rc, BIZLOCK_OK, "%u, round %u: %s: %s", i,
		             workers[i].rounds, bizlock_err_name(workers[i].rc), workers[i].errmsg);
	cr_assert_eq(all_rows(&world), 0);
}

static void without_a_deadlock(bizlock *const *clients, unsigned count, unsigned random)
{
	long long before;

	deadlocks_are_counted();
	before = db_deadlocks(world.admin);
	everybody_gets_on(clients, count, random);
	cr_assert_eq(db_deadlocks(world.admin) - before, 0);
}

Test(sets_crowd, two_clients_in_opposite_orders)
{
	bizlock *clients[2] = {client(NULL), client(NULL)};

	without_a_deadlock(clients, 2, 0);
}

Test(sets_crowd, two_threads_in_opposite_orders)
{
	bizlock *b = client(NULL), *clients[2] = {b, b};

	without_a_deadlock(clients, 2, 0);
}

Test(sets_crowd, threads_of_two_clients_in_opposite_orders)
{
	bizlock *a = client(NULL), *b = client(NULL), *clients[CROWD] = {a, a, b, b};

	without_a_deadlock(clients, CROWD, 0);
}

Test(sets_crowd, any_keys_in_any_order)
{
	bizlock *a = client(NULL), *b = client(NULL), *clients[CROWD] = {a, a, b, b};
	unsigned seed = (unsigned)now_ms() | 1;

	printf("seed %u\n", seed);
	without_a_deadlock(clients, CROWD, seed);
}

Test(sets_crowd, any_keys_in_any_order_without_the_queue)
{
	bizlock *a = client(OPTIONS("queue", "off")), *b = client(OPTIONS("queue", "off"));
	bizlock *clients[3] = {a, a, b};
	unsigned seed = (unsigned)now_ms() | 1;

	deadlocks_may_happen();
	printf("seed %u\n", seed);
	everybody_gets_on(clients, 3, seed);
}

/* A statement that is held up has drawn its fences, but not reached all of its keys. Meanwhile
 * another client may draw a larger fence for such a key, hold it, and release it. */
Test(sets_crowd, fences_grow_even_if_the_statement_is_held_up)
{
	bizlock *b = client(NULL), *stranger = client(NULL);
	MYSQL *other = db_open(&world.at, world.schema);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct keyset s;
	struct call call;

	keyset_make(&s, 8, "k");
	db_run(other, "START TRANSACTION; INSERT INTO biz_lock (biz_id, biz_type, owner,"
	              " reentrant, timeout, gmt_create, gmt_modified) VALUES ('k-003', 'test',"
	              " 'nobody', 1, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))");
	call_start_all(&call, b, &s, .wait_ms = -1, .owner = "task-1");
	call_blocks(&call);
	expect(OK, stranger, acquire(stranger, s.ids[6], .wait_ms = STUCK_MS, .grant = &grant));
	expect(OK, stranger, bizlock_release(stranger, s.keys[6], NULL, NULL));
	db_run(other, "ROLLBACK");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_gt(s.grants[6].fence, grant.fence, "fence %llu after %llu",
	             (unsigned long long)s.grants[6].fence, (unsigned long long)grant.fence);
	mysql_close(other);
}

/* ---- one owner, several threads ---------------------------------------------------- */

static void *deeper_and_back(void *arg)
{
	struct worker *w = arg;
	struct keyset s;

	for (; w->rounds < ROUNDS && w->rc == BIZLOCK_OK; w->rounds++) {
		choose(w, &s);
		w->rc = keyset_acquire(w->b, &s, .wait_ms = STUCK_MS, .lease_ms = 20 * PATIENCE_MS,
		                       .owner = "shared");
		if (w->rc == BIZLOCK_OK)
			w->rc = keyset_release(w->b, &s, "shared");
	}
	if (w->rc != BIZLOCK_OK)
		snprintf(w->errmsg, sizeof(w->errmsg), "%s", bizlock_errmsg(w->b));
	return NULL;
}

/* Threads of one owner do not exclude each other, and must not block each other either. */
Test(sets_crowd, threads_of_one_owner_in_opposite_orders)
{
	static struct worker workers[CROWD];
	bizlock *b = client(NULL);
	struct keyset s;

	keyset_make(&s, N, "k");
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = 20 * PATIENCE_MS, .owner = "shared"));
	for (unsigned i = 0; i < CROWD; i++) {
		workers[i] = (struct worker){.b = b, .number = i};
		if (pthread_create(&workers[i].thread, NULL, deeper_and_back, &workers[i]) != 0)
			die("no thread");
	}
	for (unsigned i = 0; i < CROWD; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned i = 0; i < CROWD; i++)
		cr_assert_eq(workers[i].rc, BIZLOCK_OK, "%u, round %u: %s: %s", i,
		             workers[i].rounds, bizlock_err_name(workers[i].rc), workers[i].errmsg);
	expect_held(b, &s, "shared", 1);
	expect(OK, b, keyset_release(b, &s, "shared"));
	cr_assert_eq(all_rows(&world), 0);
}

/* ---- singles among them ----------------------------------------------------------- */

struct single {
	bizlock *b;
	const char *id, *owner;
	atomic_bool stop;
	unsigned rounds;
	int rc;
	pthread_t thread;
};

static void *take_and_give(void *arg)
{
	struct single *s = arg;

	for (; s->rc == BIZLOCK_OK && !atomic_load(&s->stop); s->rounds++) {
		s->rc = acquire_as(s->b, s->id, s->owner, .wait_ms = STUCK_MS);
		if (s->rc == BIZLOCK_OK)
			s->rc = bizlock_release(s->b, KEY(s->id), s->owner, NULL);
	}
	return NULL;
}

/* One of the keys is free only for moments, but the set gets its turn. */
Test(sets_crowd, a_set_gets_its_turn_among_singles)
{
	bizlock *a = client(NULL), *b = client(NULL);
	struct single singles[3] = {{.b = a, .id = "k-003", .owner = "single-0"},
	                            {.b = a, .id = "k-003", .owner = "single-1"},
	                            {.b = b, .id = "k-007", .owner = "single-2"}};

	for (int i = 0; i < 3; i++)
		if (pthread_create(&singles[i].thread, NULL, take_and_give, &singles[i]) != 0)
			die("no thread");
	for (int round = 0; round < 20; round++) {
		struct keyset s;

		keyset_make(&s, N, "k");
		expect(OK, b, keyset_acquire(b, &s, .wait_ms = STUCK_MS, .owner = "set"));
		expect_granted(&s, 0);
		expect(OK, b, keyset_release(b, &s, "set"));
	}
	for (int i = 0; i < 3; i++)
		atomic_store(&singles[i].stop, true);
	for (int i = 0; i < 3; i++) {
		pthread_join(singles[i].thread, NULL);
		cr_assert_eq(singles[i].rc, BIZLOCK_OK, "%s", bizlock_err_name(singles[i].rc));
		cr_assert_gt(singles[i].rounds, 0);
	}
}
