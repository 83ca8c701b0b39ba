/* A holder of this host whose process is gone: its lease is ended at once. */
#ifndef BL_CLIENT_CONTEST_CRASHED_H
#define BL_CLIENT_CONTEST_CRASHED_H

#include "client/contest/contest.h"

/* After a look that found c->row held. BL_AGAIN: its lease has been ended, so look again, and take
 * the lock over as after any lease. OK: the lease decides. TIMEOUT, CANCELLED, CONN, DB, NOMEM. The
 * mutex is let go of. */
int bl_crashed_end_lease(struct bl_contest *c);

#endif
