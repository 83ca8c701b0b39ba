/* Acquiring: one key, or several, all or none. An acquisition goes in steps, which wait for nothing
 * but answers of the server. A calling thread takes the steps of its own acquisition, and sleeps in
 * between; request threads (ops.h) take the steps of many. */
#ifndef BL_CLIENT_REQUEST_ACQUIRE_H
#define BL_CLIENT_REQUEST_ACQUIRE_H

#include "client/contest/contest.h"

/* members: call and index are set, the rest is zero; they are put in the order of the primary
 * key. ret: n grants in the caller's order. INVALID: a key is there twice. BUSY, TIMEOUT,
 * CANCELLED, LOST, LIMIT, UNKNOWN, CONN, DB, NOMEM: nothing was acquired. */
int bl_client_acquire(struct bl_member *members, size_t n, const struct bl_request *request,
                      bizlock_grant *ret);

/* Ends the waits of threads for call->key by call->owner. NOT_OWNER: there are none. */
int bl_client_cancel_wait(struct bl_call *call);

/* ---- step by step, with the mutex held ------------------------------------------------------ */

enum bl_acquire_phase {
	BL_ACQUIRE_BEGINS,   /* makes new holds, and finds those of its owner */
	BL_ACQUIRE_CONTENDS, /* for the rows of the new holds */
	BL_ACQUIRE_DEEPENS   /* re-enters the other holds */
};

struct bl_acquisition {
	struct bizlock *client;
	struct bl_member *members;
	size_t n;
	const struct bl_request *request;
	bl_time began, patience; /* patience: until when it waits for obstacles that calls of this
	                            client have left */
	enum bl_acquire_phase phase;
	size_t at; /* the member that begins, or deepens */
	unsigned pauses;
	bool taken;                /* the rows of the new holds */
	struct bl_contest contest; /* for the new holds; its `row` is the caller's */

	/* BL_PARKED: wait until `until`, or until `ends` is signalled; ends NULL: nothing is */
	bl_time until;
	pthread_cond_t *ends;

	struct bl_link waits; /* a thread's: in the client's list */

	struct bl_member *one; /* the arrays of a contest for one key */
	struct bl_goal *goal;
};

/* members, n, request: as of bl_client_acquire(). *a must not be moved from here on. INVALID,
 * NOMEM: only forget may follow. The mutex may be free. */
int bl_acquisition_begin(struct bl_acquisition *a, struct bl_member *members, size_t n,
                         const struct bl_request *request);

/* BL_PARKED: wait first. BL_AGAIN: its contest wants to go in a batch; pass the answer of
 * bl_attempt_answer() to go_on. Else the result of the acquisition. */
int bl_acquisition_step(struct bl_acquisition *a);
int bl_acquisition_go_on(struct bl_acquisition *a, int rc);

/* Grants all, or gives back what it has. */
void bl_acquisition_end(struct bl_acquisition *a, int rc, bizlock_grant *ret);
void bl_acquisition_forget(struct bl_acquisition *a); /* without a statement; may be repeated */

/* ---- also used by imports ------------------------------------------------------------------- */

/* The hold to work on, busy. An ACQUIRING hold is new. Waits while another call of this owner is at
 * work on the hold, or a row is in doubt. BUSY, TIMEOUT, CANCELLED, NOMEM. */
int bl_acquire_begin(struct bl_call *call, bool once, struct bl_hold **ret);

/* Ends the call's use of the hold. If not obtained: removed, or orphaned if its row may exist
 * (unsure). */
void bl_acquire_end(struct bizlock *b, struct bl_hold *h, bool unsure);

#endif
