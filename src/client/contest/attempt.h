/* What a contender sends to the server: attempts to take the rows, and looks at who is in the way.
 * contest.c decides which, and when. */
#ifndef BL_CLIENT_CONTEST_ATTEMPT_H
#define BL_CLIENT_CONTEST_ATTEMPT_H

#include "client/conn/jobs.h"
#include "client/contest/contest.h"

/* One attempt to take the rows; with_bells: and the doorbells. OK: won. BL_AGAIN: not won, though
 * the doorbell of a single key may be ours now. */
int bl_attempt(struct bl_contest *c, bool with_bells);

/* job: the same with the doorbell of a single key, as a job for a batch, which also looks at the
 * row. answer: what has become of the job. */
struct bl_job bl_attempt_job(struct bl_contest *c);
int bl_attempt_answer(struct bl_contest *c, const struct bl_job *job);

/* Sets c->floor: a new fence has to be larger. One counter serves all keys, and this client has its
 * last fence before it asks for another: so a fence that is not larger shows that the counter was
 * set back. No floor in a cluster: each member counts for itself, and the next statement may go to
 * another member. */
void bl_attempt_note_floor(struct bl_contest *c);

/* Fills c->blocker and c->row: a key that is held, or fenced, or else one whose doorbell somebody
 * has. Of a single key: all that was seen. */
int bl_attempt_look(struct bl_contest *c);

/* Asks whether the table is locked: see bl_lock_ask_table(). */
int bl_attempt_ask_table(struct bl_contest *c, bool *ret_reads);

/* conn has just got the doorbell of the key in the way: attempts to take the rows. */
int bl_attempt_rung(struct bl_contest *c, struct bl_conn *conn);

/* The row seen last is ours, by a statement whose reply was lost: makes it a hold. */
int bl_attempt_adopt(struct bl_contest *c);

/* ---- for contests among sharers, and for hand-offs ------------------------------------ */

struct bl_claim bl_attempt_claim(const struct bl_contest *c);

/* Until when the contender waits for a connection. patience: until when it does so now; a request
 * gives up its turn before that, with TIMEOUT, and has to come again. */
bl_time bl_attempt_conn_end(const struct bl_contest *c);
struct bl_patience bl_attempt_patience(const struct bl_contest *c);

/* Lends a connection: the one that has our doorbell, if any. */
int bl_attempt_borrow(struct bl_contest *c, struct bl_conn **ret);

/* Notes that conn has the doorbells now. */
void bl_attempt_note_bells(const struct bl_contest *c, struct bl_conn *conn);

/* Called before a statement that draws fences is sent. */
void bl_attempt_sends(struct bl_contest *c);

/* The rows are ours; their fences (of a single row: `fence`) were drawn on conn, maybe without the
 * doorbells. Waits until nobody else can get the rows by a smaller fence. BL_AGAIN: the row is
 * gone. CONN, DB, NOMEM. */
int bl_attempt_outwait_rival(struct bl_contest *c, struct bl_conn *conn, uint64_t fence);

/* The rows were taken. BL_AGAIN: they may not be ours any more. SCHEMA: a fence is not valid. */
int bl_attempt_won(struct bl_contest *c);

#endif
