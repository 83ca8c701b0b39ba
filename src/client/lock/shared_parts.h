/* What shared.c and shared_wait.c share. */
#ifndef BL_CLIENT_LOCK_SHARED_PARTS_H
#define BL_CLIENT_LOCK_SHARED_PARTS_H

#include "client/lock/attempt_parts.h"
#include "client/lock/shared.h"

bool bl_shared_wants_exclusive(const struct bl_contest *c);
struct bl_hold *bl_shared_hold_of(const struct bl_contest *c);
struct bl_wish bl_shared_wish_of(const struct bl_contest *c);

/* Its row, as seen last. */
struct bl_ref bl_shared_own_row(struct bl_contest *c);

#endif
