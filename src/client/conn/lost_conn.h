/* Connections that were lost while the server may still be at work for them. */
#ifndef BL_CLIENT_CONN_LOST_CONN_H
#define BL_CLIENT_CONN_LOST_CONN_H

#include "client/conn/pool.h"

/* conn has been lost. Each place of the pool has a note of one, which is enough: a connection
 * is used once all that are noted have been ended, and one that was not used has sent nothing
 * which could do harm. */
void bl_lost_conn_note(struct bl_conn *conn);

/* Before anything else is sent on conn, which is lent to us: a late statement would come
 * after what a call does next, and undo it. CONN, NOMEM. */
int bl_lost_conns_end(struct bl_pool *p, struct bl_conn *conn, struct bl_err *err);

#endif
