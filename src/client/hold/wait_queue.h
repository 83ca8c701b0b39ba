/* Wait queues: threads and requests of this client that want one key, in order of arrival. The
 * first goes to the server. So do sharers without a limit that the first, one of them, takes along,
 * and places whose hand-off may have left a row. Guarded by the client's mutex. */
#ifndef BL_CLIENT_HOLD_WAIT_QUEUE_H
#define BL_CLIENT_HOLD_WAIT_QUEUE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/list.h"
#include "core/key.h"

#define BL_QUEUES 1024 /* buckets: requests may wait for thousands of keys */

enum bl_place_state {
	BL_PLACE_WAITS,   /* the lock may be handed over to it: handoff.h */
	BL_PLACE_OFFERED, /* the hand-off is under way, and cannot be called off */
	BL_PLACE_HOLDS,   /* the hand-off is done */
	BL_PLACE_ASKS     /* it asks the server itself */
};

struct bl_contest;

struct bl_place { /* lives on the stack of its thread, or in its request */
	struct bl_link link;
	const struct bl_key *key;
	pthread_cond_t first; /* signalled when this place becomes the first; while it is, when
	                         its state changes or a hold of the key ends */
	void (*woken)(struct bl_place *); /* a request's: called instead; else NULL */
	enum bl_place_state state;
	bool alone; /* `whose` wants the lock alone: see bl_queue.alone */
	bool along; /* it goes to the server together with the first */
	bool aside; /* a slot is being handed over to it: for the others it has left */
	struct bl_contest *whose;
};

struct bl_queue {
	struct bl_queue *next; /* in its bucket */
	struct bl_list places; /* all of one key */
	unsigned alone;        /* places of those that want the lock alone: no sharer passes them */
	char *holder; /* the holder that the first place saw last, for the messages of the others;
	                 or NULL */
};

struct bl_queues {
	struct bl_queue *buckets[BL_QUEUES];
};

/* Joins the queue of place->key, at its end, and makes it if there is none.
 * NULL: out of memory. Every join needs a leave. */
struct bl_queue *bl_queue_join(struct bl_queues *queues, struct bl_place *place);

/* NULL: nobody waits for that key. */
struct bl_queue *bl_queue_find(const struct bl_queues *queues, const struct bl_key *key);

/* Notes the holder that the first place has seen. Without memory nothing is noted. */
void bl_queue_note(struct bl_queue *queue, const char *holder);

/* Wakes the thread or request of a place. */
void bl_place_wake(struct bl_place *place);

/* Wakes the first in the queue of `key`, if there is one: it looks again. */
void bl_queue_wake_first(const struct bl_queues *queues, const struct bl_key *key);

/* first: the first place that is not aside, or NULL. next: the place behind this one, or NULL. */
struct bl_place *bl_queue_first(const struct bl_queue *queue);
struct bl_place *bl_place_next(const struct bl_place *place);

/* Leaves from wherever in the queue; the next first one is signalled. Frees the
 * queue with its last place. */
void bl_queue_leave(struct bl_queues *queues, struct bl_queue *queue, struct bl_place *place);

#endif
