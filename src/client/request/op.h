/* One request of bizlock_async.h, step by step. Threads that run requests (ops.h) take the steps;
 * nothing here waits for anything but the server's answer. */
#ifndef BL_CLIENT_REQUEST_OP_H
#define BL_CLIENT_REQUEST_OP_H

#include "bizlock_async.h"
#include "client/request/acquire.h"

enum bl_op_state {
	BL_OP_READY,  /* in the line of requests to run */
	BL_OP_RUNS,   /* a thread is at work on it */
	BL_OP_PARKED, /* it waits for its time, or for something that wakes it */
	BL_OP_SLEEPS, /* at the doorbell, by a thread of its own */
	BL_OP_DONE    /* its `done` is to be called */
};

enum bl_op_kind { BL_OP_ACQUIRES, BL_OP_RELEASES, BL_OP_RENEWS };

/* Guarded by the mutex. While it RUNS or SLEEPS, it is one thread's own but for `state`,
 * `cancelled` and `again`, and the place and hold in its contest (see client/state.h). */
struct bl_op {
	struct bl_link line; /* of READY, or of DONE requests */
	struct bl_link all;  /* of requests that are not DONE */
	uint64_t number;
	enum bl_op_state state;
	enum bl_op_kind kind;
	bool cancelled;
	bool again; /* it was woken while it ran, or slept */
	size_t at;  /* its place among the requests with a time (op_times.h), from 1 on; 0: none */
	bl_time until; /* the time */

	struct bl_member m;
	struct bl_request request; /* an acquisition's; of a renewal: lease_ms */
	struct bl_acquisition acquisition;

	/* Of a release or a renewal. */
	bl_time patience;   /* until when it may try again */
	bl_time missing_at; /* bl_may_be_swapped() */
	bool maybe;         /* a try without an answer, or a batch, may have done it */
	unsigned pauses;

	bizlock_done *done;
	void *arg;
	int rc;
	unsigned native; /* see bl_err; */
	char *why;       /* NULL: no memory for it, or OK */
	bizlock_grant grant;
	char note[];
};

/* NULL: no memory. note: NULL or text. The rest is the caller's. */
struct bl_op *bl_op_new(struct bizlock *b, const struct bl_key *key, const struct bl_owner *owner,
                        int64_t wait_ms, const char *note);
void bl_op_free(struct bl_op *op); /* takes NULL */

/* Makes it an acquisition. request->note counts only as NULL or not: the text is op->note. */
void bl_op_aim(struct bl_op *op, const struct bl_request *request);

/* A thread begins to work on the request, with a scratch of its own. */
void bl_op_use(struct bl_op *op, struct bl_op_scratch *scratch);

/* Takes the request as far as it goes without a wait. BL_PARKED: wait until op->until at most.
 * BL_AGAIN: it wants to go in a batch. Else its result, for bl_op_end(). */
int bl_op_step(struct bl_op *op);

/* The same for an acquisition that was in a batch, or slept at a doorbell. rc: the result of
 * that. */
int bl_op_go_on(struct bl_op *op, int rc);

/* A thread that has been at work for this long is taken to wait for a server: another thread runs
 * the other requests. */
#define BL_OP_STUCK_NS (10 * BL_NS_PER_MS)

/* Runs requests that want to go in a batch, up to BL_BATCH_MAX of them. ended: called with each
 * request, and with what bl_op_step() would answer now. */
void bl_op_batch(struct bizlock *b, struct bl_op **ops, size_t n, struct bl_op_scratch *scratch,
                 void (*ended)(struct bl_op *op, int rc));

/* Called by whatever the request waits for. */
void bl_op_wake(struct bl_op *op);

/* A release at its last level, alone: what bl_op_step() answers. */
int bl_op_release(struct bl_op *op);

/* Acts on what bl_op_step() has answered: parks the request, or ends it with rc. */
void bl_op_settle(struct bl_op *op, int rc);

/* Keeps the lock that it has got, or gives it back if the request was cancelled. Returns the result
 * for `done`. */
int bl_op_end(struct bl_op *op, int rc);

#endif
