/* Requests of several threads, sent together: whoever finds the connection it needs at
 * work leaves a job there, and the next one to have the connection takes all of them as
 * one batch. Nobody waits for company: who finds a connection idle goes alone. */
#ifndef BL_CLIENT_COMBINE_H
#define BL_CLIENT_COMBINE_H

#include "client/client.h"

/* For an acquisition that rings. *ret: go alone, on this connection. NULL, and the job
 * DONE: it was in a batch, and the job has its answers, and where its doorbell is, is
 * noted. NULL, and not DONE: another hold of this client has the doorbell. CANCELLED,
 * TIMEOUT; else as bl_pool_take(). */
int bl_combine_acquire(struct bl_call *call, struct bl_job *job, struct bl_patience patience,
                       struct bl_conn **ret);

/* For a last release with the doorbell that connection `bell` has. *ret as above; but
 * NULL and the job not DONE: that connection is gone, or its batch has failed. LEFT: it
 * does not move, and others than those who wait for its doorbell need not wait for it. */
int bl_combine_release(struct bl_call *call, struct bl_job *job, uint64_t bell,
                       struct bl_conn **ret);

#endif
