/* A first acquisition: of one key, or of a set, all or none; where one key is held, it waits for
 * that one. */
#ifndef BL_CLIENT_LOCK_CONTEST_H
#define BL_CLIENT_LOCK_CONTEST_H

#include "client/lock/member.h"
#include "core/wait.h"

enum { BL_AGAIN = -1 }; /* beside the error numbers: nothing decided yet */

struct bl_contest {
	struct bizlock *client;
	struct bl_call *call; /* on the first key: for what concerns them all */
	const struct bl_request *request;
	bool in_queue; /* a single key is waited for in its wait queue */

	/* Whose rows are to be taken, n of them, in the order of the primary key, and their goals.
	 * Their holds are ACQUIRING and busy; that of a single key knows its `bell` at any time. */
	struct bl_member **members;
	struct bl_goal **goals;
	size_t n;

	struct bl_wait wait;
	const struct bl_member *blocker; /* whose key is in the way, */
	struct bl_row row;               /* and its row, as seen last */
	bl_time sent;     /* OK: when the statement that took the rows was about to be sent */
	bool unsure;      /* rows of ours may be there, although we do not hold them */
	bool handed_over; /* OK: by the hold's last owner, and it is HELD already */
	unsigned pauses, failures;
};

/* OK: the rows are theirs, by c->goals and c->sent. BUSY, TIMEOUT, CANCELLED, UNKNOWN, CONN,
 * DB, NOMEM: nothing is held. The mutex is let go of while it sends and waits; but not between
 * the moment when a single key was seen to be OK and the return. */
int bl_contest(struct bl_contest *c);

#endif
