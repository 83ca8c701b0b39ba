/* One hold: how calls take it and let go of it, how it is confirmed, lost, and given up.
 * Functions are entered with the mutex held, and keep it, unless they say otherwise. */
#ifndef BL_CLIENT_HOLD_HOLD_H
#define BL_CLIENT_HOLD_HOLD_H

#include "client/state.h"

/* Finds the hold of this call's owner and makes it busy, when no other thread's call is at
 * work on it any more; may wait for that. NULL: there is none, or none yet, because another
 * call of this owner only waits for the key; or *ret_rc says why the wait ended: TIMEOUT,
 * and CANCELLED for a call that has time left. */
struct bl_hold *bl_hold_begin(struct bl_call *call, int *ret_rc);
void bl_hold_done(struct bizlock *b, struct bl_hold *h);

/* The same for a call that cannot do without: NOT_OWNER where there is none. */
struct bl_hold *bl_hold_begin_held(struct bl_call *call, int *ret_rc);

/* Instead of done: it is no more; or it is the janitor's to clean up. unsure: its row may be
 * there, and has to go. */
void bl_hold_drop(struct bizlock *b, struct bl_hold *h);
void bl_hold_orphan(struct bizlock *b, struct bl_hold *h, bool unsure);

/* HELD becomes LOST, to be told soon. */
void bl_hold_lose(struct bizlock *b, struct bl_hold *h, enum bl_loss why);

/* The server has said that the lease lasts lease_ms from `sent` on, at least. */
void bl_hold_confirm(struct bizlock *b, struct bl_hold *h, bl_time sent, uint32_t lease_ms);

/* An ACQUIRING one is held from here on: the statement that took it was about to be sent at
 * `sent`. And what its acquisition grants. */
void bl_hold_settle(struct bizlock *b, struct bl_hold *h, uint64_t fence, bl_time sent,
                    const struct bl_request *request);
void bl_hold_grant(const struct bl_hold *h, uint32_t lease_ms, bool took_over, bizlock_grant *ret);

/* This call leaves the busy hold what it is, or makes it last longer: it is renewed
 * meanwhile, because such a call may wait for the network longer than the lease lasts. */
void bl_hold_let_renew(struct bizlock *b, struct bl_hold *h);

int64_t bl_hold_left_ms(const struct bl_hold *h);
int64_t bl_hold_rest_us(const struct bl_hold *h); /* how long to rest after it began, 0: not */
struct bl_ref bl_hold_ref(const struct bl_call *call, const struct bl_hold *h);

/* Did its acquisition come to no end that anybody knows of? Then a row may be there. */
static inline bool bl_hold_unknown(const struct bl_hold *h)
{
	return h->state == BL_HOLD_ORPHAN && h->unsure && h->fence == 0;
}

/* The fence of a row of the same owner and key that is not this hold's, but what a thread
 * with the same number left when it ended; or 0. */
uint64_t bl_hold_twin(const struct bizlock *b, const struct bl_hold *h);

/* Both set the error and return it. lost: also marks the hold, and names who has the lock
 * now: it asks the server, and lets go of the mutex for that. */
int bl_hold_lost(struct bl_call *call, struct bl_hold *h);
int bl_hold_none(struct bl_call *call);

#endif
