/* The lock "k", shared and exclusive. */
#ifndef CR_SHARED_H
#define CR_SHARED_H

#include "cr_test.h"

#define S BIZLOCK_SHARED | BIZLOCK_NO_RENEW
#define X BIZLOCK_NO_RENEW
#define LEASE_MS (20u * PATIENCE_MS)

#define LIVE "timeout > UTC_TIMESTAMP(6)"

/* One try of this owner. */
int try_as(bizlock *b, const char *owner, uint32_t flags, uint32_t limit, bizlock_grant *ret);
int release_as(bizlock *b, const char *owner);

/* Begins to wait for it, for ever. */
void wait_as(struct call *call, bizlock *b, const char *owner, uint32_t flags, uint32_t limit);

/* The call is over, and has got it. */
void expect_got(struct call *call);

/* How many rows there are for which this condition, in SQL, is true. */
long long rows_where(const char *where);

#endif
