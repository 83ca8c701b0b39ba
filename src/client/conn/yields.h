/* Yields: keep waits that are watched from being passed by other waiters for ever.
 *
 * Yielding: after a release that has woken a watcher of another client, this client lets that
 * watcher go first. A watcher needs a moment to look and to try, and a thread of this client would
 * always be faster.
 *
 * Hot keys: keys that others took while this client watched them. A watcher is too slow for them; a
 * doorbell serves all in order of arrival. So waits for hot keys come first when few connections
 * are left to sleep at doorbells: otherwise waits for keys that nobody gives back would have those
 * connections. */
#ifndef BL_CLIENT_CONN_YIELDS_H
#define BL_CLIENT_CONN_YIELDS_H

#include "base/clock.h"
#include "core/key.h"

/* Two keys may share a place by chance: then a contender for one waits in vain, or a watcher of the
 * other is not let go first. */
#define BL_YIELDS 64

struct bl_yields { /* guarded by the client's mutex */
	struct bl_yield {
		uint64_t hash;
		bl_time until;
	} all[BL_YIELDS], hot[BL_YIELDS];
};

void bl_yields_note(struct bl_yields *y, const struct bl_key *key);

/* Until when a contender of this client should wait before it tries; 0: it need not. */
bl_time bl_yields_until(const struct bl_yields *y, const struct bl_key *key);

void bl_yields_note_hot(struct bl_yields *y, const struct bl_key *key);
bool bl_yields_is_hot(const struct bl_yields *y, const struct bl_key *key);

#endif
