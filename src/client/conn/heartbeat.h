/* Asks a host, twice in the time for one answer, whether it is still there, while threads sleep at
 * its doorbells. A frozen server would let them sleep to the end of their waits, and with one
 * thread to a client nobody else would notice. With one host there would be nowhere to go. */
#ifndef BL_CLIENT_CONN_HEARTBEAT_H
#define BL_CLIENT_CONN_HEARTBEAT_H

#include "client/conn/pool.h"

/* All with the mutex held. */

/* When it is due; BL_NEVER: not now. */
bl_time bl_heartbeat_at(const struct bl_pool *p);

/* Sends a statement to each host of theirs that has not been heard of lately, with the mutex free
 * meanwhile. Wakes those whose host gives no answer: they look for another one. */
void bl_heartbeat_send(struct bl_pool *p);

#endif
