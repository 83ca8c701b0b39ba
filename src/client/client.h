/* The life of a client: made, opened, interrupted, counted, closed. All functions are entered
 * with the mutex free; bl_client_interrupt() with it held, too. */
#ifndef BL_CLIENT_CLIENT_H
#define BL_CLIENT_CLIENT_H

#include "client/state.h"

int bl_client_new(struct bizlock **ret, struct bl_err *err); /* NOMEM */

/* By the one thread that has made it OPENING. */
int bl_client_open(struct bizlock *b, struct bl_err *err);

/* Closes what is open, and frees. answer: called with each request, which it answers and frees. */
typedef void bl_answer_op(struct bizlock *b, struct bl_op *op);
void bl_client_close(struct bizlock *b, bl_answer_op *answer);

/* Takes down what open has built. forked: nothing of it is ours but the memory. */
void bl_client_tear_down(struct bizlock *b, bool forked);

void bl_client_interrupt(struct bizlock *b);     /* async-signal-safe */
void bl_client_stop(struct bizlock *b, bool on); /* and its callers begin interrupted, while on */
void bl_client_on_lost(struct bizlock *b, bl_lost_fn *fn, void *arg);
void bl_client_numbers(struct bizlock *b, bizlock_numbers *ret);

#endif
