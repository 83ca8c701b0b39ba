/* One of the keys that a call is about: of one, or of 256. */
#ifndef BL_CLIENT_LOCK_MEMBER_H
#define BL_CLIENT_LOCK_MEMBER_H

#include "client/hold/hold.h"
#include "store/take.h"

struct bl_member {
	struct bl_call call; /* on this key */
	size_t place;        /* in the caller's array */

	/* The room's own, all zero to begin with. */
	struct bl_hold *hold; /* busy */
	bool is_new;          /* an acquisition: the row is to be taken; */
	struct bl_goal goal;  /* and this is what becomes of it */
	bool deeper;          /* an acquisition: it has been re-entered */
	int rc;               /* a release */
};

/* In the order of the primary key, in which everybody works on several. INVALID: a key that is
 * there twice, which would wait for itself. */
int bl_members_sort(struct bl_member *members, size_t n);

#endif
