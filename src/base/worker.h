/* A thread that serves one owner, and sleeps until there is something to do. The owner's
 * mutex guards it. */
#ifndef BL_BASE_WORKER_H
#define BL_BASE_WORKER_H

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/err.h"

struct bl_worker {
	pthread_t thread;
	bool running, stop;
	bool ends;    /* the thread will not take the mutex again */
	bool at_work; /* and may let go of the mutex with something half done */
	pthread_cond_t wake;
	bl_time at; /* when it looks next */
};

/* w: all zero. arg: for run. NOMEM. */
int bl_worker_start(struct bl_worker *w, void *(*run)(void *arg), void *arg, struct bl_err *err);

/* With the mutex held: begin nothing more. */
void bl_worker_stop_soon(struct bl_worker *w);

/* Mutex free; returns when the thread has ended. Takes one that does not run. */
void bl_worker_stop(struct bl_worker *w, pthread_mutex_t *mu);

/* With the mutex held: joins a thread that ends, so that another one can be started. */
void bl_worker_join(struct bl_worker *w);

/* With the mutex held: there will be something to do at `when`. */
void bl_worker_by(struct bl_worker *w, bl_time when);

/* With the mutex held, by the thread itself: until w->at, which others may bring forward meanwhile,
 * or until it is to stop. What a thread does when it wakes may take a look at 10,000 holds: it is
 * not woken only because there will be something to do. */
void bl_worker_sleep(struct bl_worker *w, pthread_mutex_t *mu);

#endif
