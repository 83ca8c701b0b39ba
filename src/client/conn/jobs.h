/* The line at a connection: acquisitions and last releases that may go together as a batch. The
 * client's mutex guards it; but a job that RUNS belongs to its leader until the leader has ended
 * it. */
#ifndef BL_CLIENT_CONN_JOBS_H
#define BL_CLIENT_CONN_JOBS_H

#include "base/event.h"
#include "base/list.h"
#include "store/batch/batch.h"

enum bl_job_state {
	BL_JOB_WAITS,    /* in line */
	BL_JOB_RUNS,     /* in a batch that another thread runs */
	BL_JOB_LEADS,    /* its thread has the connection now */
	BL_JOB_DONE,     /* was in a batch */
	BL_JOB_ALONE,    /* its connection is gone, or it does not suit a batch */
	BL_JOB_WITHDRAWN /* out of the line: its connection stalls, or its thread gave up */
};

struct bl_job { /* lives on the stack of its thread; that of a request, in struct op_batch */
	struct bl_link link;
	enum bl_job_state state;
	bool waited_for;       /* its thread waits until `ended` is set */
	struct bl_event ended; /* is set a while after the state is LEADS, DONE or ALONE */
	struct bl_entry entry;
	uint64_t *bell; /* of an acquisition: becomes the connection that has the doorbell */

	/* DONE */
	int rc;
	struct bl_err *err;
	bl_time sent; /* see bl_batch_run() */
};

/* The first job, or NULL. next: takes it out of the line. */
struct bl_job *bl_jobs_first(const struct bl_list *jobs);
struct bl_job *bl_jobs_next(struct bl_list *jobs);

/* Wakes its thread, if one waits: the job is that thread's again. */
void bl_job_wake(struct bl_job *job);

void bl_job_end(struct bl_job *job, enum bl_job_state state); /* sets the state, and wakes */

#endif
