/* Releases: a level of one hold, or of each of several. */
#ifndef BL_CLIENT_LOCK_RELEASE_H
#define BL_CLIENT_LOCK_RELEASE_H

#include "client/lock/member.h"

int bl_client_release(struct bl_call *call, uint32_t *ret_depth);

/* One level of each, whatever comes of the others. ret_first: the first error in the caller's
 * order, or OK. INVALID: a key that is there twice; then nothing is given back. */
void bl_client_release_all(struct bl_member *members, size_t n, struct bl_err *ret_first);

/* With the mutex held: one level at the server, of a hold that is busy and stays so. */
int bl_release_level(struct bl_call *call, struct bl_hold *h);

#endif
