/* Many requests at once, for keys that were shared and those that were not, in both ways. */
#include <stdio.h>

#include "cr_ask.h"

TestSuite(mixed_requests, .init = world_begin, .fini = world_end, .timeout = 480);

#define S BIZLOCK_SHARED
#define X 0
#define N 150
#define LEASE_MS (20 * PATIENCE_MS)

static struct ask asks[N];
static uint64_t fences[N]; /* the largest that was seen of each key */

static const char *key(int i)
{
	static char id[16];

	snprintf(id, sizeof(id), "k-%d", i);
	return id;
}

static long long rows_where(const char *where)
{
	return db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE %s", where);
}

static uint32_t all_alone(int i)
{
	(void)i;
	return X;
}

static uint32_t all_shared(int i)
{
	(void)i;
	return S;
}

static uint32_t by_turns(int i)
{
	return i % 2 ? S : X;
}

static void start_all(bizlock *b, uint32_t (*way)(int i))
{
	for (int i = 0; i < N; i++)
		ask_for(&asks[i], b, key(i), "task", .wait_ms = -1, .flags = way(i));
}

static int answered(void)
{
	int n = 0;

	for (int i = 0; i < N; i++)
		n += asks[i].calls;
	return n;
}

static void expect_granted(int i, uint32_t flags)
{
	const bizlock_grant *g = &asks[i].grant;

	cr_assert_eq(asks[i].rc, BIZLOCK_OK, "%d: %s", i, asks[i].errmsg);
	cr_assert_gt(g->fence, fences[i], "%d", i);
	cr_assert_eq(g->flags, 0, "%d", i);
	cr_assert_eq(g->depth, 1, "%d", i);
	cr_assert_eq(g->slot > 0, flags == S, "%d", i);
	fences[i] = g->fence;
}

static void all_are_granted(bizlock *b, uint32_t (*way)(int i))
{
	dispatch_until(b, answered() == N);
	for (int i = 0; i < N; i++)
		expect_granted(i, way(i));
	cr_assert_eq(rows_where("owner <> ''"), N);
}

static void release_all(bizlock *b)
{
	for (int i = 0; i < N; i++)
		ask_release(&asks[i]);
	dispatch_until(b, answered() == N);
	for (int i = 0; i < N; i++)
		cr_assert_eq(asks[i].rc, BIZLOCK_OK, "%d: %s", i, asks[i].errmsg);
	cr_assert_eq(rows_where("owner LIKE 'task@%'"), 0);
}

static int try_key(bizlock *b, int i, uint32_t flags)
{
	return bizlock_acquire(b, KEY(key(i)),
	                       &OPTS(.flags = flags, .owner = "other", .lease_ms = LEASE_MS), NULL);
}

/* Another client gets what is shared, and nothing else. */
static void expect_kept(bizlock *other, uint32_t (*way)(int i))
{
	for (int i = 0; i < N; i += 7) {
		expect(BUSY, other, try_key(other, i, X));
		if (way(i) == X) {
			expect(BUSY, other, try_key(other, i, S));
			continue;
		}
		expect(OK, other, try_key(other, i, S));
		expect(OK, other, bizlock_release(other, KEY(key(i)), "other", NULL));
	}
}

/* Those that share leave a free row behind; the others do not. Each way meets what each leaves. */
Test(mixed_requests, are_granted_whatever_was_left)
{
	uint32_t (*const ways[])(int) = {all_shared, all_alone,  all_alone, all_shared, all_shared,
	                                 by_turns,   all_shared, by_turns,  by_turns,   all_alone};
	bizlock *b = client(NULL), *other = client(NULL);

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		start_all(b, ways[i]);
		all_are_granted(b, ways[i]);
		expect_kept(other, ways[i]);
		release_all(b);
	}
}

/* Every tenth key is shared by another client, and of those that wait none is forgotten. */
Test(mixed_requests, wait_for_those_that_share_some_of_the_keys)
{
	bizlock *b = client(NULL), *other = client(NULL);

	start_all(b, all_shared);
	all_are_granted(b, all_shared);
	for (int i = 0; i < N; i += 10)
		expect(OK, other, try_key(other, i, S));
	release_all(b);
	start_all(b, all_alone);
	dispatch_until(b, answered() == N - N / 10);
	steadily((dispatch_once(b), answered() == N - N / 10), 300);
	for (int i = 0; i < N; i += 10)
		cr_assert_eq(asks[i].calls, 0, "%d", i);
	for (int i = 0; i < N; i += 10)
		expect(OK, other, bizlock_release(other, KEY(key(i)), "other", NULL));
	all_are_granted(b, all_alone);
	expect_kept(other, all_alone);
	release_all(b);
}

/* All in one line: the first one alone, then sharers, then one alone, and so on. */
Test(mixed_requests, for_one_key_are_served_in_order)
{
	enum { MANY = 40, EACH = 8 };
	bizlock *b = client(NULL);

	for (int i = 0; i < MANY; i++) {
		char owner[16];

		snprintf(owner, sizeof(owner), "task-%d", i);
		ask_for(&asks[i], b, "k", owner, .wait_ms = -1, .flags = i % EACH ? S : X);
	}
	for (int i = 0, n; i < MANY; i += n) {
		n = i % EACH ? EACH - 1 : 1;
		for (int j = i; j < i + n; j++)
			ask_ends(OK, &asks[j]);
		steadily((dispatch_once(b), i + n == MANY || asks[i + n].calls == 0), 20);
		for (int j = i; j < i + n; j++)
			ask_release(&asks[j]);
		for (int j = i; j < i + n; j++)
			ask_ends(OK, &asks[j]);
	}
	cr_assert_eq(rows_where("owner <> ''"), 0);
}
