#define _GNU_SOURCE 1
#include "cr_keyset.h"

#include "cr_test.h"

long long rows(void)
{
	return locks_there(&world);
}

void expect_held(bizlock *b, const struct keyset *s, const char *owner, unsigned depth)
{
	for (size_t i = 0; i < s->n; i++) {
		const char *id = s->keys[i].biz_id;
		struct row row = row_of(&world, s->keys[i]);

		cr_assert(row.there, "%s is not held", id);
		cr_assert_eq(row.fence, s->grants[i].fence, "%s: fence %llu, granted %llu", id,
		             row.fence, (unsigned long long)s->grants[i].fence);
		cr_assert_eq(row.depth, depth, "%s: depth %u, not %u", id, row.depth, depth);
		cr_assert_gt(row.left_us, 0, "%s: its lease is over", id);
		cr_assert_gt(bizlock_left_ms(b, s->keys[i], owner), 0, "%s: not believed in", id);
		expect(OK, b, bizlock_verify(b, s->keys[i], owner));
	}
}

void expect_granted(const struct keyset *s, uint32_t flags)
{
	for (size_t i = 0; i < s->n; i++) {
		const bizlock_grant *g = &s->grants[i];

		cr_assert(g->fence > 0 && g->depth == 1 && g->flags == flags,
		          "%s: fence %llu, depth %u, flags %u", s->keys[i].biz_id,
		          (unsigned long long)g->fence, g->depth, g->flags);
		for (size_t j = 0; j < i; j++)
			cr_assert_neq(g->fence, s->grants[j].fence, "%s and %s share a fence",
			              s->keys[i].biz_id, s->keys[j].biz_id);
	}
}

void expect_not_granted(const struct keyset *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const bizlock_grant *g = &s->grants[i];

		cr_assert(g->fence == 0 && g->depth == 0 && g->lease_ms == 0 && g->flags == 0,
		          "the grant of %s was written to", s->keys[i].biz_id);
	}
}

void expect_none(bizlock *b, const struct keyset *s, const char *owner)
{
	for (size_t i = 0; i < s->n; i++) {
		cr_assert_leq(bizlock_left_ms(b, s->keys[i], owner), 0, "%s", s->keys[i].biz_id);
		expect(NOT_OWNER, b, bizlock_release(b, s->keys[i], owner, NULL));
	}
}
