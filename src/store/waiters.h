/* The waiters at the doorbells, as the process list shows them. */
#ifndef BL_STORE_WAITERS_H
#define BL_STORE_WAITERS_H

#include "store/session.h"

struct bl_waiter {
	char bell[BL_BELL_MAX + 1];
	char user[4 * 128 + 1], host[4 * 64 + 1]; /* cut off where they are longer */
	uint64_t connection;
	int64_t waited_ms;
};

struct bl_waiters {
	struct bl_waiter *all; /* to be freed */
	size_t count;
};

/* Of every client, database and prefix that this user may see; the longest wait first.
 * CONN, DB, NOMEM. */
int bl_waiters_read(struct bl_session *s, struct bl_waiters *ret, struct bl_err *err);

#endif
