/* The loss watch: the thread that notices that a lease has ended, or the thread of a hold. It sends
 * nothing, so a server that hangs does not keep it waiting. It also calls the function of
 * bizlock_on_lost(), and cuts off statements that do not end, or that a close waits for too
 * long. */
#ifndef BL_CLIENT_HOLD_LOSS_H
#define BL_CLIENT_HOLD_LOSS_H

#include "base/worker.h"
#include "core/held.h"

/* The function that is told of losses: one of the two, or neither. */
struct bl_listener {
	void (*lost)(void *arg, bizlock_key key, uint64_t fence); /* of bizlock_on_lost() */
	void (*loss)(void *arg, const bizlock_loss *loss);        /* of bizlock_on_loss() */
	void *arg;
};

static inline bool bl_listener_is_set(const struct bl_listener *l)
{
	return l->lost || l->loss;
}

struct bl_loss_watch { /* guarded by the client's mutex */
	struct bl_worker worker;
	struct bl_worker stand_in; /* cuts off while `worker` is in the user's function */
	bl_time cut_at;            /* closing: connections that are still lent then are cut off */
	struct bl_list untold;     /* lost holds, in order */
	struct bl_listener listener;

	int fd;       /* readable: there is something to dispatch; -1: the loss watch tells */
	bool asked;   /* fd is readable */
	bool due;     /* losses are to be told by a dispatch */
	bool telling; /* a thread tells them now */
};

/* With the mutex held. note: puts a lost hold into the line of losses to tell. forget: takes it
 * out, if it is there. */
void bl_loss_note(struct bizlock *b, struct bl_hold *h);
void bl_loss_forget(struct bizlock *b, struct bl_hold *h);

/* Losses are told to the listener from here on. None: untold losses of holds that have ended are
 * dropped. */
void bl_loss_tell_to(struct bizlock *b, struct bl_listener listener);

int bl_loss_watch_start(struct bizlock *b, struct bl_err *err); /* NOMEM */
void bl_loss_watch_stop(struct bizlock *b); /* mutex free; takes a stopped one */

/* With the mutex held. fd: from the first call on, bizlock_dispatch() tells losses; -1: no
 * descriptor can be made. ask: makes the descriptor readable, if there is one. answer: makes it
 * unreadable. */
int bl_loss_fd(struct bizlock *b);
void bl_loss_ask_dispatch(struct bizlock *b);
void bl_loss_answer_dispatch(struct bizlock *b);

/* Mutex free: tells the losses that are due. Returns how many. */
unsigned bl_loss_dispatch(struct bizlock *b);

#endif
