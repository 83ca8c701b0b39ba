/* What a contender does at the server: go for the rows, look who is in the way, sleep at a
 * doorbell. contest.c decides which, and when. */
#ifndef BL_CLIENT_CONTEST_ATTEMPT_H
#define BL_CLIENT_CONTEST_ATTEMPT_H

#include "client/conn/jobs.h"
#include "client/contest/contest.h"

/* One go for the rows; with_bells: for the doorbells as well. OK: won. BL_AGAIN: not, though
 * the doorbell of a single key may be ours now. */
int bl_attempt(struct bl_contest *c, bool with_bells);

/* The same with the doorbell of a single key, as a job for a batch, which also looks at the row;
 * and what has become of it. */
struct bl_job bl_attempt_job(struct bl_contest *c);
int bl_attempt_answer(struct bl_contest *c, const struct bl_job *job);

/* What a fence has to be larger than: c->floor. One counter serves all keys, and this client had
 * its answer before it asks again; so a counter that was set back is noticed at the first fence
 * that is not larger. In a cluster each member counts for itself, and may ask another one. */
void bl_attempt_note_floor(struct bl_contest *c);

/* Fills c->blocker and c->row: somebody who holds one of the keys, or has fenced one, or else
 * somebody who has a doorbell. Of one key: whatever is to be seen of it. */
int bl_attempt_look(struct bl_contest *c);

/* Asks whether the table is locked: see bl_lock_ask_table(). */
int bl_attempt_ask_table(struct bl_contest *c, bool *ret_reads);

/* The doorbell of the key in the way is the connection's now: goes for the rows. */
int bl_attempt_rung(struct bl_contest *c, struct bl_conn *conn);

/* The row seen last is ours, by a statement whose reply was lost: makes it a hold. */
int bl_attempt_adopt(struct bl_contest *c);

/* ---- what contests among sharers and hand-offs have in common with these ----------------------
 */

struct bl_claim bl_attempt_claim(const struct bl_contest *c);

struct bl_patience bl_attempt_patience(const struct bl_contest *c);

/* A connection: that which has our doorbell, if there is one. */
int bl_attempt_borrow(struct bl_contest *c, struct bl_conn **ret);

/* The doorbells are on this one now. */
void bl_attempt_note_bells(const struct bl_contest *c, struct bl_conn *conn);

/* A statement that draws fences is about to be sent. */
void bl_attempt_sends(struct bl_contest *c);

/* The fences (of a single row: this one) were drawn on conn while the rows were ours, maybe without
 * the doorbells: waits until nobody else can get them by a smaller fence. BL_AGAIN: the row is
 * gone. CONN, DB, NOMEM. */
int bl_attempt_outwait_rival(struct bl_contest *c, struct bl_conn *conn, uint64_t fence);

/* The rows are ours: OK, or BL_AGAIN where they may not be any more. SCHEMA: their fences cannot
 * be.
 */
int bl_attempt_won(struct bl_contest *c);

#endif
