/* The thread that renews leases: all that are due by one statement, on its own connection.
 * It does nothing else, because whatever it waits for costs leases. A connection that gives no
 * answer is given up while there is time to renew by another one: see bl_lease_give_up().
 *
 * Its own connection, which is made half way to the first renewal, may be refused: by a server that
 * is full, or that knows another password by now. Then the renewer borrows one of the pool for each
 * round, before all others. As long as it has none of its own, one of the pool is kept for that. */
#ifndef BL_CLIENT_HOLD_RENEWER_H
#define BL_CLIENT_HOLD_RENEWER_H

#include <pthread.h>

#include "base/worker.h"
#include "store/row/many.h"

struct bl_hold;

struct bl_renewer { /* guarded by the client's mutex, but for the fields behind `room` */
	struct bl_worker worker;
	bl_time not_before;      /* after a failure */
	unsigned failures;       /* in a row */
	struct bl_err failure;   /* the last one */
	bool own;                /* it has a connection of its own */
	bl_time unprepared;      /* until then none is made */
	struct bl_session *at;   /* what the round under way uses: its own, or one of the pool's */
	struct bl_socket socket; /* of that connection, to be cut off */
	struct bl_item *items;
	size_t room;

	/* The thread's own. */
	struct bl_session session;
	struct bl_conn *borrowed; /* for this round, or NULL */
	bl_time connected_at;
	bl_time used_at;    /* when it was last sent something */
	int64_t offset_us;  /* server's clock less ours, 0: not known yet */
	int64_t vague_us;   /* by how much offset_us may be wrong */
	int64_t step_us;    /* by how much the server's clock was set the last time */
	bl_time stepped_at; /* when that was found; 0: it was not set */
};

int bl_renewer_start(struct bizlock *b, struct bl_err *err); /* NOMEM */
void bl_renewer_stop(struct bizlock *b);                     /* mutex free; takes a stopped one */
void bl_renewer_stop_soon(struct bizlock *b); /* with the mutex held: begin nothing more */

/* With the mutex held: the hold is to be renewed when it is due. */
void bl_renewer_by(struct bizlock *b, const struct bl_hold *h);

void bl_renewer_forget(struct bizlock *b); /* in a forked child */

#endif
