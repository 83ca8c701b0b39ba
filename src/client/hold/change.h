/* Statements that change the row of a hold; if the row may be fenced, a look comes first. */
#ifndef BL_CLIENT_HOLD_CHANGE_H
#define BL_CLIENT_HOLD_CHANGE_H

#include "client/conn/retry.h"

/* Runs fn on any connection, with retries as in bl_run(). h: busy. BUSY: nothing was done, because
 * a transaction of the application's has fenced the row; the caller decides whether to wait. keeps:
 * the statement keeps the hold, so it is not tried again once the hold is lost. unlocked_by: it is
 * not tried again after this time if the whole table is locked. Other errors as of bl_run(). */
int bl_hold_change(struct bl_call *call, struct bl_hold *h, bool keeps, bl_time unlocked_by,
                   bl_statement *fn, void *arg, struct bl_tried *ret);

/* One try of that on a connection that is lent to the call. *ret_sent false: only a look was
 * sent; with OK the row is gone, or another hold's. */
int bl_hold_try(struct bl_call *call, struct bl_hold *h, struct bl_conn *conn, bl_statement *fn,
                void *arg, struct bl_tried *tried, bool *ret_sent);

/* Writes another depth; lease_ms: of a lease that begins anew, 0: the lease stays.
 * *ret_matched false: there is no such row, or its lease is over. */
int bl_hold_change_depth(struct bl_call *call, struct bl_hold *h, uint32_t depth, uint32_t lease_ms,
                         bl_time unlocked_by, bool *ret_matched, struct bl_tried *ret);

#endif
