/* A statement on the row of a hold. */
#ifndef BL_CLIENT_HOLD_CHANGE_H
#define BL_CLIENT_HOLD_CHANGE_H

#include "client/conn/retry.h"

/* On any connection, seen through as bl_run() does it. h: busy. BUSY: nothing was done, because
 * a transaction of the application's has fenced the row; to wait for that is the caller's
 * business. keeps: the statement keeps the hold, and a hold that is lost meanwhile ends the
 * tries. Errors else as bl_run(). */
int bl_hold_change(struct bl_call *call, struct bl_hold *h, bool keeps, bl_statement *fn, void *arg,
                   struct bl_tried *ret);

/* One try of that on a connection that is lent to the call. Where the row may be fenced, a look
 * comes first. *ret_sent false: that was all; with OK the row is another one's by now. */
int bl_hold_try(struct bl_call *call, struct bl_hold *h, struct bl_conn *conn, bl_statement *fn,
                void *arg, struct bl_tried *tried, bool *ret_sent);

/* Writes another depth; lease_ms: starts the lease anew, 0: leaves it. *ret_matched false: no
 * such row, or its lease is over. */
int bl_hold_change_depth(struct bl_call *call, struct bl_hold *h, uint32_t depth, uint32_t lease_ms,
                         bool *ret_matched, struct bl_tried *ret);

#endif
