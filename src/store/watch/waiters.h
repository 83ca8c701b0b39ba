/* The waiters for some keys: waiters at the doorbells, as the process list shows them, and
 * watchers. */
#ifndef BL_STORE_WATCH_WAITERS_H
#define BL_STORE_WATCH_WAITERS_H

#include "store/watch/watched.h"

/* A key, its doorbell, and who watches it. */
struct bl_waited_key {
	const struct bl_key *key;
	char bell[BL_BELL_MAX + 1];
	uint64_t by[BL_SLEEPER_NAMES]; /* connections; 0: none. Not set by the caller */
};

struct bl_waiter {
	const struct bl_waited_key *asked;
	char user[4 * 128 + 1], host[4 * 64 + 1]; /* cut off where they are longer */
	uint64_t connection;
	int64_t waited_ms; /* -1: it watches, or is the first in line */
};

struct bl_waiters {
	struct bl_waiter *all; /* to be freed */
	size_t count, room;
};

/* Reads the waiters of every client that this user may see; the longest wait first. The order of
 * `asked` changes. CONN, DB, NOMEM. */
int bl_waiters_read(struct bl_session *s, struct bl_waited_key *asked, size_t n,
                    struct bl_waiters *ret, struct bl_err *err);

#endif
