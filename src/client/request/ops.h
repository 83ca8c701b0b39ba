/* Requests of bizlock_async.h: any thread starts them, threads of the client's own run them, and a
 * thread that dispatches answers them. Functions are entered with the mutex free, unless they say
 * otherwise. */
#ifndef BL_CLIENT_REQUEST_OPS_H
#define BL_CLIENT_REQUEST_OPS_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/worker.h"
#include "store/row/lock.h"

struct bizlock;
struct bl_op;

/* The error of the request that a thread is at work on, and the row that it has seen last. */
struct bl_op_scratch {
	struct bl_err err;
	struct bl_row row;
};

struct bl_ops_worker {
	struct bl_worker worker;
	struct bizlock *client;
	bl_time since;    /* it is at work since then; 0: it is not */
	struct bl_op *op; /* for which it sleeps at a doorbell, or NULL */
	struct bl_op_scratch scratch;
};

struct bl_ops {                        /* guarded by the client's mutex */
	struct bl_ops_worker *workers; /* NULL until the first request */
	unsigned size;                 /* how many workers */
	unsigned at_work, at_bells;    /* workers at work, and asleep at doorbells */
	bool stop;
	atomic_int wake_fd; /* readable: look. -1 until the first request */
	bool asleep;        /* the first worker sleeps on wake_fd */
	unsigned wakes;     /* the client's, as last seen */
	struct bl_list all; /* requests that are not done */
	struct bl_list ready, done;
	struct bl_list cancelled; /* those of the ready ones that were cancelled */
	void *numbered;           /* `all` by their numbers: see op_number.h */
	uint64_t last_number;     /* that was given out */

	/* Requests that wait for a time: a heap, the earliest first. There is room for all
	 * requests. */
	struct bl_op **timed;
	size_t timed_count, timed_size;
};

void bl_ops_init(struct bl_ops *ops);

/* op is the client's from then on. ret: NULL, or gets its number. NOMEM: nothing is started. */
int bl_ops_start(struct bizlock *b, struct bl_op *op, uint64_t *ret, struct bl_err *err);

/* INVALID: no request had that number. */
int bl_ops_cancel(struct bizlock *b, uint64_t number, struct bl_err *err);

/* A descriptor that is readable while there is something to dispatch. -1: none can be made. */
int bl_ops_fd(struct bizlock *b);

/* The parts of a dispatch. dispatch: begins, and returns how many requests are done. take_done:
 * takes the first of them out of the line, or NULL; the caller answers it, calls told, and frees
 * it. dispatched: ends. */
size_t bl_ops_dispatch(struct bizlock *b);
struct bl_op *bl_ops_take_done(struct bizlock *b);
void bl_ops_told(struct bizlock *b, const struct bl_op *op);
void bl_ops_dispatched(struct bizlock *b);

/* Async-signal-safe; needs no mutex. */
void bl_ops_interrupt(struct bl_ops *ops);

/* For a close, which has interrupted all requests. Returns when they are done. Locks that were
 * acquired, but not answered yet, are given back. */
void bl_ops_stop(struct bizlock *b);

/* Frees what is left; in a forked child, too. */
void bl_ops_forget(struct bizlock *b);

#endif
