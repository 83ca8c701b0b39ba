/* Requests that sleep at doorbells, for keys that are hot (conn/yields.h). The server gives a
 * doorbell in the order in which connections came to it, and those that are watched come behind all
 * of them: beside processes that sleep there, a request would get a hot key once in many seconds.
 * So it has a thread meanwhile, which is started by the first such request, and takes one step of a
 * request at a time: it sleeps, and goes for the row when it is rung. Functions are entered with
 * the client's mutex held, unless they say otherwise. */
#ifndef BL_CLIENT_LOCK_OP_BELLS_H
#define BL_CLIENT_LOCK_OP_BELLS_H

#include "client/lock/op.h"

/* False: the key is not hot, no connection is left to sleep on, or no thread. Else the contest is
 * to be BL_PARKED. */
bool bl_op_bells_take(struct bl_contest *c, bl_time until);

/* It is parked: its thread may begin. Or it goes on without. */
void bl_op_bells_begin(struct bizlock_op *op);
void bl_op_bells_leave(struct bizlock_op *op);

/* Of any request. To end a sleep costs the connection: the server may be about to answer. */
void bl_op_bells_cancel(struct bizlock_op *op);

/* Mutex free; no request is left. In a forked child there are no threads. */
void bl_op_bells_stop(struct bizlock *b);
void bl_op_bells_forget(struct bizlock *b);

#endif
