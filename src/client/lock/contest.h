/* A first acquisition: from "nobody here holds them" to holds, or not. Of one key, or of
 * several, all or none. */
#ifndef BL_CLIENT_LOCK_CONTEST_H
#define BL_CLIENT_LOCK_CONTEST_H

#include "client/lock/member.h"
#include "core/wait.h"

enum { BL_AGAIN = -1 }; /* beside the error numbers: nothing decided yet */

struct bl_contest {
	struct bizlock *client;
	struct bl_call *call; /* on the first key: for what concerns them all */
	const struct bl_request *request;
	struct bl_member **members; /* whose rows are to be taken, in the order of the primary */
	struct bl_goal **goals;     /* key; their goals; and how many. Their holds are ACQUIRING */
	size_t n;                   /* and busy, and of one the `bell` is kept up to date */

	struct bl_wait wait;
	const struct bl_member *blocker; /* whose key is in the way, */
	struct bl_row row;               /* and its row, as seen last */
	bl_time sent;     /* OK: when the statement that took the rows was about to be sent */
	bool unsure;      /* a reply was lost: rows may be there */
	bool handed_over; /* OK: by the hold's last owner, and it is HELD already */
	unsigned pauses, failures;
};

/* OK: the rows are theirs, by c->goals and c->sent. BUSY, TIMEOUT, CANCELLED, UNKNOWN, CONN,
 * DB, NOMEM: nothing is held. The mutex is let go of while it sends and waits; but when a
 * single key is OK, not since it was seen so. */
int bl_contest(struct bl_contest *c);

#endif
