/* The routines by which programs in other languages take locks: sql/routines.sql. */
#ifndef BL_STORE_TABLE_ROUTINES_H
#define BL_STORE_TABLE_ROUTINES_H

#include "core/config.h"
#include "store/session/session.h"

/* Makes them, or replaces them by those of this library. CONN, DB, NOMEM. */
int bl_routines_make(struct bl_session *s, const char *prefix, struct bl_err *err);

/* Drops what there is of them. CONN, DB, NOMEM. */
int bl_routines_drop(struct bl_session *s, const char *prefix, struct bl_err *err);

/* The privileges that a user of the routines needs, one statement a line. */
void bl_routines_grant(struct bl_buf *ret, const struct bl_config *config, const char *account);

/* What a user sees of the routines here. */
struct bl_routines {
	unsigned there, old; /* old: not those of this library */
	char definer[4 * 128 + 256];
};

unsigned bl_routines_count(void); /* without the view */
int bl_routines_look(struct bl_session *s, const char *prefix, struct bl_routines *ret,
                     struct bl_err *err);

#endif
