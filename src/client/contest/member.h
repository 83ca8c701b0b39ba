/* One of the keys of a call, which has 1 to 256. */
#ifndef BL_CLIENT_CONTEST_MEMBER_H
#define BL_CLIENT_CONTEST_MEMBER_H

#include "client/hold/hold.h"
#include "store/row/take.h"

struct bl_member {
	struct bl_call call; /* on this key */
	size_t index;        /* in the caller's array */

	/* All zero to begin with. */
	struct bl_hold *hold; /* busy */
	bool is_new;          /* in an acquisition: the row is to be taken, */
	struct bl_goal goal;  /* and what becomes of that */
	bool deeper;          /* in an acquisition: it has been re-entered */
	int rc;               /* of its release */
};

/* Sorts them by the primary key, the order in which every call works on several. INVALID: a key
 * is there twice, and would wait for itself. */
int bl_members_sort(struct bl_member *members, size_t n);

#endif
