/* What a client has counted, for tests that watch it. */
#ifndef TEST_CR_NUMBERS_H
#define TEST_CR_NUMBERS_H

#include <bizlock.h>
#include <criterion/criterion.h>

bizlock_numbers numbers_of(bizlock *b);

/* All buckets together. */
uint64_t waits_of(const bizlock_numbers *n);

/* What has changed since *before, such as "held+1 acquired+1 waits+1"; *before
 * is then now. How long the waits were is not among it. Static storage. */
const char *moved(bizlock *b, bizlock_numbers *before);

#define expect_moved(b, before, text) cr_assert_str_eq(moved((b), (before)), (text))

#endif
