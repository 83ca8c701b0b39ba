/* Removing what this client has at the server: rows and doorbells. */
#ifndef BL_CLIENT_HOLD_DROP_H
#define BL_CLIENT_HOLD_DROP_H

#include "client/conn/retry.h"
#include "store/row/many.h"

/* The row of a hold. */
struct bl_drop {
	struct bl_hold *hold; /* busy */
	struct bl_ref ref;    /* its row; owner NULL: whoever has it */
	int64_t rest_us;  /* nobody gets the lock until this long after the hold began; 0: no rest;
	                     see bl_lock_drop() */
	uint32_t to_slot; /* > 0: the row is not removed, but becomes a sharer's in this slot */
	uint64_t bell;    /* give back the doorbell that this connection has, 0: none */

	/* Answers. `bell` becomes 0 when the doorbell is given back, or gone with its connection.
	 * It keeps its value where that connection stalls, and the row went by another one. */
	bool matched; /* the row was there */
	struct bl_tried tried;
};

/* As bl_hold_change(): BUSY, UNKNOWN, CONN, DB, NOMEM, TIMEOUT. */
int bl_drop(struct bl_call *call, struct bl_drop *drop);

/* Removes the rows of several holds, whose doorbells are on one connection, *bell, by one packet.
 * ret_dropped[i]: row i was there. If somebody has locked one of the rows, the answer is DB at
 * once, and does not tell which row: see bl_waited_in_vain(). Other errors as of bl_drop(). */
int bl_drop_several(struct bl_call *call, const struct bl_item *items, size_t n, bool *ret_dropped,
                    uint64_t *bell, struct bl_tried *ret);

/* The doorbell alone; *bell as in struct bl_drop. TIMEOUT: its connection is busy. */
int bl_drop_bell(struct bl_call *call, uint64_t *bell);

/* The row that an acquisition of the call's owner may have left when its reply was lost. hold:
 * of that acquisition. */
int bl_drop_unknown(struct bl_call *call, const struct bl_hold *hold);

#endif
