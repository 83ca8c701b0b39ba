/* What the calls on a hold share. */
#ifndef BL_CLIENT_HOLD_H
#define BL_CLIENT_HOLD_H

#include "client/retry.h"

/* With the mutex held. Finds the hold of this call's owner and marks it busy,
 * when no other thread's call is at work on it any more: then its fields are
 * this call's to read, and to write with the mutex held. NULL: there is none, or
 * none yet, for another call of this owner is only waiting for the key; or *ret_rc
 * says why the wait ended: TIMEOUT, and CANCELLED for a call that has time left. */
struct bl_hold *bl_hold_begin(struct bl_call *call, int *ret_rc);
void bl_hold_done(struct bizlock *b, struct bl_hold *h);

/* Instead of done: it is no more; or it is the janitor's to clean up. unsure: its
 * row may be there, and has to go. */
void bl_hold_drop(struct bizlock *b, struct bl_hold *h);
void bl_hold_litter(struct bizlock *b, struct bl_hold *h, bool unsure);

/* With the mutex held: the server has said that the lease lasts lease_ms from
 * `sent` on, at least. */
void bl_hold_confirm(struct bizlock *b, struct bl_hold *h, bl_time sent, uint32_t lease_ms);

/* The same with the mutex free; false: it was lost meanwhile, and stays so. */
bool bl_hold_confirmed(struct bl_call *call, struct bl_hold *h, bl_time sent, uint32_t lease_ms);

int64_t bl_hold_left_ms(const struct bl_hold *h);                 /* with the mutex held */
bool bl_hold_held(struct bl_call *call, const struct bl_hold *h); /* mutex free: not LOST yet */

/* The same for a call that leaves the hold what it is, or makes it last longer: then it is renewed
 * meanwhile, for such a call may wait for the network longer than the lease lasts. */
bool bl_hold_stays(struct bl_call *call, struct bl_hold *h);
int64_t bl_hold_rest_us(const struct bl_hold *h); /* how long to rest after it began, 0: not */
struct bl_ref bl_hold_ref(const struct bl_call *call, const struct bl_hold *h);

/* Gives one level back at the server; the hold is busy, and stays so until, with the
 * mutex held, the end: it goes with its last level, or is cleaned up later. */
int bl_release_level(struct bl_call *call, struct bl_hold *h);
void bl_release_end(struct bizlock *b, struct bl_hold *h, bool last, int rc);

/* With the mutex held: did its acquisition come to no end that anybody knows of? Then a
 * row may be there. */
static inline bool bl_hold_unknown(const struct bl_hold *h)
{
	return h->state == BL_HOLD_LITTER && h->unsure && h->fence == 0;
}

/* With the mutex held: the fence of a row of the same owner and key that is not
 * this hold's, but what a thread with the same number left when it ended; or 0. */
uint64_t bl_hold_twin(const struct bizlock *b, const struct bl_hold *h);

/* Both set the error and return it. lost, with the mutex free, also marks the
 * hold and names who has the lock now. */
int bl_hold_lost(struct bl_call *call, struct bl_hold *h);
int bl_hold_none(struct bl_call *call);

#endif
