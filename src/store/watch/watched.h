/* Watching: one connection sleeps for many waiters. It has a named lock for each key that it
 * watches. A release of the key finds the connection by that name, and wakes it by KILL QUERY,
 * which ends a statement and nothing else. Then the connection looks at all its keys by one
 * statement. */
#ifndef BL_STORE_WATCH_WATCHED_H
#define BL_STORE_WATCH_WATCHED_H

#include "core/key.h"
#include "store/bell/sleepers.h"

/* One connection watches at most this many keys. A look at all of them goes by fences, and costs
 * the server a microsecond or two for each key; a look by key costs nine. */
#define BL_WATCH_MAX 4096

/* One key, as a connection watches it. */
struct bl_watched {
	const struct bl_key *key;
	char bell[BL_BELL_MAX + 1];
	bool named;     /* the connection has a name for it */
	uint64_t fence; /* of its row, by the last look by key; 0: the next look goes by key */

	/* `among`: a shared lock, which may have many rows. The watcher asks whether anything is in
	 * the way: the doorbell, or, for a waiter that has the doorbell (`first` in line), the rows
	 * of others. `fence` is then a flag, 0 or 1. */
	bool among;
	bool first;
	bool exclusive; /* as in struct bl_wish */
	uint32_t limit;

	/* BY THE LAST LOOK */
	bool seen;       /* the last look was by key, and tells: */
	bool passed;     /* another hold has the lock than at the look before */
	int64_t left_us; /* of its lease; <= 0: over, or there is no row. `among`: 1 if something is
	                    in the way, else 0 */
};

/* Takes names for keys that are not `named`, as far as any are left. It may be repeated. */
int bl_watch_take_names(struct bl_session *s, struct bl_watched **watched, size_t n,
                        struct bl_err *err);

/* Gives back the names of all keys but the first `kept`, unless one of these has the same name. */
int bl_watch_free_names(struct bl_session *s, struct bl_watched **watched, size_t kept, size_t n,
                        struct bl_err *err);

/* Runs s->text, a query of `columns` columns; again if a release has killed it. */
int bl_watch_ask(struct bl_session *s, unsigned columns, struct bl_rows **ret, struct bl_err *err);

/* Looks by key at keys without a fence. all: also at keys whose fence is gone (released, taken
 * over, or handed over), and at all shared locks. The order of `watched` changes. */
int bl_watch_look(struct bl_session *s, struct bl_watched **watched, size_t n, bool all,
                  struct bl_err *err);

enum bl_watch_end {
	BL_WATCH_OVER, /* the time is over, or the session got BL_SLEEP_LOCK before that, for its
	                  next sleep */
	BL_WATCH_WOKEN,
	BL_WATCH_CHANGED /* one of the fences was gone already: it did not sleep */
};

/* Sends a statement that sleeps, unless one of the fences is gone, or nothing is in the way of a
 * shared lock. All keys must have been looked at. The look and the sleep are one statement, lest a
 * release come between them. bl_watch_awake() waits for the answer, and reads it. Errors of all
 * these: CONN, DB, NOMEM. */
int bl_watch_sleep(struct bl_session *s, struct bl_watched **watched, size_t n, int64_t ms,
                   struct bl_err *err);
int bl_watch_awake(struct bl_session *s, enum bl_watch_end *ret, struct bl_err *err);

#endif
