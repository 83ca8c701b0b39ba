/* Merges acquisitions and releases of several threads or requests into a batch, which is one
 * transaction. A thread that needs a connection which is in use puts a job into the line of that
 * connection. The thread that gets the connection next runs all these jobs. A thread that finds the
 * connection idle goes alone; if a batch has just ended there, it first waits a moment for the
 * threads of that batch. */
#ifndef BL_CLIENT_CONN_COMBINE_H
#define BL_CLIENT_CONN_COMBINE_H

#include "client/state.h"

/* A batch costs a dozen statements: fewer jobs are done sooner one by one. */
#define BL_WORTH_A_BATCH 3

enum bl_combined {
	BL_COMBINED_LENT,     /* go alone, on *ret */
	BL_COMBINED_DONE,     /* in a batch; the job has its answers */
	BL_COMBINED_NOT_DONE, /* the job did not suit the batch, the batch failed, or the connection
	                         is gone; or another hold of this client has the doorbell */
	BL_COMBINED_STALLS,   /* a release, whose connection stalls: any other will do */
	BL_COMBINED_FAILED    /* the call's error says why: TIMEOUT, CANCELLED, as bl_pool_take() */
};

/* job: its entry and (acquisition) `bell` are set. Whatever the answer, job->entry.maybe tells
 * whether the job may have been done.
 *
 * An acquisition takes the doorbell; once the job is DONE, *job->bell is the connection that has
 * it. A job that shares takes no doorbell, and the caller has to judge its row. */
enum bl_combined bl_combine_acquire(struct bl_call *call, struct bl_job *job,
                                    struct bl_patience patience, struct bl_conn **ret);

/* A last release. bell: the connection that has the doorbell; 0: the hold shares the lock. */
enum bl_combined bl_combine_release(struct bl_call *call, struct bl_job *job, uint64_t bell,
                                    struct bl_conn **ret);

/* Runs jobs of requests as one batch: up to BL_BATCH_MAX, all of them shared or none, on a
 * connection that is lent and open for jobs. Jobs in its line go along. The connection is given
 * back. Each job ends DONE or, if it does not suit, ALONE. */
void bl_combine_batch(struct bizlock *b, struct bl_conn *conn, struct bl_job **jobs, size_t n,
                      struct bl_err *err);

#endif
