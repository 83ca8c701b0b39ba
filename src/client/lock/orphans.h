/* Removes orphans: what acquisitions that ended UNKNOWN, failed releases and ended threads left.
 * An orphan is a hold that is nobody's any more; its row or doorbell may still be at the server. Of
 * one that is lost, and that its owner has yet to release, the doorbell goes. */
#ifndef BL_CLIENT_LOCK_ORPHANS_H
#define BL_CLIENT_LOCK_ORPHANS_H

#include "client/state.h"

/* The next one to clean up, and when. NULL, BL_NEVER: there is none. */
struct bl_hold *bl_orphans_next(const struct bizlock *b, bl_time *ret_when);

/* By the janitor: removes what h still has at the server and must not keep. The mutex is let go of
 * meanwhile. */
void bl_orphan_clean(struct bizlock *b, struct bl_hold *h);

#endif
