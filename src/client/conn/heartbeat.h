/* Heartbeats: while threads sleep at doorbells of a host, asks whether the host is still there,
 * twice in the time for one answer. At a frozen server they would sleep to the end of their waits,
 * and in a client with one thread nobody else would notice. A client with one host sends none:
 * there is no other host. */
#ifndef BL_CLIENT_CONN_HEARTBEAT_H
#define BL_CLIENT_CONN_HEARTBEAT_H

#include "client/conn/pool.h"

/* All with the mutex held. */

/* When the next heartbeat is due; BL_NEVER: none is needed now. */
bl_time bl_heartbeat_at(const struct bl_pool *p);

/* Asks each host that has sleepers and was not heard of lately; the mutex is free meanwhile. Wakes
 * the sleepers of a host that gives no answer: they look for another host. */
void bl_heartbeat_send(struct bl_pool *p);

#endif
