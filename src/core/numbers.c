#include "core/numbers.h"

const uint32_t bl_wait_bounds_ms[] = {BIZLOCK_WAIT_BOUNDS_MS};

_Static_assert(sizeof(bl_wait_bounds_ms) / sizeof(bl_wait_bounds_ms[0]) == BIZLOCK_WAIT_BUCKETS - 1,
               "a bucket for each bound, and an open one");

static uint64_t load(atomic_uint_least64_t *from)
{
	return atomic_load_explicit(from, memory_order_relaxed);
}

static void add(atomic_uint_least64_t *to, uint64_t more)
{
	atomic_fetch_add_explicit(to, more, memory_order_relaxed);
}

void bl_count(struct bl_numbers *n, enum bl_counter which)
{
	add(&n->counts[which], 1);
}

void bl_count_add(struct bl_numbers *n, enum bl_counter which, uint64_t more)
{
	add(&n->counts[which], more);
}

void bl_count_max(struct bl_numbers *n, enum bl_counter which, uint64_t value)
{
	uint_least64_t seen = load(&n->counts[which]);

	/* A failed exchange sets `seen` to the value that another thread has stored. */
	while (seen < value &&
	       !atomic_compare_exchange_weak_explicit(&n->counts[which], &seen, value,
	                                              memory_order_relaxed, memory_order_relaxed))
		;
}

void bl_count_wait(struct bl_numbers *n, uint64_t us)
{
	size_t i = 0;

	while (i < BIZLOCK_WAIT_BUCKETS - 1 && us > bl_wait_bounds_ms[i] * UINT64_C(1000))
		i++;
	add(&n->waits[i], 1);
	bl_count_add(n, BL_COUNT_WAIT_US, us);
}

void bl_numbers_read(struct bl_numbers *n, uint64_t held, bizlock_numbers *ret)
{
	ret->size = sizeof(*ret);
	ret->held = held;
#define READ(name, field, kind, metric, label, help) ret->field = load(&n->counts[BL_COUNT_##name]);
	BL_COUNTERS(READ)
#undef READ
	for (size_t i = 0; i < BIZLOCK_WAIT_BUCKETS; i++)
		ret->waits[i] = load(&n->waits[i]);
}
