/* In and out of the library: who may call, and the thread's last error. */
#ifndef BL_API_DOOR_H
#define BL_API_DOOR_H

#include "client/contest/member.h"

/* The error struct of the calling thread, for its current call. A call that runs a callback has an
 * error struct of its own: the callback may call the library, which would overwrite this one. */
struct bl_err *bl_door_error(void);

/* Keeps err for bizlock_errmsg(), prefixed with the function's name, unless rc is OK. Returns rc.
 * Comes before the leave: after it, the client may be freed. */
int bl_door_finish(const bizlock *b, const char *what, struct bl_err *err, int rc);

int bl_door_process(const bizlock *b, struct bl_err *err); /* INVALID, MISUSE */

/* INVALID, MISUSE. Every OK needs a leave. enter: the client must be open. open: the client must be
 * new, and only this call opens it. opened: says whether the client is open now, and leaves. */
int bl_door_enter(bizlock *b, struct bl_err *err);
int bl_door_open(bizlock *b, struct bl_err *err);
void bl_door_opened(bizlock *b, bool open);
void bl_door_leave(bizlock *b);

/* A thread must not be cancelled (pthread_cancel()) inside the library: it would leave holds busy,
 * connections lent, and calls that a close waits for. The doors shield each call; only
 * bizlock_close() uses these two itself. May be nested. */
void bl_door_shield(void);
void bl_door_unshield(void);

/* With the mutex held: MISUSE unless the client is new, and nobody opens it. */
int bl_door_new(const bizlock *b, struct bl_err *err);

/* rc: the result of the call so far. in: enters the client if rc is OK; if the call does not get
 * in, finishes it. visit: the same in any state but CLOSING; the state may change meanwhile. out:
 * finishes, and leaves. */
int bl_door_in(bizlock *b, const char *what, struct bl_err *err, int rc);
int bl_door_visit(bizlock *b, const char *what, struct bl_err *err, int rc);
int bl_door_out(bizlock *b, const char *what, struct bl_err *err, int rc);

/* Checks the client, and makes key and owner of a call: INVALID, MISUSE, before anything is
 * sent. */
int bl_door_name(const bizlock *b, bizlock_key key, const char *owner, struct bl_key *ret_key,
                 struct bl_owner *ret_owner, struct bl_err *err);

/* begin, called: bl_door_in() and bl_door_out() for a call on a key. call: bl_door_name() and
 * begin, for a call that does not wait for the lock. */
int bl_door_begin(struct bl_call *call, bizlock *b, const struct bl_key *key,
                  const struct bl_owner *owner, int64_t wait_ms, const char *what,
                  struct bl_err *err);
int bl_door_call(struct bl_call *call, bizlock *b, bizlock_key key, const char *owner,
                 const char *what);
int bl_door_called(struct bl_call *call, const char *what, int rc);

/* Checks n keys and their owner, enters the client, and begins a call for each key. members: n, all
 * zero. Every OK needs a leave. */
int bl_door_members(struct bl_member *members, bizlock *b, const bizlock_key *keys, size_t n,
                    const char *owner, int64_t wait_ms, struct bl_err *err);

/* Calls the `done` of a request, and frees the request. */
struct bl_op;
void bl_door_answer(bizlock *b, struct bl_op *op);

#endif
