/* The holds of a client: a hash table by key and owner. It has no mutex of its own:
 * the client's mutex guards both table and holds. */
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
	BL_HOLD_HELD,      /* the server granted it; it is held until `expires` */
	BL_HOLD_LOST,      /* every call on it answers LOST */
	BL_HOLD_ORPHAN     /* has no owner any more: the janitor removes its row */
};

enum bl_loss {
	BL_LOSS_MOST,   /* max_hold_ms is over */
	BL_LOSS_OVER,   /* the lease is over by our clock: no renewal succeeded in time */
	BL_LOSS_GONE,   /* the server said that the row is gone or another's */
	BL_LOSS_THREAD, /* the thread that held it has ended */
	BL_LOSS_BROKEN  /* a call of this client broke it */
};

enum bl_upkeep {
	BL_UPKEEP_GOOD,   /* it was renewed, or was not due yet */
	BL_UPKEEP_LOCKED, /* another session had locked the row */
	BL_UPKEEP_FAILED  /* why: the renewer has noted it */
};

struct bl_hold {
	struct bl_hold *next;        /* in its bucket */
	struct bl_hold *next_of_key; /* in the bucket of its key */
	bool contends;               /* it is in that bucket */
	uint64_t hash;               /* of key and owner */
	struct bl_key key;
	struct bl_owner owner;
	enum bl_hold_state state;
	enum bl_loss why;        /* LOST: why it is */
	int64_t step_us;         /* LOST: how far the server's clock had stepped, or 0 */
	struct bl_token *thread; /* of an owner that is a thread, else NULL */
	bool busy;               /* a call is working on it; others on the same hold wait */
	bool stays;              /* busy, and renewed nevertheless: see client/state.h */
	enum bl_upkeep upkeep;   /* the result of the last renewal that was due */
	char *words;             /* LOST: the error of the last renewal, or NULL */
	bool renewing;           /* a statement of the renewer with its row is under way */
	atomic_bool fenced;      /* a transaction of the application has locked the row, and may
	                            still have it; the call that fences sets this at any time */
	atomic_bool told;        /* fenced, by bizlock_fence(); else a statement waited in vain */
	bool promised;           /* of a request whose `done` has not been called yet */
	bool untold;             /* in the list of losses that are not reported yet */
	bool gone;               /* out of the table; the list of losses frees it */
	struct bl_link loss;
	bool unsure;     /* ACQUIRING has ended, or ORPHAN: a row of this hold may exist, and
	                    has to be removed */
	bool exported;   /* ORPHAN: it may be exported, so its row may have another owner */
	uint32_t depth;  /* > 0 while HELD or LOST */
	uint32_t stored; /* the depth in the row: less than depth with local re-entry */
	uint32_t lease_ms, flags;
	uint32_t limit;       /* how many may share the lock; 0: any number, or it is not shared */
	uint32_t late_ms;     /* a renewal whose reply was lost may still arrive at the server and
	                         set the lease to this; 0: none */
	uint32_t min_hold_ms; /* a lock that is released earlier rests until then */
	uint64_t fence;
	bl_time began;   /* no later than at the server */
	bl_time expires; /* never later than the lease at the server: too early costs a
	                    renewal, too late breaks exclusion */
	bl_time due;     /* when to renew it, BL_NEVER: not. ORPHAN: when to clean up. LOST: when to
	                    give its doorbell back */
	unsigned tries;  /* ORPHAN: how often it was found fenced */
	bl_time until;   /* the end of max_hold_ms, and so of the hold */
	uint64_t bell;   /* id of the connection that holds the doorbell, 0: none */

	/* How often in a row the lock was handed from owner to owner of this client; since when. */
	unsigned handoffs;
	bl_time run;
};

/* Thousands of owners may wait for one key, each with a hold. So there is a table by key and owner,
 * and one by key that has only the holds that contend. */
struct bl_held {
	struct bl_hold **buckets; /* by key and owner: a power of two of them */
	struct bl_hold **of_keys; /* as many, by key */
	size_t mask, count;
	struct bl_hold *latest; /* found last by bl_held_named(); it may be an orphan by now */
};

bool bl_held_init(struct bl_held *t); /* false: out of memory */
void bl_held_free(struct bl_held *t); /* and every hold; takes an all-zero table */

/* NULL: there is none. Orphans are not found: they belong to nobody. The key's slot does not
 * matter: an owner has a lock exclusively or shares it, not both. */
struct bl_hold *bl_held_find(const struct bl_held *t, const struct bl_key *key,
                             const struct bl_owner *owner);

/* The same by texts that were not checked: a text that equals a checked one needs no check and no
 * copy. If a part of the key is NULL, nothing is found; owner NULL is the calling thread. The hold
 * that was found last is tried first, without a hash. */
struct bl_hold *bl_held_named(struct bl_held *t, bizlock_key key, const char *owner);

/* A new hold, ACQUIRING and otherwise zero. The pair must not be in the table.
 * NULL: out of memory. Holds do not move when the table grows. */
struct bl_hold *bl_held_add(struct bl_held *t, const struct bl_key *key,
                            const struct bl_owner *owner);

void bl_held_take_out(struct bl_held *t, struct bl_hold *h);
void bl_hold_free(struct bl_hold *h);

/* The one way to change h->state. */
void bl_hold_move(struct bl_hold *h, enum bl_hold_state to);

/* From here on h may have a doorbell or a row. */
void bl_held_contends(struct bl_held *t, struct bl_hold *h);

/* The holds of one key, of any owner, that contend or have contended: the first, and the next
 * after h. */
struct bl_hold *bl_held_of_key(const struct bl_held *t, const struct bl_key *key);
struct bl_hold *bl_held_next_of_key(const struct bl_hold *h);

/* Whether a hold of the key has its doorbell on connection `conn`. On that connection the server
 * would grant the doorbell once more (GET_LOCK counts), also for another owner. */
bool bl_held_has_bell(const struct bl_held *t, const struct bl_key *key, uint64_t conn);

/* The hold with this fence, or NULL. */
struct bl_hold *bl_held_with_fence(const struct bl_held *t, const struct bl_key *key,
                                   uint64_t fence);

/* For walking: the hold that follows prev, NULL: none. prev NULL: the first. */
struct bl_hold *bl_held_walk(const struct bl_held *t, const struct bl_hold *prev);

#endif
