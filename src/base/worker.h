/* A background thread with one owner: it sleeps until there is work. The owner's mutex guards the
 * struct. */
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
	bool at_work; /* the thread may release the mutex with work half done */
	pthread_cond_t wake;
	bl_time at; /* when the thread looks for work next */
};

/* Starts the thread. w: all zero. arg: for run. NOMEM. */
int bl_worker_start(struct bl_worker *w, void *(*run)(void *arg), void *arg, struct bl_err *err);

/* With the mutex held: tells the thread to begin no more work. */
void bl_worker_stop_soon(struct bl_worker *w);

/* With the mutex free: stops the thread, and returns when it has ended. Takes a worker that does
 * not run. */
void bl_worker_stop(struct bl_worker *w, pthread_mutex_t *mu);

/* With the mutex held: joins the thread if it ends, so that a new thread can be started. */
void bl_worker_join(struct bl_worker *w);

/* With the mutex held: there will be work at `when`. */
void bl_worker_by(struct bl_worker *w, bl_time when);

/* With the mutex held, called by the thread itself: sleeps until w->at, which others may bring
 * forward meanwhile, or until it is to stop. It returns only then: the thread may look at 10,000
 * holds each time it wakes. */
void bl_worker_sleep(struct bl_worker *w, pthread_mutex_t *mu);

#endif
