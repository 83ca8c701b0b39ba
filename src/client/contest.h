/* A first acquisition: from "nobody here holds it" to a hold, or not. */
#ifndef BL_CLIENT_CONTEST_H
#define BL_CLIENT_CONTEST_H

#include "client/client.h"

/* How long a doorbell may stand still in front of a free row before somebody
 * goes past it: its holder hangs, or died without the server knowing. Too early
 * costs order, too late costs time; exclusion is the row's business. The
 * jitter keeps all who notice from going at once. */
#define BL_GRACE_NS (200 * BL_NS_PER_MS)
#define BL_GRACE_JITTER_NS (50 * BL_NS_PER_MS)

/* Who has the doorbell and is answered within this was in nobody's way: else the fence may
 * be older than that of somebody who went past, and is drawn again. */
#define BL_PROMPT_NS (BL_GRACE_NS / 2)

struct bl_won {
	uint64_t fence;
	bl_time sent; /* when the statement that won was about to be sent */
	bool took_over;
};

/* hold: ours, ACQUIRING and busy; its `bell` and `unsure` are kept up to date. OK: it
 * is HELD now. BUSY, TIMEOUT, CANCELLED, UNKNOWN, CONN, DB, NOMEM: nothing is held. */
int bl_contest(struct bl_call *call, const struct bl_request *request, struct bl_hold *hold,
               struct bl_won *ret);

#endif
