/* Lost connections: the server may still be at work for them, so each is killed
 * (store/session/kill.h). */
#ifndef BL_CLIENT_CONN_LOST_CONN_H
#define BL_CLIENT_CONN_LOST_CONN_H

#include "client/conn/pool.h"

/* Notes that conn was lost. One note for each place of the pool and each host is enough: a
 * connection is used only after all lost connections to its server have been ended, and a
 * connection that was never used has sent nothing that could do harm. */
void bl_lost_conn_note(const struct bl_pool *p, struct bl_conn *conn);

/* Ends the lost connections to the server of conn, which is lent to us, before anything else is
 * sent on it: a late statement of a lost connection would come after the call's next one, and undo
 * it. Lost connections to another host stay noted until a connection leads there. CONN, NOMEM. */
int bl_lost_conns_end(struct bl_pool *p, struct bl_conn *conn, struct bl_err *err);

/* Are any lost connections left? Their statements may arrive at any time. */
bool bl_lost_conns_remain(const struct bl_pool *p);

#endif
