/* Ending connections, or their statements, from another one. Each KILL names a GET_LOCK that the
 * connection must have. A connection's number alone is not enough: it may be another connection's
 * by now. At another host, to which the client has gone over meanwhile, it always is. */
#ifndef BL_STORE_SESSION_KILL_H
#define BL_STORE_SESSION_KILL_H

#include "store/session/session.h"

/* Ends a connection that was lost, if it is still there: a statement that it has sent may not have
 * arrived yet, and must not arrive later. Waits until the connection has ended, a second at most: a
 * SKIP LOCKED would leave out rows that its last statement still has locked. CONN, NOMEM; what the
 * server refuses is ignored. */
int bl_kill_marked(struct bl_session *s, const struct bl_mark *mark, struct bl_err *err);

/* Ends the connection `by`, of any client, if it has the doorbell; for a doorbell whose holder is
 * known to be of no use any more. If the server refuses, the waiters wait for the end of the lease
 * that they saw. CONN, NOMEM. */
int bl_kill_keeper(struct bl_session *s, const char *bell, uint64_t by, struct bl_err *err);

/* Ends the statement that is under way on that connection: a watcher's sleep. CONN, NOMEM; what the
 * server refuses is ignored. */
int bl_kill_statement(struct bl_session *s, const struct bl_mark *mark, struct bl_err *err);

/* The SQL of a kill; what: "KILL" or "KILL QUERY". */
void bl_kill_add(struct bl_buf *ret, const char *what, const char *lock, uint64_t by);

#endif
