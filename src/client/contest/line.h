/* A contender's place in the wait queues of its client (hold/wait_queue.h). A thread, or a request
 * for one key, waits in the queue of its key from the beginning on; a request for several keys in
 * that of the key in its way. The mutex is held. */
#ifndef BL_CLIENT_CONTEST_LINE_H
#define BL_CLIENT_CONTEST_LINE_H

#include "client/contest/contest.h"

/* At the beginning. OK, NOMEM. */
int bl_line_join(struct bl_contest *c);

/* When the key in the way is known. true: other requests for several keys wait for that key before
 * this one; it is woken when it has become the first. */
bool bl_line_move(struct bl_contest *c);

/* OK: the lock was handed over to us. BL_AGAIN: it is our turn to contend. BL_PARKED: others are
 * first. TIMEOUT, CANCELLED. */
int bl_line_stand(struct bl_contest *c);

/* Does anybody wait behind us for the key in the way? Then our refusal or holder is noted in the
 * wait queue, for their messages. A request without such waiters saves the memory. */
bool bl_line_leads(const struct bl_contest *c);

/* A contender that went along, but came too late, goes back into the queue: a client has one
 * contender for a key, not one for each waiter. false: that is not the case. */
bool bl_line_fall_back(struct bl_contest *c);

/* When the first waiter shares without a limit, wakes the sharers behind it to go in one batch. One
 * after the other, each would wait for a commit, and so would a waiter behind them that wants the
 * lock alone. A sharer that was woken before has woken those behind it. */
void bl_line_take_along(struct bl_contest *c);

/* Does nothing to a contender that is in no queue. */
void bl_line_leave(struct bl_contest *c);

#endif
