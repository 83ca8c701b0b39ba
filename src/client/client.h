/* The life of a client: made, opened, interrupted, counted, closed. All functions are entered
 * with the mutex free; bl_client_interrupt() with it held, too. */
#ifndef BL_CLIENT_CLIENT_H
#define BL_CLIENT_CLIENT_H

#include "client/state.h"

int bl_client_new(struct bizlock **ret, struct bl_err *err); /* NOMEM */

/* Called by the one thread that has made the client OPENING. */
int bl_client_open(struct bizlock *b, struct bl_err *err);

/* Closes the client if it is open, and frees it. answer: called with each request that has no
 * answer yet; it answers and frees the request. False: what it had to release may not be released.
 */
typedef void bl_answer_op(struct bizlock *b, struct bl_op *op);
bool bl_client_close(struct bizlock *b, bl_answer_op *answer);

/* Takes down all that bl_client_open() has built. forked: in a child, where only the memory is
 * ours. */
void bl_client_tear_down(struct bizlock *b, bool forked);

void bl_client_interrupt(struct bizlock *b); /* async-signal-safe */
void bl_client_stop(struct bizlock *b,
                    bool on); /* interrupts; while on, new calls begin interrupted */
void bl_client_on_lost(struct bizlock *b, struct bl_listener listener);
void bl_client_numbers(struct bizlock *b, bizlock_numbers *ret);

#endif
