/* Acquiring: one key, or several, all or none. */
#ifndef BL_CLIENT_REQUEST_ACQUIRE_H
#define BL_CLIENT_REQUEST_ACQUIRE_H

#include "client/contest/member.h"

/* members: call and index are set, the rest is zero; they are put in the order of the primary
 * key. ret: n grants in the caller's order. INVALID: a key is there twice. BUSY, TIMEOUT,
 * CANCELLED, LOST, LIMIT, UNKNOWN, CONN, DB, NOMEM: nothing was acquired. */
int bl_client_acquire(struct bl_member *members, size_t n, const struct bl_request *request,
                      bizlock_grant *ret);

/* ---- steps that an import shares, with the mutex held -------------------------------- */

/* The hold to work on, busy. One that is ACQUIRING is new. Waits while another call of this
 * owner is at work on it, or a row is in doubt. BUSY, TIMEOUT, CANCELLED, NOMEM. */
int bl_acquire_begin(struct bl_call *call, bool once, struct bl_hold **ret);

/* The same without a wait, for a request that has waited until `end`. BL_AGAIN: not yet. */
int bl_acquire_try(struct bl_call *call, bool once, bl_time end, struct bl_hold **ret);
bl_time bl_acquire_patience(const struct bl_call *call, bool once); /* until when it waits so */

/* One level deeper in a hold that is busy. BUSY: it is fenced, and the next try may do better. */
int bl_acquire_deeper(struct bl_member *m, const struct bl_request *request);

/* What was acquired, or not, in numbers. began: the call. */
void bl_acquire_granted(struct bizlock *b, const struct bl_member *m,
                        const struct bl_request *request, bl_time began, bizlock_grant *ret);
void bl_acquire_refused(struct bizlock *b, int rc);

/* The hold of a member is new: what is to be taken for it. */
void bl_acquire_aim(struct bl_member *m, const struct bl_request *request);

/* Done with it. One that was not obtained ends; if its row may be there (unsure), as an orphan. */
void bl_acquire_end(struct bizlock *b, struct bl_hold *h, bool unsure);

#endif
