#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rnd.h"
#include "core/held.h"

#define KEYS 40
#define OWNERS 5
#define ROUNDS 20000

static struct bl_key key_of(unsigned n)
{
	struct bl_key key;
	struct bl_err err;
	char id[16];
	bizlock_key raw = {"order", id};

	snprintf(id, sizeof(id), "%u", n);
	cr_assert_eq(bl_key_make(&key, raw, &err), BIZLOCK_OK);
	return key;
}

static struct bl_owner owner_of(unsigned n)
{
	struct bl_owner owner;
	struct bl_err err;
	char name[16];

	snprintf(name, sizeof(name), "task-%u", n);
	cr_assert_eq(bl_owner_make(&owner, name, &err), BIZLOCK_OK);
	return owner;
}

static void remove_hold(struct bl_held *t, struct bl_hold *h)
{
	bl_held_take_out(t, h);
	bl_hold_free(h);
}

static struct bl_held new_table(void)
{
	struct bl_held t;

	cr_assert(bl_held_init(&t));
	return t;
}

Test(held, an_empty_table_has_nothing)
{
	struct bl_held t = new_table();
	struct bl_key key = key_of(1);
	struct bl_owner owner = owner_of(1);

	cr_expect_eq(t.count, 0);
	cr_expect_null(bl_held_find(&t, &key, &owner));
	cr_expect_null(bl_held_of_key(&t, &key));
	cr_expect_null(bl_held_walk(&t, NULL));
	bl_held_free(&t);
}

Test(held, free_takes_zero_and_twice)
{
	struct bl_held t = {.buckets = NULL};

	bl_held_free(&t);
	t = new_table();
	bl_held_free(&t);
	bl_held_free(&t);
	cr_expect_null(t.buckets);
}

Test(held, a_new_hold_is_acquiring_and_otherwise_zero)
{
	struct bl_held t = new_table();
	struct bl_key key = key_of(1);
	struct bl_owner owner = owner_of(1);
	struct bl_hold *h = bl_held_add(&t, &key, &owner);

	cr_assert_not_null(h);
	cr_expect(bl_key_equal(&h->key, &key));
	cr_expect(bl_owner_equal(&h->owner, &owner));
	cr_expect_eq(h->state, BL_HOLD_ACQUIRING);
	cr_expect_not(h->busy);
	cr_expect_eq(h->depth | h->stored | h->lease_ms | h->flags, 0);
	cr_expect_eq(h->fence, 0);
	cr_expect_eq(h->expires, 0);
	cr_expect_eq(h->bell, 0);
	bl_held_free(&t);
}

/* Callers keep pointers across calls: a hold that moved would leave them with foreign memory. */
Test(held, holds_do_not_move_when_the_table_grows)
{
	enum { MANY = 5000 };
	static struct bl_hold *holds[MANY];
	struct bl_held t = new_table();
	struct bl_owner owner = owner_of(1);

	for (unsigned i = 0; i < MANY; i++) {
		struct bl_key key = key_of(i);

		holds[i] = bl_held_add(&t, &key, &owner);
		cr_assert_not_null(holds[i]);
		holds[i]->fence = i;
	}
	cr_expect_geq(t.mask + 1, MANY, "grows at one hold a bucket");
	cr_expect_eq(t.mask & (t.mask + 1), 0);
	for (unsigned i = 0; i < MANY; i++) {
		struct bl_key key = key_of(i);

		cr_assert_eq(bl_held_find(&t, &key, &owner), holds[i]);
		cr_assert_eq(holds[i]->fence, i);
	}
	bl_held_free(&t);
}

/* Keys in the same bucket, even with the same hash, are told apart; one can be removed anywhere in
 * a chain. */
Test(held, colliding_keys_are_kept_apart)
{
	struct bl_held t = new_table();
	struct bl_owner owner = owner_of(1);
	struct bl_key keys[3];
	struct bl_hold *holds[3];

	for (unsigned i = 0; i < 3; i++) {
		keys[i] = key_of(i);
		keys[i].hash = 42;
		holds[i] = bl_held_add(&t, &keys[i], &owner);
		bl_held_contends(&t, holds[i]);
	}
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(bl_held_find(&t, &keys[i], &owner), holds[i]);
		cr_expect_eq(bl_held_of_key(&t, &keys[i]), holds[i]);
		cr_expect_null(bl_held_next_of_key(holds[i]));
	}
	remove_hold(&t, holds[1]);
	cr_expect_eq(bl_held_find(&t, &keys[0], &owner), holds[0]);
	cr_expect_null(bl_held_find(&t, &keys[1], &owner));
	cr_expect_eq(bl_held_find(&t, &keys[2], &owner), holds[2]);
	bl_held_free(&t);
}

static struct bl_hold *named(struct bl_held *t, unsigned k, unsigned o)
{
	struct bl_key key = key_of(k);
	struct bl_owner owner = owner_of(o);

	return bl_held_named(t, (bizlock_key){key.type, key.id}, owner.name);
}

