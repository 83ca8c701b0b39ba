/* What this client holds: a hash table of holds by key and owner. Not locked:
 * the client's mutex guards table and holds alike. */
#ifndef BL_CORE_HELD_H
#define BL_CORE_HELD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "core/key.h"
#include "core/owner.h"

/*             acquire              row is ours
 *   (none) -----------> ACQUIRING -------------> HELD ---> LOST
 *     ^                     | not obtained         | last release  |
 *     +---------------------+----------------------+---------------+
 */
enum bl_hold_state {
	BL_HOLD_ACQUIRING, /* no row yet, as far as we know */
	BL_HOLD_HELD,      /* the server said so; judge by `expires` */
	BL_HOLD_LOST       /* the server said it is over; every call answers LOST */
};

struct bl_hold {
	struct bl_hold *next; /* in its bucket */
	struct bl_key key;
	struct bl_owner owner;
	enum bl_hold_state state;
	bool busy;       /* a call is working on it; others on the same hold wait */
	uint32_t depth;  /* > 0 while HELD or LOST */
	uint32_t stored; /* the depth the row has: less than depth with local re-entry */
	uint32_t lease_ms, flags;
	uint64_t fence;
	bl_time expires; /* never later than the server's: too early costs a
	                    renewal, too late breaks exclusion */
	uint64_t bell;   /* id of the connection that holds the doorbell, 0: none */
};

struct bl_held {
	struct bl_hold **buckets; /* a power of two of them */
	size_t mask, count;
};

bool bl_held_init(struct bl_held *t); /* false: out of memory */
void bl_held_free(struct bl_held *t); /* and every hold; takes an all-zero table */

struct bl_hold *bl_held_find(const struct bl_held *t, const struct bl_key *key,
                             const struct bl_owner *owner);

/* A new hold, ACQUIRING and otherwise zero. The pair must not be there.
 * NULL: out of memory. Holds do not move when the table grows. */
struct bl_hold *bl_held_add(struct bl_held *t, const struct bl_key *key,
                            const struct bl_owner *owner);

void bl_held_remove(struct bl_held *t, struct bl_hold *h); /* and frees it */

/* The holds of one key, whoever owns them: first, then the next after h. */
struct bl_hold *bl_held_of_key(const struct bl_held *t, const struct bl_key *key);
struct bl_hold *bl_held_next_of_key(const struct bl_hold *h);

/* Any hold, or NULL: for walking, pass the previous one, NULL at first. */
struct bl_hold *bl_held_walk(const struct bl_held *t, const struct bl_hold *prev);

#endif
