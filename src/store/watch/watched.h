/* Watching: one connection stands for many waiters. For each key that it watches it has a named
 * lock, by which whoever gives back the doorbell of that key finds it, and it sleeps. It is woken
 * by KILL QUERY, which ends a statement and nothing else, and looks at all its keys by one
 * statement. */
#ifndef BL_STORE_WATCH_WATCHED_H
#define BL_STORE_WATCH_WATCHED_H

#include "core/key.h"
#include "store/bell/sleepers.h"

/* One connection watches as many keys. The server needs a microsecond or two for each in a look at
 * all of them, which goes by fences, and nine for one that is looked for by its key. */
#define BL_WATCH_MAX 4096

/* One key, as a connection watches it. */
struct bl_watched {
	const struct bl_key *key;
	char bell[BL_BELL_MAX + 1];
	bool named;     /* the connection has a name for it */
	uint64_t fence; /* of its row, by the last look by key; 0: the next look goes by key */

	/* Among those that share the lock, which may have many rows, it is watched whether anything
	 * is in the way: the doorbell, or if it has that itself (`first` in line), others' rows.
	 * Its fence is a mark, 0 or 1. */
	bool among;
	bool first;
	bool exclusive; /* as in struct bl_wish */
	uint32_t limit;

	/* BY THE LAST LOOK */
	bool seen;       /* by key: */
	bool passed;     /* another hold has the lock than by the look before */
	int64_t left_us; /* of its lease; <= 0: over, or there is no row. Among those that share it
	                    only whether something is in the way */
};

/* Takes names for those that are not `named`, as far as there are any left. It may be repeated. */
int bl_watch_take_names(struct bl_session *s, struct bl_watched **watched, size_t n,
                        struct bl_err *err);

/* Gives back those of all but the first `kept`, unless one of these has the same. */
int bl_watch_free_names(struct bl_session *s, struct bl_watched **watched, size_t kept, size_t n,
                        struct bl_err *err);

/* Runs s->text, which asks for so many columns, until nobody has ended it. */
int bl_watch_ask(struct bl_session *s, unsigned columns, struct bl_rows **ret, struct bl_err *err);

/* By key looks at those without a fence, and (all) at those whose fence is gone: released, taken
 * over, or handed over; and (all) at all shared locks. The order of `watched` changes. */
int bl_watch_look(struct bl_session *s, struct bl_watched **watched, size_t n, bool all,
                  struct bl_err *err);

enum bl_watch_end {
	BL_WATCH_OVER, /* the time is over, or not quite: it sleeps in another way next time */
	BL_WATCH_WOKEN,
	BL_WATCH_CHANGED /* one of the fences was gone already: it did not sleep */
};

/* Sends a statement that sleeps, unless one of the fences is gone, or nothing is in the way of a
 * shared lock; all have been looked at. That is one statement, lest a release come between the look
 * and the sleep. bl_watch_awake() reads its answer, and waits for it. Errors of all these: CONN,
 * DB, NOMEM. */
int bl_watch_sleep(struct bl_session *s, struct bl_watched **watched, size_t n, int64_t ms,
                   struct bl_err *err);
int bl_watch_awake(struct bl_session *s, enum bl_watch_end *ret, struct bl_err *err);

#endif
