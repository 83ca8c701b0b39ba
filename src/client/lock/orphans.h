/* Orphans: holds that are nobody's any more, whose rows or doorbells are still at the server. An
 * acquisition that ended UNKNOWN leaves one, a release that failed, a thread that ended. */
#ifndef BL_CLIENT_LOCK_ORPHANS_H
#define BL_CLIENT_LOCK_ORPHANS_H

#include "client/state.h"

/* *ret_when: when to clean up the next one, BL_NEVER: when there is one. NULL: there is none. */
struct bl_hold *bl_orphans_next(const struct bizlock *b, bl_time *ret_when);

/* By the janitor: removes what is left of h at the server. The mutex is let go of meanwhile. */
void bl_orphan_clean(struct bizlock *b, struct bl_hold *h);

#endif
