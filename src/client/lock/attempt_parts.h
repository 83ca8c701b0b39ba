/* What attempt.c and shared.c share. */
#ifndef BL_CLIENT_LOCK_ATTEMPT_PARTS_H
#define BL_CLIENT_LOCK_ATTEMPT_PARTS_H

#include "client/lock/attempt.h"

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
