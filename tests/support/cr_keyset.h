/* Sets of keys, for tests that watch their rows. */
#ifndef TEST_CR_KEYSET_H
#define TEST_CR_KEYSET_H

#include <bizlock.h>
#include <criterion/criterion.h>

#include "keyset.h"

/* How many rows there are, of all holders. */
long long rows(void);

/* Each key is held by `owner` of b, at this depth, with the fence it was granted. */
void expect_held(bizlock *b, const struct keyset *s, const char *owner, unsigned depth);

/* The grants are of first acquisitions, with fences that all differ. */
void expect_granted(const struct keyset *s, uint32_t flags);

/* No call has written to the grants. */
void expect_not_granted(const struct keyset *s);

/* `owner` holds none of the keys. Others may. */
void expect_none(bizlock *b, const struct keyset *s, const char *owner);

#endif
