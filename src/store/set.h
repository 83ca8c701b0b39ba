/* Sets of keys: all of them taken by one statement, or none. */
#ifndef BL_STORE_SET_H
#define BL_STORE_SET_H

#include "store/many.h"

#define BL_SET_MAX 256

struct bl_set_claim {
	const char *owner, *note; /* note: NULL or text */
	uint32_t lease_ms;
};

struct bl_set_row {
	bool seen;
	bool took_over;
	uint64_t fence;
};

/* items: in the order of (id, type), each key once; their fences are not looked at.
 * *ret_all false: somebody holds one of them, and nothing was changed; else rows[i]
 * is that of items[i]. No doorbell is rung. CONN, DB, NOMEM. */
int bl_set_take(struct bl_session *s, const struct bl_item *items, size_t n,
                const struct bl_set_claim *claim, struct bl_set_row *rows, bool *ret_all,
                struct bl_err *err);

/* rows[i].seen: the hold was there, and is gone now. */
int bl_set_drop(struct bl_session *s, const struct bl_item *items, size_t n, const char *suffix,
                struct bl_set_row *rows, struct bl_err *err);

#endif
