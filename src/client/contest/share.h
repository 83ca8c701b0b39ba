/* A contest among sharers: of a contender that wants to share the lock, or of a contender that
 * wants it alone and has met a row of slot 0 that is over, under which sharers may have the lock.
 * This file has what differs from a contest for a lock that nobody shares. What to do next is
 * decided in the same way, by core/wait.h; the rows are those of store/shared/sharers.h.
 *
 * The doorbell is a turnstile. Sharers without a limit go past it while nobody has it and nobody
 * has the lock exclusively. All other contenders line up at it; a sharer that
 * uses no doorbell asks who has it, and polls meanwhile. A sharer gives the doorbell on as
 * soon as it has its slot; an owner that has the lock exclusively keeps it. The first in line, if
 * others have yet to leave, has the doorbell, and sleeps until they have left. */
#ifndef BL_CLIENT_CONTEST_SHARE_H
#define BL_CLIENT_CONTEST_SHARE_H

#include "client/conn/jobs.h"
#include "client/contest/contest.h"

/* Shares the lock with any number of others. */
bool bl_shared_without_limit(const struct bl_contest *c);

/* Must the first in line poll, because nobody can wake it? Sharers at another member of a cluster
 * do not find it, and a server may refuse to let one user end another user's statement. */
bool bl_shared_polls(const struct bizlock *b);

/* For a contender that does not sleep at the doorbell: takes the doorbell if nobody has it, and so
 * a place in line, if not the lock. BL_AGAIN, with the doorbell or without. */
int bl_shared_line_up(struct bl_contest *c);

/* One that shares without a limit tries bl_shared_attempt() though it is not the first in its wait
 * queue, unless somebody in that wants the lock alone. */
bool bl_shared_may_pass(const struct bl_contest *c);

/* job: the attempt as a job for a batch. answer: what has become of a job that is DONE. */
struct bl_job bl_shared_job(struct bl_contest *c);
int bl_shared_answer(struct bl_contest *c, const struct bl_job *job);

/* The lease, in ms, of a contender that waits in slot 0: if its client dies, its row keeps
 * newcomers out for this long. */
uint32_t bl_shared_place_ms(const struct bl_contest *c);

/* A contender that wants the lock alone has met a row of slot 0 that is over: from now on its
 * contest is among sharers. */
int bl_shared_met(struct bl_contest *c, struct bl_conn *conn);

/* What bl_attempt() and its companions in attempt.h do among sharers. past: the owner of the
 * doorbell stands still. */
int bl_shared_attempt(struct bl_contest *c, bool past);
int bl_shared_rung(struct bl_contest *c, struct bl_conn *conn);
int bl_shared_look_on(struct bl_contest *c, struct bl_conn *conn); /* puts the connection back */
int bl_shared_adopt(struct bl_contest *c);

/* Goes past a doorbell whose owner stands still; a look before that clears rows that are over. */
int bl_shared_go_past(struct bl_contest *c);

/* Waits: somebody is in the way, and the doorbell is ours or not used. BL_AGAIN. */
int bl_shared_outwait(struct bl_contest *c, bl_time until);

/* Gives back slot, row and doorbell, unless they are to be kept. */
void bl_shared_leave(struct bl_contest *c, int rc);

#endif
