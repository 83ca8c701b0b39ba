/* The contest for a set's new keys. */
#ifndef BL_CLIENT_SET_CONTEST_H
#define BL_CLIENT_SET_CONTEST_H

#include "client/set.h"

struct bl_set {
	struct bizlock *b;
	struct bl_member *members;
	size_t n, fresh; /* how many are new: items and rows have that many */
	struct bl_item *items;
	struct bl_set_row *rows;
	const struct bl_request *request;
	struct bl_call *call; /* the first one: for what concerns them all */
	bl_time end, sent;
	unsigned pauses, failures;
	bool bells;        /* this contest uses them */
	bool unsure;       /* a reply was lost: the rows may be there */
	uint64_t stuck_by; /* as in a contest for one key */
	bl_time stuck_until;
	bool past; /* the next try goes past the doorbells */
};

/* Until all are ours, by s->rows and the new holds' `bell`, or an error that is the
 * call's. */
int bl_set_contest(struct bl_set *s);

#endif
