/* Asks the server whether a hold stands: the caller's own, or any hold by its fence. */
#ifndef BL_CLIENT_REQUEST_VERIFY_H
#define BL_CLIENT_REQUEST_VERIFY_H

#include "client/state.h"
#include "store/row/lock.h"

int bl_client_verify(struct bl_call *call);
int bl_client_verify_fence(struct bl_call *call, uint64_t fence);

/* With the mutex held: *ret is the row of the hold with this fence, and call->key has its slot.
 * LOST: no such hold stands. CONN, DB, TIMEOUT, NOMEM. */
int bl_verify_find(struct bl_call *call, uint64_t fence, struct bl_row *ret);

#endif
