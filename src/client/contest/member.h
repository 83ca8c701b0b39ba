/* One of the 1 to 256 keys of a call. */
#ifndef BL_CLIENT_CONTEST_MEMBER_H
#define BL_CLIENT_CONTEST_MEMBER_H

#include "client/hold/hold.h"
#include "store/row/take.h"

struct bl_member {
	struct bl_call call; /* on this key */
	size_t index;        /* in the caller's array */

	/* All zero to begin with. */
	struct bl_hold *hold; /* busy */
	bool is_new;          /* in an acquisition: its row is to be taken */
	struct bl_goal goal;  /* what becomes of that row */
	bool deeper;          /* in an acquisition: it has been re-entered */
	int rc;               /* of its release */
};

/* Sorts the members by the primary key: every call works on several keys in this order. INVALID: a
 * key is there twice, and the call would wait for itself. */
int bl_members_sort(struct bl_member *members, size_t n);

#endif
