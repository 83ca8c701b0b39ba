/* The thread that looks after what lies at the server: it removes rows and doorbells that
 * calls could not give back, and keeps connections alive that have doorbells. A statement
 * of its own may hang as long as the network does, and must not cost anybody a lease: so
 * it is not the renewer's work. */
#ifndef BL_CLIENT_LOCK_JANITOR_H
#define BL_CLIENT_LOCK_JANITOR_H

#include "base/worker.h"

struct bl_janitor { /* guarded by the client's mutex */
	struct bl_worker worker;
	bl_time not_before; /* after a failure */
	unsigned failures;  /* in a row */
};

int bl_janitor_start(struct bizlock *b, struct bl_err *err); /* NOMEM */

#endif
