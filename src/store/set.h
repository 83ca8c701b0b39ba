/* Sets of keys: all of them taken by one statement, or none. */
#ifndef BL_STORE_SET_H
#define BL_STORE_SET_H

#include "store/many.h"

#define BL_SET_MAX 256

struct bl_set_claim {
	const char *owner, *note; /* note: NULL or text */
	uint32_t lease_ms;
	bool ring;        /* take all the doorbells, none of which the session may have */
	const char *rung; /* but for this one, which it has; or NULL */
};

struct bl_set_row {
	bool seen;
	bool took_over;
	uint64_t fence;
};

enum bl_set_took {
	BL_SET_NOTHING, /* somebody holds one of them, or has its doorbell; or an error */
	BL_SET_MAYBE,   /* an error behind the statement that takes them: they are all there */
	BL_SET_ALL
};

/* items: in the order of (id, type), each key once; their fences are not looked at.
 * ALL: rows[i] is that of items[i]. Else the session has none of the doorbells
 * afterwards. CONN, DB, NOMEM; *ret is written even so. */
int bl_set_take(struct bl_session *s, const struct bl_item *items, size_t n,
                const struct bl_set_claim *claim, struct bl_set_row *rows, enum bl_set_took *ret,
                struct bl_err *err);

/* A new fence for each row that is owner's, which are the seen ones then. CONN, DB, NOMEM. */
int bl_set_draw_again(struct bl_session *s, const struct bl_item *items, size_t n,
                      const char *owner, struct bl_set_row *rows, struct bl_err *err);

/* rows[i].seen: the hold was there, and is gone now. bells: with the doorbells, as far
 * as the session has them. */
int bl_set_drop(struct bl_session *s, const struct bl_item *items, size_t n, const char *suffix,
                bool bells, struct bl_set_row *rows, struct bl_err *err);

/* Gives all the doorbells back, or the session up. */
void bl_set_free_bells(struct bl_session *s, const struct bl_item *items, size_t n);

#endif
