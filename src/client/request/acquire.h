/* Acquiring: one key, or several, all or none. It goes in steps, none of which waits for anything
 * but answers of the server: a thread that calls takes them, and sleeps in between; the threads of
 * requests (ops.h) take those of many. */
#ifndef BL_CLIENT_REQUEST_ACQUIRE_H
#define BL_CLIENT_REQUEST_ACQUIRE_H

#include "client/contest/contest.h"

/* members: call and index are set, the rest is zero; they are put in the order of the primary
 * key. ret: n grants in the caller's order. INVALID: a key is there twice. BUSY, TIMEOUT,
 * CANCELLED, LOST, LIMIT, UNKNOWN, CONN, DB, NOMEM: nothing was acquired. */
int bl_client_acquire(struct bl_member *members, size_t n, const struct bl_request *request,
                      bizlock_grant *ret);

/* ---- step by step, with the mutex held ------------------------------------------------------ */

enum bl_acquire_phase {
	BL_ACQUIRE_BEGINS,   /* its holds: the new ones, and those of its owners */
	BL_ACQUIRE_CONTENDS, /* for the new ones */
	BL_ACQUIRE_DEEPENS   /* the others */
};

struct bl_acquisition {
	struct bizlock *client;
	struct bl_member *members;
	size_t n;
	const struct bl_request *request;
	bl_time began, patience; /* patience: until when it waits for what calls of this client have
	                            left in the way */
	enum bl_acquire_phase phase;
	size_t at; /* the member that begins, or deepens */
	unsigned pauses;
	bool taken;                /* the new ones */
	struct bl_contest contest; /* for these; its `row` is the caller's */

	/* BL_PARKED: until then, or until it is signalled. ends NULL: not */
	bl_time until;
	pthread_cond_t *ends;

	struct bl_member *one; /* the arrays of a contest for one */
	struct bl_goal *goal;
};

/* members, n, request: as of bl_client_acquire(); it must not be moved from here on. INVALID,
 * NOMEM: only forget is left. The mutex may be free. */
int bl_acquisition_begin(struct bl_acquisition *a, struct bl_member *members, size_t n,
                         const struct bl_request *request);

/* BL_PARKED; BL_AGAIN: its contest wants to go in a batch, and go_on gets what bl_attempt_answer()
 * says of that. Else how it ends. */
int bl_acquisition_step(struct bl_acquisition *a);
int bl_acquisition_go_on(struct bl_acquisition *a, int rc);

/* Grants all, or gives back what it has. */
void bl_acquisition_end(struct bl_acquisition *a, int rc, bizlock_grant *ret);
void bl_acquisition_forget(struct bl_acquisition *a); /* without a statement */

/* ---- what an import shares ------------------------------------------------------------------ */

/* The hold to work on, busy. One that is ACQUIRING is new. Waits while another call of this
 * owner is at work on it, or a row is in doubt. BUSY, TIMEOUT, CANCELLED, NOMEM. */
int bl_acquire_begin(struct bl_call *call, bool once, struct bl_hold **ret);

/* Done with it. One that was not obtained ends; if its row may be there (unsure), as an orphan. */
void bl_acquire_end(struct bizlock *b, struct bl_hold *h, bool unsure);

#endif
