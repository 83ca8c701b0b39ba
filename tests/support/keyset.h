/* Several keys at once, for bizlock_acquire_all(): of type "test", in order of
 * id unless shuffled. Points into itself: not to be copied. */
#ifndef TEST_KEYSET_H
#define TEST_KEYSET_H

#include <bizlock.h>

#define KEYSET_MAX 256

struct keyset {
	size_t n;
	bizlock_key keys[KEYSET_MAX + 1]; /* one more than is allowed, for tests that try that */
	bizlock_grant grants[KEYSET_MAX + 1];
	char ids[KEYSET_MAX + 1][24];
};

/* prefix-000, prefix-001, ...; up to KEYSET_MAX + 1 of them, with fresh grants. */
void keyset_make(struct keyset *s, size_t n, const char *prefix);

void keyset_reverse(struct keyset *s);
void keyset_shuffle(struct keyset *s, unsigned *random);

/* Sets the grants back to what they are before a call. */
void keyset_forget(struct keyset *s);

/* A field that is not named is zero: one try, by the calling thread, with the client's default
 * lease. */
struct keyset_args {
	struct keyset *set;
	int64_t wait_ms; /* -1: for ever */
	uint32_t lease_ms;
	const char *owner;
};

int keyset_acquire_with(bizlock *b, struct keyset_args args);

/* keyset_acquire(b, &s, .wait_ms = -1, .owner = "task-1") */
#define keyset_acquire(b, ...) keyset_acquire_with((b), (struct keyset_args){.set = __VA_ARGS__})

int keyset_release(bizlock *b, const struct keyset *s, const char *owner);

#endif
