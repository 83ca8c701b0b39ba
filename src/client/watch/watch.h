/* Waits for which no connection is left to sleep on: a few connections watch all their keys
 * (store/watch/watched.h). A thread of the client's own looks after these connections; it is
 * started by the first such wait. Functions are entered with the client's mutex held. */
#ifndef BL_CLIENT_WATCH_WATCH_H
#define BL_CLIENT_WATCH_WATCH_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/worker.h"
#include "store/watch/watched.h"

struct bizlock;
struct bl_call;
struct bl_conn;

enum bl_watched_end {
	BL_WATCH_WAITS,
	BL_WATCH_FREE,   /* nobody holds it, or its lease is over */
	BL_WATCH_LOOK,   /* it is time to look: the lease that was seen last ends about now */
	BL_WATCH_DIRECT, /* a connection to sleep at the doorbell can be had */
	BL_WATCH_NO      /* it is not watched, was interrupted, or has waited to the end */
};

/* One wait. It belongs to the thread or request that waits, and to a watcher, too, while one has
 * it: the last of the two to leave frees it. */
struct bl_watch_wait {
	struct bl_watched watched; /* the watcher's */
	struct bl_link age;
	pthread_cond_t ends;
	void (*woken)(
	        struct bl_watch_wait *); /* a request's: called instead of a signal; or NULL */
	struct bl_place *whose;          /* the place of that request */
	enum bl_watched_end answer;
	bool silent;  /* a release of its key rings no doorbell: it is looked at often */
	bool left;    /* by its thread, or request */
	bool has_one; /* a watcher has it */
	bl_time since, until;
	_Alignas(struct bl_key) char key[]; /* the used part of a struct bl_key */
};

struct bl_watch {
	struct bl_worker worker;
	atomic_int wake_fd;          /* readable: look. -1 until the first wait */
	struct bl_list waits;        /* the oldest first */
	struct bl_watch_wait *fresh; /* the oldest wait that no watcher has */
	unsigned threads;            /* that wait */
	struct bl_watcher *watchers;
	unsigned size;      /* how many watchers there may be */
	bl_time not_before; /* after a connection that could not be made */
	unsigned wakes;     /* the client's `wakes`, as last seen */
};

void bl_watch_init(struct bl_watch *w);

/* Threads that wait here look whether their waits were interrupted. */
void bl_watch_check_all(struct bizlock *b);

/* What is waited for. */
struct bl_watch_for {
	struct bl_watched watched; /* its key is copied */
	bool silent;               /* see struct bl_watch_wait */
	bl_time until; /* a shared lock is looked at then at the latest; else BL_NEVER */
};

/* Returns when the key seems to be free, at the deadline, or interrupted. Lets go of the mutex. */
enum bl_watched_end bl_watch_wait(struct bl_call *call, const struct bl_watch_for *what,
                                  bl_time end);

/* For a request, which does not wait here. join: NULL if it is not watched. leave: the end of the
 * wait; its answer is read before. */
struct bl_watch_wait *bl_watch_join(struct bizlock *b, const struct bl_watch_for *what);
void bl_watch_leave(struct bizlock *b, struct bl_watch_wait *wait);

/* When the waiter has to look for itself: at `end`, or soon while no watcher has the wait. */
bl_time bl_watch_look_at(const struct bl_watch_wait *wait, bl_time end);

/* Called by the watch thread. answer: what became of a wait. let_go: no watcher has it any more. */
void bl_watch_answer(struct bl_watch_wait *wait, enum bl_watched_end answer);
void bl_watch_let_go(struct bl_watch_wait *wait);

/* If one more connection may sleep at a doorbell, and one is idle, the oldest wait gets it, first
 * of those for hot keys; its thread then promotes the next wait. */
void bl_watch_promote(struct bizlock *b);

/* Async-signal-safe; needs no mutex. */
void bl_watch_interrupt(struct bl_watch *w);

/* Mutex free; no thread waits any more. */
void bl_watch_stop(struct bizlock *b);
void bl_watch_forget(struct bizlock *b); /* in a forked child */

#endif
