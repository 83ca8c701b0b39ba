/* Lost connections: the server may still be at work for them, so each is killed
 * (store/session/kill.h). */
#ifndef BL_CLIENT_CONN_LOST_CONN_H
#define BL_CLIENT_CONN_LOST_CONN_H

#include "client/conn/pool.h"

/* Notes that conn has been lost. One note for each place of the pool and each host is enough: a
 * connection is used only after all that are noted of its host have been ended; and one that was
 * never used has sent nothing that could do harm. */
void bl_lost_conn_note(const struct bl_pool *p, struct bl_conn *conn);

/* Ends those that are noted of its server, before anything else is sent on conn, which is lent to
 * us: a late statement would come after what a call does next, and undo that. Those at another
 * host stay noted until a connection leads there. CONN, NOMEM. */
int bl_lost_conns_end(struct bl_pool *p, struct bl_conn *conn, struct bl_err *err);

/* Are any still noted? What they have sent may arrive at any time. */
bool bl_lost_conns_remain(const struct bl_pool *p);

#endif
