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

	struct bl_request request; /* an acquisition's; of a renewal: lease_ms */
	struct bl_acquisition acquisition;

	/* A release of several keys is done in parts, a request for each key: so the parts go in
	 * batches, and each as far as it can. While they are under way, the release itself RUNS. */
	struct bl_list parts; /* that are not started yet */
	size_t parts_left;
	struct bl_op *whole; /* of a part */

	/* Of a release of one key, or a renewal. */
	bl_time patience;   /* until when it may try again */
	bl_time missing_at; /* bl_may_be_swapped() */
	bool maybe;         /* a try without an answer, or a batch, may have done it */
	unsigned pauses;

	bizlock_done *done;
	void *arg;
	int rc;
	size_t failed;   /* of a release in parts: the index of the key that has failed */
	unsigned native; /* see bl_err; */
	char *why;       /* with the key; NULL: no memory for it, or OK */

	/* All in one allocation. */
	char *note;
	bizlock_grant *grants; /* in the caller's order */
	size_t n;
	struct bl_member members[];
};

/* The members are for the caller to fill. NULL: no memory. note: NULL or text. */
struct bl_op *bl_op_new(size_t n, const char *note);
void bl_op_free(struct bl_op *op); /* takes NULL */

/* Makes it an acquisition, a release, or a renewal of one key. The calls of its members have
 * begun. request->note counts only as NULL or not: the text is op->note. INVALID: a key is there
 * twice; NOMEM. */
int bl_op_aim_acquire(struct bl_op *op, const struct bl_request *request);
int bl_op_aim_release(struct bl_op *op);
int bl_op_aim_renew(struct bl_op *op, uint32_t lease_ms);

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
int bl_op_release_last(struct bl_op *op);

/* Acts on what bl_op_step() has answered: parks the request, or ends it with rc. */
void bl_op_settle(struct bl_op *op, int rc);

/* Keeps the locks that it has got, or gives them back if the request was cancelled. Sets the result
 * for `done`. */
void bl_op_end(struct bl_op *op, int rc);

/* Frees a part that has ended, and returns the whole; NULL: other parts have yet to end. */
struct bl_op *bl_op_end_part(struct bl_op *part);

/* Ends what the request waits for, as an interrupt does. */
void bl_op_interrupt(struct bl_op *op);

#endif
