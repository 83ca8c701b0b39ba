/* A first acquisition: from "nobody here holds it" to a hold, or not. */
#ifndef BL_CLIENT_CONTEST_H
#define BL_CLIENT_CONTEST_H

#include "client/client.h"

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
