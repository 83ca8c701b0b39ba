/* The counter that fences come from. TRUNCATE, ALTER TABLE ... AUTO_INCREMENT, a dump and a copy of
 * the table set the counter back. The floor survives that: a row of biz_row_lock that belongs to no
 * row lock, and is named after a number which the counter had reached. */
#ifndef BL_STORE_TABLE_FENCES_H
#define BL_STORE_TABLE_FENCES_H

#include "store/table/tables.h"

struct bl_fence_counter {
	uint64_t next;  /* fence; 0: not known */
	uint64_t floor; /* the counter had reached this; 0: not known */
};

/* Errors of all these functions: CONN, DB, NOMEM. */
int bl_fences_read(struct bl_session *s, const char *prefix, struct bl_fence_counter *ret,
                   struct bl_err *err);

/* Raises the floor to where the counter is. */
int bl_fences_note(struct bl_session *s, const char *prefix, struct bl_err *err);

/* Fences from now on are larger than *ret, and than all fences given before, if these were fewer
 * than a million a second since 1970. SCHEMA: fences would become too large. */
int bl_fences_raise(struct bl_session *s, const char *prefix, uint64_t *ret, struct bl_err *err);

#endif
