/* Hand-offs: a release gives the lock to the next thread of this client that waits for it. One
 * statement does the work of two: of a release and an acquisition. */
#ifndef BL_CLIENT_CONTEST_HANDOFF_H
#define BL_CLIENT_CONTEST_HANDOFF_H

#include "client/contest/contest.h"

/* c is the first in its queue, or aside. OK: the lock was handed over to it: the hold
 * is HELD and c->handed_over set. BL_PARKED: an owner of this client holds the lock and may hand it
 * over. BL_AGAIN: it is c's turn at the server, or its patience is over. CANCELLED. */
int bl_handoff_hope(struct bl_contest *c);

/* Hands h, which is busy and at its last level, over to the next waiter, if there is one. false: h
 * is still to be given back. *ret_repeated: its row may be gone already, because a reply was
 * lost. */
bool bl_handoff(struct bl_call *call, struct bl_hold *h, bool *ret_repeated);

#endif
