/* A server ends connections that have been idle for its wait_timeout, and with a connection
 * go its doorbells: whoever waits at one would be rung early, and whoever comes later finds
 * no doorbell to wait at. So one that has doorbells gets a statement in time, and one that
 * has none is replaced before the server may end it in the midst of a request. */
#ifndef BL_CLIENT_CONN_KEEPALIVE_H
#define BL_CLIENT_CONN_KEEPALIVE_H

#include "client/conn/pool.h"

/* All with the mutex held. */

/* *ret_at: when to look again, BL_NEVER: when there is a connection. The connection that
 * needs a statement then, or NULL. */
struct bl_conn *bl_keepalive_next(const struct bl_pool *p, bl_time *ret_at);

/* Sends it; the mutex is free meanwhile. */
void bl_keepalive_send(struct bl_pool *p, struct bl_conn *conn);

#endif
