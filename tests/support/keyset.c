#include "keyset.h"

#include <stdio.h>
#include <stdlib.h>

void keyset_make(struct keyset *s, size_t n, const char *prefix)
{
	s->n = n;
	for (size_t i = 0; i < n; i++) {
		snprintf(s->ids[i], sizeof(s->ids[i]), "%s-%03u", prefix, (unsigned)i);
		s->keys[i] = (bizlock_key){"test", s->ids[i]};
	}
	keyset_forget(s);
}

static void swap(bizlock_key *a, bizlock_key *b)
{
	bizlock_key c = *a;

	*a = *b;
	*b = c;
}

void keyset_reverse(struct keyset *s)
{
	for (size_t i = 0; i < s->n / 2; i++)
		swap(&s->keys[i], &s->keys[s->n - 1 - i]);
}

void keyset_shuffle(struct keyset *s, unsigned *random)
{
	for (size_t i = s->n; i > 1; i--)
		swap(&s->keys[i - 1], &s->keys[(size_t)rand_r(random) % i]);
}

void keyset_forget(struct keyset *s)
{
	for (size_t i = 0; i < s->n; i++)
		s->grants[i] = (bizlock_grant)BIZLOCK_GRANT_INIT;
}

int keyset_acquire_with(bizlock *b, struct keyset_args args)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	struct keyset *s = args.set;

	opts.wait_ms = args.wait_ms;
	opts.lease_ms = args.lease_ms;
	opts.owner = args.owner;
	return bizlock_acquire_all(b, s->keys, s->n, &opts, s->grants);
}

int keyset_release(bizlock *b, const struct keyset *s, const char *owner)
{
	return bizlock_release_all(b, s->keys, s->n, owner);
}
