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

/* Threads of one client wait for its only slot, and hand it on, RUN times in a row at the most. The
 * first of them is at the server already, and behind it a stranger of another client. */
enum { LINE = 24, RUN = 1 + 16 /* one that was at the server, and hand-offs */ };

struct long_line {
	bizlock *b;
	struct call calls[LINE], stranger;
	char owners[LINE][8];
	bool released[LINE];
	uint64_t fence; /* of the one that has given it back last */
};

/* They wait, and the slot has been given back. The stranger, "o", wants the lock in this way. */
void long_line_begin(struct long_line *l, bizlock *b, bizlock *other, uint32_t flags,
                     uint32_t limit);

/* The next one that has the lock, in whichever order, gives it back. False: the stranger has it.
 * has_left: the stranger does not count any more. */
bool long_line_goes_on(struct long_line *l, bool has_left);

/* How many rows there are for which this condition, in SQL, is true. */
long long rows_where(const char *where);

#endif
