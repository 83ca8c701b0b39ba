/* What this client holds: a hash table of holds by key and owner. Not locked:
 * the client's mutex guards table and holds alike. */
#ifndef BL_CORE_HELD_H
#define BL_CORE_HELD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/list.h"
#include "core/key.h"
#include "core/owner.h"

/*             acquire              row is ours
 *   (none) -----------> ACQUIRING -------------> HELD ---> LOST
 *     ^                  |  |                     | |       | last release, or
 *     |     not obtained |  | nobody knows        | |       | its thread ended
 *     +------------------+  +------> ORPHAN <-----|-+-------+
 *     |                                |          | last release
 *     +--------------------------------+----------+
 *
 * bl_hold_move() makes these moves, and no other. */
enum bl_hold_state {
	BL_HOLD_ACQUIRING, /* no row yet, as far as we know */
	BL_HOLD_HELD,      /* the server said so; judge by `expires` */
	BL_HOLD_LOST,      /* it is over; every call answers LOST */
	BL_HOLD_ORPHAN     /* nobody's any more: the janitor cleans up at the server */
};

enum bl_loss {
	BL_LOSS_MOST,   /* it was held for max_hold_ms */
	BL_LOSS_OVER,   /* the lease is over by our clock: nothing confirmed it in time */
	BL_LOSS_GONE,   /* the server said so */
	BL_LOSS_THREAD, /* the thread that held it has ended */
	BL_LOSS_BROKEN  /* by a call of this client */
};

enum bl_upkeep {
	BL_UPKEEP_GOOD,   /* it was renewed, or was not due yet */
	BL_UPKEEP_LOCKED, /* somebody had locked the row */
	BL_UPKEEP_FAILED  /* the renewer noted why */
};

struct bl_hold {
	struct bl_hold *next;        /* in its bucket */
	struct bl_hold *next_of_key; /* in the bucket of its key, */
	bool contends;               /* once it is there */
	uint64_t hash;               /* of key and owner */
	struct bl_key key;
	struct bl_owner owner;
	enum bl_hold_state state;
	enum bl_loss why;        /* LOST */
	int64_t step_us;         /* LOST: how far the server's clock was found set, or 0 */
	struct bl_token *thread; /* of an owner that is a thread, else NULL */
	bool busy;               /* a call is working on it; others on the same hold wait */
	bool stays;              /* busy, and renewed nevertheless: see client/state.h */
	enum bl_upkeep upkeep;   /* how it went when it was to be renewed the last time */
	char *words;             /* LOST: what kept it from being renewed, or NULL */
	bool renewing;           /* its row is in a statement of the renewer's: see there */
	atomic_bool fenced;      /* a transaction of the application's has locked the row, and may
	                            have it still; set at any time, by the call that fences */
	atomic_bool told;        /* that call told us so; else a statement waited in vain */
	bool promised;           /* a request's, whose `done` has not been called yet */
	bool untold;             /* it is in the line of losses that nobody was told of yet */
	bool gone;               /* it has left the table, and that line frees it */
	struct bl_link loss;
	bool unsure;     /* ACQUIRING, at its end: a row of ours may be there.
	                    ORPHAN: the row may be there, and has to go */
	bool exported;   /* ORPHAN: it may be exported, so its row may have another owner */
	uint32_t depth;  /* > 0 while HELD or LOST */
	uint32_t stored; /* the depth the row has: less than depth with local re-entry */
	uint32_t lease_ms, flags;
	uint32_t limit;       /* how many may share the lock; 0: any number, or it is not shared */
	uint32_t late_ms;     /* a call's renewal whose reply was lost may yet arrive and set the
	                         lease to this, 0: none */
	uint32_t min_hold_ms; /* released earlier, the lock rests until then */
	uint64_t fence;
	bl_time began;   /* no later than at the server */
	bl_time expires; /* never later than the server's: too early costs a
	                    renewal, too late breaks exclusion */
	bl_time due;     /* when to renew it, BL_NEVER: not. ORPHAN: when to clean up. LOST: when to
	                    give its doorbell back */
	unsigned tries;  /* ORPHAN: how often it was found fenced */
	bl_time until;   /* max_hold_ms is over then, and with it the hold */
	uint64_t bell;   /* id of the connection that holds the doorbell, 0: none */

	/* How often in a row it was handed from owner to owner of this client; since when. */
	unsigned handoffs;
	bl_time run;
};

/* Thousands may wait for one key, each with a hold. So a hold is found by its key and owner; and
 * by the key alone only when it has gone to the server. */
struct bl_held {
	struct bl_hold **buckets; /* by key and owner: a power of two of them */
	struct bl_hold **of_keys; /* as many, by key */
	size_t mask, count;
	struct bl_hold *latest; /* what bl_held_named() found last; it may be an orphan by now */
};

bool bl_held_init(struct bl_held *t); /* false: out of memory */
void bl_held_free(struct bl_held *t); /* and every hold; takes an all-zero table */

/* NULL: there is none. An orphan is not found: it belongs to nobody. An owner has a lock
 * alone, or shares it, not both. */
struct bl_hold *bl_held_find(const struct bl_held *t, const struct bl_key *key,
                             const struct bl_owner *owner);

/* The same by unchecked texts: one that equals a checked text needs no check and no copy. A part of
 * the key that is NULL finds nothing; owner NULL is the calling thread. The hold that was found
 * last is tried first, without a hash. */
struct bl_hold *bl_held_named(struct bl_held *t, bizlock_key key, const char *owner);

/* A new hold, ACQUIRING and otherwise zero. The pair must not be in the table.
 * NULL: out of memory. Holds do not move when the table grows. */
struct bl_hold *bl_held_add(struct bl_held *t, const struct bl_key *key,
                            const struct bl_owner *owner);

void bl_held_take_out(struct bl_held *t, struct bl_hold *h);
void bl_hold_free(struct bl_hold *h);

/* The one way to change h->state. */
void bl_hold_move(struct bl_hold *h, enum bl_hold_state to);

/* From here on it may have a doorbell or a row. */
void bl_held_contends(struct bl_held *t, struct bl_hold *h);

/* Of those that contend, or have contended, the holds of one key, whoever owns them: first, then
 * the next after h. */
struct bl_hold *bl_held_of_key(const struct bl_held *t, const struct bl_key *key);
struct bl_hold *bl_held_next_of_key(const struct bl_hold *h);

/* Whether one of them has its doorbell on connection `conn`. The server would give that
 * connection the doorbell once more (GET_LOCK counts), and so to another owner as well. */
bool bl_held_has_bell(const struct bl_held *t, const struct bl_key *key, uint64_t conn);

/* The hold with this fence, or NULL. */
struct bl_hold *bl_held_with_fence(const struct bl_held *t, const struct bl_key *key,
                                   uint64_t fence);

/* For walking: the hold that follows prev, NULL: none. prev NULL: the first. */
struct bl_hold *bl_held_walk(const struct bl_held *t, const struct bl_hold *prev);

#endif
