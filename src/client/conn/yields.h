/* What keeps those that watch from being late for ever.
 *
 * Courtesy: a release that has woken a watcher of another client lets it go first. The watcher
 * needs a moment to look and to try, and a thread of the client that released would always be
 * there before it.
 *
 * Hot keys: those that others took while this client watched them. For them a watcher is too slow;
 * their waits come first where few connections are left to sleep at doorbells, which serve all in
 * order of arrival. Waits for keys that nobody gives back would have those connections else. */
#ifndef BL_CLIENT_CONN_YIELDS_H
#define BL_CLIENT_CONN_YIELDS_H

#include "base/clock.h"
#include "core/key.h"

/* Keys share a place by chance: then one of them waits for nothing, or is not let go first. */
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
