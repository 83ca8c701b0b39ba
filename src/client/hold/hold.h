/* One hold: how calls take it and let go of it, how it is confirmed, lost, and given up.
 * Functions are entered with the mutex held, and keep it, unless they say otherwise. */
#ifndef BL_CLIENT_HOLD_HOLD_H
#define BL_CLIENT_HOLD_HOLD_H

#include "client/state.h"

/* Sets the slot of the call's key to that of this hold. */
void bl_call_follow(struct bl_call *call, const struct bl_hold *h);

/* Finds the hold of this call's owner and makes it busy; waits while another call is at work
 * on it. NULL with OK: there is none, or none yet, because another call of this owner waits
 * for the key. NULL with an error: why this wait ended, TIMEOUT, or CANCELLED for a call that
 * has time left. */
struct bl_hold *bl_hold_begin(struct bl_call *call, int *ret_rc);
void bl_hold_done(struct bizlock *b, struct bl_hold *h);

/* The same without a wait. NULL with *ret_busy: another call is at work on it. */
struct bl_hold *bl_hold_begin_now(struct bl_call *call, bool *ret_busy);

/* The same as begin for a call that needs a hold: NOT_OWNER where there is none. */
struct bl_hold *bl_hold_begin_held(struct bl_call *call, int *ret_rc);

/* Instead of done. remove: the hold ends. orphan: the janitor is to clean up; unsure: the row
 * may be there, and has to go. */
void bl_hold_remove(struct bizlock *b, struct bl_hold *h);
void bl_hold_orphan(struct bizlock *b, struct bl_hold *h, bool unsure);

/* HELD becomes LOST; the loss watch tells the user soon. If a request acquired the hold, the user
 * is told after the request's done(). */
void bl_hold_lose(struct bizlock *b, struct bl_hold *h, enum bl_loss why);

/* The server has said that the lease lasts lease_ms from `sent` on, at least. */
void bl_hold_confirm(struct bizlock *b, struct bl_hold *h, bl_time sent, uint32_t lease_ms);

/* The lease, in ms, if it begins anew now: lease_ms, or what is left of max_hold_ms. 0: that is
 * over. */
uint32_t bl_hold_lease_now(const struct bl_hold *h, uint32_t lease_ms);

/* A shorter lease was sent, and nobody knows whether it arrived. It may still arrive after a
 * renewal by the longer lease: so from now on the shorter lease is renewed, at once. */
void bl_hold_shorten(struct bizlock *b, struct bl_hold *h, uint32_t lease_ms);

/* A call's renewal got no reply, and was sent again. If the lost connection cannot be ended for
 * now, because it led to another host, the first renewal may arrive after a longer lease, and
 * shorten that. */
void bl_hold_late_renewal(struct bizlock *b, struct bl_hold *h, uint32_t lease_ms);

/* The shortest lease, in us, that may be in force instead of a lease of `us`: a late renewal may
 * have shortened it. */
int64_t bl_hold_sure_us(const struct bizlock *b, struct bl_hold *h, int64_t us);

/* An ACQUIRING hold becomes HELD. sent: when the statement that took it was about to be sent. */
void bl_hold_settle(struct bizlock *b, struct bl_hold *h, uint64_t fence, bl_time sent,
                    const struct bl_request *request);

/* demand: a deeper level was granted. Where it and the hold ask for different things, the stronger
 * wish counts until the last level is released: to be renewed, the later end of min_hold_ms, the
 * earlier of max_hold_ms. grant: fills *ret with what an acquisition of the hold grants. */
void bl_hold_demand(struct bizlock *b, struct bl_hold *h, const struct bl_request *request);
void bl_hold_grant(const struct bl_hold *h, uint32_t lease_ms, bool took_over, bizlock_grant *ret);

/* The call neither shortens the lease of the busy hold nor gives the hold away. So the renewer
 * renews it meanwhile: the call may wait for the network longer than the lease lasts. */
void bl_hold_let_renew(struct bizlock *b, struct bl_hold *h);

int64_t bl_hold_left_ms(const struct bl_hold *h);
int64_t bl_hold_rest_us(const struct bl_hold *h); /* how long to rest after it began, 0: not */

/* The lease, in ms, to write when one of lease_ms begins anew: it must not shorten the rest. See
 * bl_request_row_ms(). */
uint32_t bl_hold_row_ms(const struct bl_hold *h, uint32_t lease_ms);
struct bl_ref bl_hold_ref(struct bl_call *call, const struct bl_hold *h);

/* Did its acquisition end without a known outcome? Then a row may be there. */
static inline bool bl_hold_unknown(const struct bl_hold *h)
{
	return h->state == BL_HOLD_ORPHAN && h->unsure && h->fence == 0;
}

/* The fence that a sweep has to spare: that of a hold which an ended thread with the same number
 * has left. Without such a hold, a fence that no row has. */
uint64_t bl_hold_sweep_fence(const struct bizlock *b, const struct bl_hold *hold);

/* Both set the error and return it. lost: also makes a HELD hold LOST, and names who has the lock
 * now; for that it asks the server, with the mutex free. */
int bl_hold_lost(struct bl_call *call, struct bl_hold *h);
int bl_hold_none(struct bl_call *call);

/* OK: the last renewal went well, or none was due. Else the error is why not. */
int bl_hold_upkeep(struct bl_call *call, struct bl_hold *h);

#endif
