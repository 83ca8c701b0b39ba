/* Merges acquisitions and releases of several threads or requests into a batch, which is one
 * transaction. A thread that finds the connection it needs at work puts a job into its line. The
 * thread that has the connection next takes all jobs along. A thread that finds it idle goes alone,
 * unless a batch has just ended there: then it waits a moment for those that were in that. */
#ifndef BL_CLIENT_CONN_COMBINE_H
#define BL_CLIENT_CONN_COMBINE_H

#include "client/state.h"

/* A batch costs a dozen statements: fewer jobs are done sooner one by one. */
#define BL_WORTH_A_BATCH 3

enum bl_combined {
	BL_COMBINED_LENT,     /* go alone, on *ret */
	BL_COMBINED_DONE,     /* in a batch; the job has its answers */
	BL_COMBINED_NOT_DONE, /* it did not suit the batch, or that failed, or its connection is
	                         gone; or another hold of this client has its doorbell */
	BL_COMBINED_STALLS,   /* a release, whose connection does not move: any other will do */
	BL_COMBINED_FAILED    /* the call's error says why: TIMEOUT, CANCELLED, as bl_pool_take() */
};

/* job: its entry and (acquisition) `bell` are set. Whatever the answer, job->entry.maybe tells
 * whether it may have been done.
 *
 * An acquisition rings its doorbell; once it is DONE, *job->bell says which connection has it. One
 * that shares rings none, and its row has to be judged. */
enum bl_combined bl_combine_acquire(struct bl_call *call, struct bl_job *job,
                                    struct bl_patience patience, struct bl_conn **ret);

/* A last release with the doorbell that connection `bell` has; 0: of one that shares. */
enum bl_combined bl_combine_release(struct bl_call *call, struct bl_job *job, uint64_t bell,
                                    struct bl_conn **ret);

/* A batch of jobs of requests, up to BL_BATCH_MAX, all of those that share or none, on a connection
 * that is lent and open for jobs. Those in its line go with them, and it is given back. Each job
 * ends DONE or, where it does not suit, ALONE. */
void bl_combine_batch(struct bizlock *b, struct bl_conn *conn, struct bl_job **jobs, size_t n,
                      struct bl_err *err);

#endif
