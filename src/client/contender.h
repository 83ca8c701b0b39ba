/* One who wants a lock, and what it does at the server: go for the row, look,
 * wait at the doorbell. contest.c decides which, and when. Mutex free. */
#ifndef BL_CLIENT_CONTENDER_H
#define BL_CLIENT_CONTENDER_H

#include "client/contest.h"

enum { BL_AGAIN = -1 }; /* beside the error numbers: nothing decided yet */

struct bl_contender {
	struct bl_call *call;
	struct bizlock *client;
	const struct bl_request *request;
	struct bl_hold *hold; /* hold->bell: the connection that has our doorbell */
	struct bl_won *won;
	struct bl_row row; /* as seen last */
	bool bells;        /* this contest uses them */
	unsigned pauses;
};

/* What it asks for. bell, ring: see bl_claim. */
struct bl_claim bl_contender_claim(const struct bl_contender *c, const char *bell, bool ring);

/* One go for the row; with_bell: for the doorbell as well. OK: won. BL_AGAIN: not,
 * though hold->bell may be set now. */
int bl_contender_attempt(struct bl_contender *c, bool with_bell);

/* Fills c->row. */
int bl_contender_look(struct bl_contender *c);

/* Fills c->row.locked, for a row whose lease is over. */
int bl_contender_probe(struct bl_contender *c);

/* Waits at the doorbell until then, and goes for the row as soon as it rings.
 * Where no connection is left for waiting: sleeps a little. */
int bl_contender_wait(struct bl_contender *c, bl_time until);

/* Is the row seen last ours, by a statement whose reply was lost? */
bool bl_contender_owns(const struct bl_contender *c);
int bl_contender_adopt(struct bl_contender *c); /* makes such a row a hold */

/* Rung in vain: of use to the next one in line. */
void bl_contender_give_bell_back(struct bl_contender *c);

/* With the mutex held. A connection that has a doorbell may ring it again (GET_LOCK
 * counts), so that of a holder in this very client would tell its competitor "rung". */
bool bl_bell_is_here(const struct bizlock *b, const struct bl_key *key, const struct bl_conn *conn);

/* Sleeps for the next back-off, until then at most. */
void bl_contender_pause(struct bl_contender *c, bl_time until);

#endif
