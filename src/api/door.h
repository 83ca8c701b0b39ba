/* In and out of the library: who may call, and the thread's last error. */
#ifndef BL_API_DOOR_H
#define BL_API_DOOR_H

#include "client/state.h"

/* Where the calling thread's call at hand writes its error. A call with a callback has an error of
 * its own instead: the callback may call the library, which would write to this one. */
struct bl_err *bl_door_error(void);

/* Keeps err for bizlock_errmsg(), under the function's name, unless rc is OK.
 * Returns rc. The last look at the client, which leaving may let go away. */
int bl_door_finish(const bizlock *b, const char *what, struct bl_err *err, int rc);

int bl_door_process(const bizlock *b, struct bl_err *err); /* INVALID, MISUSE */

/* INVALID, MISUSE. Every OK needs a leave. enter: the client must be open. open: it must be
 * new, and is opened by this call alone; opened says how that ended, and leaves. */
int bl_door_enter(bizlock *b, struct bl_err *err);
int bl_door_open(bizlock *b, struct bl_err *err);
void bl_door_opened(bizlock *b, bool open);
void bl_door_leave(bizlock *b);

/* Around what a thread does in the library: it is not cancelled there (pthread_cancel()), for it
 * would leave holds busy, connections lent, and calls that a close waits for. The doors do it, so
 * this is for bizlock_close() alone. May be nested. */
void bl_door_shield(void);
void bl_door_unshield(void);

/* With the mutex held: MISUSE unless the client is new, and nobody opens it. */
int bl_door_new(const bizlock *b, struct bl_err *err);

/* rc: what has come of the call so far. in: enters, unless the arguments were refused, and
 * finishes the call if it does not get in. visit: the same, but the client may be in any state, and
 * change it meanwhile. out: finishes, and leaves. */
int bl_door_in(bizlock *b, const char *what, struct bl_err *err, int rc);
int bl_door_visit(bizlock *b, const char *what, struct bl_err *err, int rc);
int bl_door_out(bizlock *b, const char *what, struct bl_err *err, int rc);

/* Whose call, and on which key: INVALID, MISUSE, before anything is sent. */
int bl_door_name(const bizlock *b, bizlock_key key, const char *owner, struct bl_key *ret_key,
                 struct bl_owner *ret_owner, struct bl_err *err);

/* bl_door_in() and _out() for calls on a key; _call() is _name() and _begin(), for a call that
 * does not wait for the lock. */
int bl_door_begin(struct bl_call *call, bizlock *b, const struct bl_key *key,
                  const struct bl_owner *owner, int64_t wait_ms, const char *what,
                  struct bl_err *err);
int bl_door_call(struct bl_call *call, bizlock *b, bizlock_key key, const char *owner,
                 const char *what);
int bl_door_called(struct bl_call *call, const char *what, int rc);

/* Calls the `done` of a request, and frees that. */
struct bl_op;
void bl_door_answer(bizlock *b, struct bl_op *op);

#endif
