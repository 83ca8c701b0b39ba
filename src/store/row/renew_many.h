/* Renewing the leases of many holds by one statement: what the renewer sends. (The statement of
 * bizlock_renew(), which may also shorten a lease, is BL_STMT_RENEW in sql.c.) */
#ifndef BL_STORE_ROW_RENEW_MANY_H
#define BL_STORE_ROW_RENEW_MANY_H

#include "store/row/many.h"

struct bl_renewed {
	uint64_t matched;  /* rows whose leases last at least lease_ms now; rows that others have
	                      locked are not renewed */
	int64_t server_us; /* the server's clock: microseconds since 2000, UTC */
};

struct bl_renewal {
	const struct bl_item *items;
	size_t n;
	const char *suffix; /* the end that all owners of the client have in common */
	uint32_t lease_ms;  /* a lease that is longer stays so */
	bool queue;         /* of one item: waits in line for a locked row, for a second at most;
	                       false: locked rows are left out */
};

int bl_renew_many(struct bl_session *s, const struct bl_renewal *renewal, struct bl_renewed *ret,
                  struct bl_err *err); /* CONN, DB */

#endif