/* Texts that a caller may say, beside the one that is held. */
Test(held, a_hold_is_found_by_unchecked_texts)
{
	static const bizlock_key others[] = {
	        {"order", "77"}, {"order", ""},   {"", "7"},   {"orders", "7"},
	        {"orde", "7"},   {"order", NULL}, {NULL, "7"}, {NULL, NULL},
	};
	static const char *const owners[] = {"task-11", "task-", "", "\xff"};
	static const bizlock_key same = {"order", "7"};
	struct bl_held t = new_table();
	struct bl_key key = key_of(7);
	struct bl_owner task = owner_of(1), thread, another;
	struct bl_hold *of_task, *of_thread;
	struct bl_err err;
	char endless[1000];

	memset(endless, '7', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = '\0';
	cr_assert_eq(bl_owner_make(&thread, NULL, &err), BIZLOCK_OK);
	of_task = bl_held_add(&t, &key, &task);
	of_thread = bl_held_add(&t, &key, &thread);
	another = thread;
	another.thread++;
	cr_assert_not_null(bl_held_add(&t, &key, &another));
	for (int again = 0; again < 2; again++) {
		cr_expect_eq(bl_held_named(&t, same, "task-1"), of_task);
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
			cr_expect_null(bl_held_named(&t, others[i], "task-1"), "%zu", i);
		cr_expect_null(bl_held_named(&t, (bizlock_key){endless, endless}, "task-1"));
		for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++)
			cr_expect_null(bl_held_named(&t, same, owners[i]), "%zu", i);
		cr_expect_null(bl_held_named(&t, same, thread.name), "a thread has no name");
		cr_expect_eq(bl_held_named(&t, same, NULL), of_thread);
	}
	bl_held_free(&t);
}

/* An orphan, or one that is gone, is nobody's, also where it was found just before. */
Test(held, the_latest_is_not_found_once_it_is_over)
{
	struct bl_held t = new_table();
	struct bl_key key = key_of(7);
	struct bl_owner owner = owner_of(1);
	struct bl_hold *h = bl_held_add(&t, &key, &owner), *next;

	cr_expect_eq(named(&t, 7, 1), h);
	bl_hold_move(h, BL_HOLD_ORPHAN);
	cr_expect_null(named(&t, 7, 1));
	next = bl_held_add(&t, &key, &owner);
	cr_expect_eq(named(&t, 7, 1), next);
	remove_hold(&t, next);
	cr_expect_null(t.latest);
	cr_expect_null(named(&t, 7, 1));
	bl_held_free(&t);
}

/* Thousands may wait in line, and whoever looks for a holder does not pass by them. */
Test(held, those_in_line_are_not_met_by_their_key)
{
	struct bl_held t = new_table();
	struct bl_key key = key_of(7);
	struct bl_owner owner = owner_of(1), other = owner_of(2);
	struct bl_hold *h = bl_held_add(&t, &key, &owner);

	cr_assert_not_null(bl_held_add(&t, &key, &other));
	cr_expect_null(bl_held_of_key(&t, &key));
	for (int again = 0; again < 2; again++)
		bl_held_contends(&t, h);
	cr_expect_eq(bl_held_of_key(&t, &key), h);
	cr_expect_null(bl_held_next_of_key(h));
	bl_held_free(&t);
}

/* ---- against a model that is too simple to be wrong ---------------------- */

struct model {
	struct bl_hold *holds[KEYS][OWNERS];
	size_t count;
};

static void expect_key(struct bl_held *t, const struct model *m, unsigned k)
{
	struct bl_key key = key_of(k);
	size_t expected = 0, seen = 0;

	for (unsigned o = 0; o < OWNERS; o++) {
		struct bl_owner owner = owner_of(o);

		cr_assert_eq(bl_held_find(t, &key, &owner), m->holds[k][o]);
		cr_assert_eq(named(t, k, o), m->holds[k][o]);
		expected += m->holds[k][o] && m->holds[k][o]->contends;
	}
	for (struct bl_hold *h = bl_held_of_key(t, &key); h; h = bl_held_next_of_key(h)) {
		cr_assert(bl_key_equal(&h->key, &key));
		seen++;
	}
	cr_assert_eq(seen, expected, "key %u", k);
}

static void expect_walk(const struct bl_held *t, const struct model *m)
{
	size_t seen = 0;

	for (struct bl_hold *h = bl_held_walk(t, NULL); h; h = bl_held_walk(t, h)) {
		unsigned k = (unsigned)h->fence / OWNERS, o = (unsigned)h->fence % OWNERS;

		cr_assert_eq(m->holds[k][o], h, "walked to a hold that is not there");
		seen++;
	}
	cr_assert_eq(seen, m->count, "every hold once");
	cr_assert_eq(t->count, m->count);
}

static void toggle(struct bl_held *t, struct model *m, unsigned k, unsigned o)
{
	struct bl_key key = key_of(k);
	struct bl_owner owner = owner_of(o);

	if (m->holds[k][o]) {
		remove_hold(t, m->holds[k][o]);
		m->holds[k][o] = NULL;
		m->count--;
		return;
	}
	m->holds[k][o] = bl_held_add(t, &key, &owner);
	cr_assert_not_null(m->holds[k][o]);
	m->holds[k][o]->fence = k * OWNERS + o;
	if (o % 2)
		bl_held_contends(t, m->holds[k][o]);
	m->count++;
}

static uint64_t pick_seed(void)
{
	const char *given = getenv("BIZLOCK_TEST_SEED");
	uint64_t seed;

	if (given)
		return strtoull(given, NULL, 0);
	cr_assert(bl_random_bytes(&seed, sizeof(seed)));
	return seed;
}

Test(held, agrees_with_a_model)
{
	uint64_t seed = pick_seed(), state = seed;
	struct bl_held t = new_table();
	struct model m = {0};

	fprintf(stderr, "held: BIZLOCK_TEST_SEED=0x%llx\n", (unsigned long long)seed);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t r = bl_rnd_next(&state);

		toggle(&t, &m, (unsigned)(r % KEYS), (unsigned)(r / KEYS % OWNERS));
		expect_key(&t, &m, (unsigned)(r >> 40) % KEYS);
		if (i % 64 == 0)
			expect_walk(&t, &m);
	}
	for (unsigned k = 0; k < KEYS; k++)
		expect_key(&t, &m, k);
	expect_walk(&t, &m);
	bl_held_free(&t);
}
