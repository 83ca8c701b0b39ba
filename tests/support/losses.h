/* The losses that bizlock_on_lost() told, in their order. */
#ifndef TEST_LOSSES_H
#define TEST_LOSSES_H

#include <bizlock.h>
#include <stdatomic.h>
#include <stdint.h>

#define LOSSES_MAX 64

struct losses {
	atomic_uint count; /* losses that are complete in the list */
	atomic_int inside; /* calls that run now: 0 or 1 */
	struct loss {
		char id[BIZLOCK_ID_MAX + 1];
		uint64_t fence;
		int64_t at; /* of now_ms() */
	} list[LOSSES_MAX];
};

/* All zero at first. It must live as long as the client. */
void losses_watch(struct losses *l, bizlock *b);

#endif
