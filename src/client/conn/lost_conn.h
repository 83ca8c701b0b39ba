/* Lost connections: the server may still be at work for them, so each is killed (store/kill.h). */
#ifndef BL_CLIENT_CONN_LOST_CONN_H
#define BL_CLIENT_CONN_LOST_CONN_H

#include "client/conn/pool.h"

/* Notes that conn has been lost. One note for each place of the pool is enough: a connection is
 * used only after all that are noted have been ended; and one that was never used has sent
 * nothing that could do harm. */
void bl_lost_conn_note(struct bl_conn *conn);

/* Ends all that are noted, before anything else is sent on conn, which is lent to us: a late
 * statement would come after what a call does next, and undo that. CONN, NOMEM. */
int bl_lost_conns_end(struct bl_pool *p, struct bl_conn *conn, struct bl_err *err);

#endif
