/* Handing a lock over: its holder, instead of giving it back, makes it that of the next one in
 * this client's wait queue, by one statement in the place of two. */
#ifndef BL_CLIENT_LOCK_HANDOFF_H
#define BL_CLIENT_LOCK_HANDOFF_H

#include "client/lock/contest.h"

/* c is the first in its queue, at `place`. Waits while an owner of this client holds the lock
 * and may hand it over. OK: it did: the hold is HELD and c->handed_over set. BL_AGAIN: it is
 * c's turn at the server, or its patience is over. CANCELLED. */
int bl_handoff_await(struct bl_contest *c, struct bl_place *place);

/* The last level of h, busy, to the next one, if that waits for it. False: it is still to be
 * given back; *ret_repeated: though it may be gone, because a reply was lost. */
bool bl_handoff(struct bl_call *call, struct bl_hold *h, bool *ret_repeated);

#endif
