#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "core/numbers.h"

static bizlock_numbers read_numbers(struct bl_numbers *n)
{
	bizlock_numbers now;

	memset(&now, 0xee, sizeof(now));
	bl_numbers_read(n, 0, &now);
	return now;
}

Test(numbers, begin_at_zero)
{
	struct bl_numbers n = {0};
	bizlock_numbers now = read_numbers(&n), zero = BIZLOCK_NUMBERS_INIT;

	cr_expect_eq(memcmp(&now, &zero, sizeof(now)), 0);
}

Test(numbers, held_is_what_the_caller_says)
{
	struct bl_numbers n = {0};
	bizlock_numbers now;

	bl_numbers_read(&n, 42, &now);
	cr_expect_eq(now.held, 42);
}

/* All values differ, so that two swapped ones would be seen. */
Test(numbers, each_counter_has_its_field)
{
	struct bl_numbers n = {0};
	bizlock_numbers now;

	for (int i = 0; i < BL_COUNTER_COUNT; i++)
		bl_count_add(&n, i, 1000 + (uint64_t)i);
	now = read_numbers(&n);
#define CHECK(name, field, kind, metric, label, help)                                              \
	cr_expect_eq(now.field, 1000 + BL_COUNT_##name, #field);
	BL_COUNTERS(CHECK)
#undef CHECK
}

/* A field that is added to the struct but has no counter would never move. */
Test(numbers, each_field_has_its_counter)
{
	cr_expect_eq(sizeof(bizlock_numbers),
	             sizeof(size_t) +
	                     sizeof(uint64_t) * (1 + BL_COUNTER_COUNT + BIZLOCK_WAIT_BUCKETS));
}

Test(numbers, count_adds_one)
{
	struct bl_numbers n = {0};

	for (int i = 0; i < 3; i++)
		bl_count(&n, BL_COUNT_BUSY);
	cr_expect_eq(read_numbers(&n).busy, 3);
	cr_expect_eq(read_numbers(&n).acquired, 0);
	cr_expect_eq(read_numbers(&n).timed_out, 0);
}

Test(numbers, max_keeps_the_largest)
{
	static const uint64_t shown[] = {5, 3, 9, 9, 0, 7};
	struct bl_numbers n = {0};

	for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
		bl_count_max(&n, BL_COUNT_RENEW_LAG_MAX_US, shown[i]);
	cr_expect_eq(read_numbers(&n).renew_lag_max_us, 9);
	bl_count_max(&n, BL_COUNT_RENEW_LAG_MAX_US, UINT64_MAX);
	cr_expect_eq(read_numbers(&n).renew_lag_max_us, UINT64_MAX);
}

/* ---- waits ------------------------------------------------------------------ */

static const uint64_t bounds_ms[] = {BIZLOCK_WAIT_BOUNDS_MS};

static void lands_in(uint64_t us, int bucket)
{
	struct bl_numbers n = {0};
	bizlock_numbers now;

	bl_count_wait(&n, us);
	now = read_numbers(&n);
	for (int i = 0; i < BIZLOCK_WAIT_BUCKETS; i++)
		cr_expect_eq(now.waits[i], i == bucket, "%llu us, bucket %d",
		             (unsigned long long)us, i);
	cr_expect_eq(now.wait_us, us);
}

Test(numbers, a_bound_belongs_to_its_bucket)
{
	for (int i = 0; i < BIZLOCK_WAIT_BUCKETS - 1; i++) {
		lands_in(bounds_ms[i] * 1000 - 1, i);
		lands_in(bounds_ms[i] * 1000, i);
		lands_in(bounds_ms[i] * 1000 + 1, i + 1);
	}
	lands_in(0, 0);
	lands_in(UINT64_MAX, BIZLOCK_WAIT_BUCKETS - 1);
}

Test(numbers, waits_add_up)
{
	struct bl_numbers n = {0};
	bizlock_numbers now;

	bl_count_wait(&n, 300);
	bl_count_wait(&n, 700);
	bl_count_wait(&n, 1500);
	now = read_numbers(&n);
	cr_expect_eq(now.waits[0], 2);
	cr_expect_eq(now.waits[1], 1);
	cr_expect_eq(now.wait_us, 2500);
}

/* ---- threads ---------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS 20000

struct counting {
	struct bl_numbers *n;
	unsigned first;
	pthread_t thread;
};

static void *keep_counting(void *arg)
{
	const struct counting *c = arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		bl_count(c->n, BL_COUNT_ACQUIRED);
		bl_count_wait(c->n, 1);
		bl_count_max(c->n, BL_COUNT_RENEW_LAG_MAX_US, c->first + i * THREADS);
	}
	return NULL;
}

Test(numbers, nothing_is_lost_between_threads)
{
	struct counting c[THREADS];
	struct bl_numbers n = {0};
	bizlock_numbers now;

	for (unsigned i = 0; i < THREADS; i++) {
		c[i] = (struct counting){.n = &n, .first = i};
		cr_assert_eq(pthread_create(&c[i].thread, NULL, keep_counting, &c[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(c[i].thread, NULL);
	now = read_numbers(&n);
	cr_expect_eq(now.acquired, THREADS * ROUNDS);
	cr_expect_eq(now.wait_us, THREADS * ROUNDS);
	cr_expect_eq(now.waits[0], THREADS * ROUNDS);
	cr_expect_eq(now.renew_lag_max_us, THREADS * ROUNDS - 1);
}
