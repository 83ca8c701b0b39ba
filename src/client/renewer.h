/* The thread that renews leases, and that cleans up at the server what calls
 * could not: on a connection of its own, all that is due in one statement. */
#ifndef BL_CLIENT_RENEWER_H
#define BL_CLIENT_RENEWER_H

#include <pthread.h>

#include "store/many.h"

struct bl_renewer { /* guarded by the client's mutex, but for what follows `room` */
	pthread_t thread;
	bool running, stop;
	bool at_work; /* without the mutex */
	pthread_cond_t wake;
	bl_time at;         /* when it has something to do */
	bl_time not_before; /* after a failure */
	unsigned failures;  /* in a row */
	int fd;             /* of the connection, to be cut off; -1: none */
	struct bl_item *items;
	size_t room;

	/* Its own. */
	struct bl_session session;
	bool plain;        /* the server does not take the statement that skips locked rows */
	int64_t offset_us; /* server's clock less ours, 0: not known yet */
	int64_t vague_us;  /* that may be off by so much */
	int64_t step_us;   /* by which it was found set in this round, or 0 */
};

int bl_renewer_start(struct bizlock *b, struct bl_err *err); /* NOMEM */
void bl_renewer_stop(struct bizlock *b);                     /* mutex free; takes a stopped one */
void bl_renewer_stop_soon(struct bizlock *b); /* with the mutex held: begin nothing more */

void bl_renewer_forget(struct bizlock *b); /* in a forked child */

/* With the mutex held: there will be something to do. */
void bl_renewer_by(struct bizlock *b, bl_time when);

#endif
