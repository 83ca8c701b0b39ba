/* What a client has counted, for tests that watch it. */
#ifndef TEST_CR_NUMBERS_H
#define TEST_CR_NUMBERS_H

#include <bizlock.h>
#include <criterion/criterion.h>

bizlock_numbers numbers_of(bizlock *b);

/* All buckets together. */
uint64_t waits_of(const bizlock_numbers *n);

/* The numbers that have changed since *before, such as "held+1 acquired+1 waits+1"; *before becomes
 * the numbers of now. The lengths of waits are left out. Static storage. */
const char *moved(bizlock *b, bizlock_numbers *before);

#define expect_moved(b, before, text) cr_assert_str_eq(moved((b), (before)), (text))

#endif
