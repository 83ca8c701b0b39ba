/* Re-entry: one level deeper, in memory or in the row; and one less, in memory. */
#ifndef BL_CLIENT_CONTEST_REENTRY_H
#define BL_CLIENT_CONTEST_REENTRY_H

#include "client/state.h"

/* One level deeper, or one less, in memory alone: without the cost of a call on the server. false:
 * nothing was done, and the row has to be written. key and owner: as the caller gave them. now:
 * when the call began. The caller reads the clock first, because the processor goes on with the
 * call while it waits for the time: read last, the clock makes a level a tenth dearer. */
bool bl_client_deeper(struct bizlock *b, bizlock_key key, const char *owner, uint32_t lease_ms,
                      uint32_t flags, bl_time now, bizlock_grant *ret);
bool bl_client_shallower(struct bizlock *b, bizlock_key key, const char *owner, bl_time now,
                         uint32_t *ret_depth);

/* With the mutex held: one level deeper, in memory or in the row, which also starts the lease
 * anew. h: busy. BUSY: a transaction of the application's has fenced it. LOST, LIMIT, CONN,
 * UNKNOWN, DB. */
int bl_reenter(struct bl_call *call, struct bl_hold *h, const struct bl_request *request);

/* Refuses to re-enter a hold that is LOST: sets and returns the error. */
int bl_reentry_refused(struct bl_call *call, struct bl_hold *h);

#endif
