/* Connections that were lost while the server may still be at work for them. */
#ifndef BL_CLIENT_GHOSTS_H
#define BL_CLIENT_GHOSTS_H

#include "client/pool.h"

/* With the mutex held, all of them. */
void bl_ghosts_add(struct bl_pool *p, const struct bl_mark *mark);

/* Before anything else is sent on conn, which is lent to us: a late statement would come
 * after what a call does next, and undo it. CONN, NOMEM. */
int bl_ghosts_end(struct bl_pool *p, struct bl_conn *conn, struct bl_err *err);

#endif
