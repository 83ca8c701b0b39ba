/* One hold: how calls take it and let go of it, how it is confirmed, lost, and given up.
 * Functions are entered with the mutex held, and keep it, unless they say otherwise. */
#ifndef BL_CLIENT_HOLD_HOLD_H
#define BL_CLIENT_HOLD_HOLD_H

#include "client/state.h"

/* The call is on this hold, and names its slot. */
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

/* HELD becomes LOST; the loss watch tells the user soon. Of a request's, that is behind its
 * done(). */
void bl_hold_lose(struct bizlock *b, struct bl_hold *h, enum bl_loss why);

/* The server has said that the lease lasts lease_ms from `sent` on, at least. */
void bl_hold_confirm(struct bizlock *b, struct bl_hold *h, bl_time sent, uint32_t lease_ms);

/* How long the lease is if it begins anew now: lease_ms, but it ends with max_hold_ms. 0: that is
 * over. */
uint32_t bl_hold_lease_now(const struct bl_hold *h, uint32_t lease_ms);

/* A shorter lease was sent, and nobody knows whether it arrived. It may still arrive, behind a
 * renewal by the longer one: so from now on the shorter one is renewed, at once. */
void bl_hold_shorten(struct bizlock *b, struct bl_hold *h, uint32_t lease_ms);

/* A call's renewal got no reply, and was sent again. If its connection cannot be ended for now,
 * because it led to another host, it may arrive after a longer lease, and shorten that. */
void bl_hold_late_renewal(struct bizlock *b, struct bl_hold *h, uint32_t lease_ms);

/* The part of a lease of `us` that is left, whatever such a renewal may do. */
int64_t bl_hold_sure_us(const struct bizlock *b, struct bl_hold *h, int64_t us);

/* An ACQUIRING one is HELD from here on: the statement that took it was about to be sent at
 * `sent`. grant: what its acquisition grants. */
void bl_hold_settle(struct bizlock *b, struct bl_hold *h, uint64_t fence, bl_time sent,
                    const struct bl_request *request);

/* A deeper level was granted. Of what it and the hold ask for, the stronger wish counts until the
 * last level is released: to be renewed, the later end of min_hold_ms, the earlier of max_hold_ms.
 */
void bl_hold_demand(struct bizlock *b, struct bl_hold *h, const struct bl_request *request);
void bl_hold_grant(const struct bl_hold *h, uint32_t lease_ms, bool took_over, bizlock_grant *ret);

/* This call keeps the busy hold as it is, or makes it last longer. So the renewer renews it
 * meanwhile: the call may wait for the network longer than the lease lasts. */
void bl_hold_let_renew(struct bizlock *b, struct bl_hold *h);

int64_t bl_hold_left_ms(const struct bl_hold *h);
int64_t bl_hold_rest_us(const struct bl_hold *h); /* how long to rest after it began, 0: not */

/* For how long a lease that begins anew now is written, lest it shorten the rest: see
 * bl_request_row_ms(). */
uint32_t bl_hold_row_ms(const struct bl_hold *h, uint32_t lease_ms);
struct bl_ref bl_hold_ref(const struct bl_call *call, const struct bl_hold *h);

/* Did its acquisition end without a known outcome? Then a row may be there. */
static inline bool bl_hold_unknown(const struct bl_hold *h)
{
	return h->state == BL_HOLD_ORPHAN && h->unsure && h->fence == 0;
}

/* The fence that a sweep has to spare: that of a hold which an ended thread with the same number
 * has left. Without such a hold, a fence that no row has. */
uint64_t bl_hold_sweep_fence(const struct bizlock *b, const struct bl_hold *hold);

/* Both set the error and return it. lost: also makes a HELD one LOST, and names who has the
 * lock now; for that it asks the server, with the mutex free. */
int bl_hold_lost(struct bl_call *call, struct bl_hold *h);
int bl_hold_none(struct bl_call *call);

/* OK: the last renewal went well, or none was due. Else the error is why not. */
int bl_hold_upkeep(struct bl_call *call, struct bl_hold *h);

#endif
