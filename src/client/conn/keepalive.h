/* Which idle connection needs a statement next, to stay alive while it has doorbells. A server ends
 * connections that have been idle for its wait_timeout, and their doorbells go with them: a waiter
 * at such a doorbell would wake early, and later waiters would find no doorbell. So a connection
 * with doorbells gets a statement in time. A connection without doorbells is replaced before the
 * server may end it in the midst of a request. */
#ifndef BL_CLIENT_CONN_KEEPALIVE_H
#define BL_CLIENT_CONN_KEEPALIVE_H

#include "client/conn/pool.h"

/* The connection that needs a statement next, by bl_pool_ask(), and when to look at it again.
 * NULL, BL_NEVER: there is none now. With the mutex held. */
struct bl_conn *bl_keepalive_next(const struct bl_pool *p, bl_time *ret_at);

#endif
