/* Passing a lock on: who gives it back makes it that of the next one in this client's
 * line, by one statement in the place of two. */
#ifndef BL_CLIENT_PASS_H
#define BL_CLIENT_PASS_H

#include "client/contender.h"

/* With the mutex held. Who joins a line hopes that the lock is passed on to it. */
static inline void bl_pass_hope(struct bl_contender *c, struct bl_place *place)
{
	place->who = c;
	place->state = c->bells ? BL_PLACE_HOPES : BL_PLACE_STANDS;
}

/* With the mutex held; c is the first in line, at `place`. Waits while an owner of this
 * client holds the lock and may pass it on. OK: it did, c->hold is HELD and *c->won
 * filled. BL_AGAIN: it is c's turn at the server, or `end` has passed. CANCELLED. */
int bl_pass_await(struct bl_contender *c, struct bl_place *place, bl_time end);

/* The last level of h, busy, to whoever hopes for it. False: it is still to be given
 * back; *ret_repeated: it may have gone all the same, for a reply was lost. Mutex free. */
bool bl_pass_on(struct bl_call *call, struct bl_hold *h, bool *ret_repeated);

#endif
