/* Releases: a level of one hold, or of each of several. */
#ifndef BL_CLIENT_GIVEBACK_RELEASE_H
#define BL_CLIENT_GIVEBACK_RELEASE_H

#include "client/contest/member.h"

int bl_client_release(struct bl_call *call, uint32_t *ret_depth);

/* Releases one level of each, even if others fail. ret_first: the first error in the caller's
 * order, or OK. INVALID: a key is there twice; then nothing is given back. */
void bl_client_release_all(struct bl_member *members, size_t n, struct bl_err *ret_first);

/* ---- steps that others share, with the mutex held ---------------------------------------- */

/* Releases one level at the server. h is busy, and stays so. */
int bl_release_level(struct bl_call *call, struct bl_hold *h);

/* Releases the last level. maybe: a batch before may have removed the row. */
int bl_release_last(struct bl_call *call, struct bl_hold *h, bool maybe);

/* Is it in its last level, with no rest to keep, and no transaction in the way? */
bool bl_release_is_plain(const struct bl_hold *h);

/* Ends the release of a level, which had the result rc. last: the hold ends, too. Returns the
 * answer for the caller. */
int bl_release_end(struct bl_call *call, struct bl_hold *h, bool last, int rc);

#endif
