/* The thread that cleans up at the server: it removes orphans, keeps idle connections alive, and
 * sends heartbeats. Its statements may hang as long as the network does, and must not cost anybody
 * a lease: so this is not the renewer's work.
 *
 * Orphans are holds without an owner whose row or doorbell may still be at the server: an
 * acquisition ended UNKNOWN, a release failed, or a thread ended. The janitor also gives back the
 * doorbell of a lost hold that its owner has yet to release. */
#ifndef BL_CLIENT_GIVEBACK_JANITOR_H
#define BL_CLIENT_GIVEBACK_JANITOR_H

#include "base/worker.h"

struct bl_janitor { /* guarded by the client's mutex */
	struct bl_worker worker;
	bl_time not_before; /* after a failure */
	unsigned failures;  /* in a row */
};

int bl_janitor_start(struct bizlock *b, struct bl_err *err); /* NOMEM */

#endif
