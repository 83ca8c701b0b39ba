/* Does an address lead to one server?
 *
 * A proxy may stand there, or DNS may give the name several addresses. After a failover the address
 * leads to another server than before, and this is well. But if it leads to two servers by turns,
 * and they do not share their tables, both give the same lock. */
#ifndef BL_STORE_HOSTS_ONE_SERVER_H
#define BL_STORE_HOSTS_ONE_SERVER_H

#include "store/session/session.h"

/* s is new, and config's only host led to the server `before` until now. Connects again, a few
 * times: CONN if one of these connections reaches `before`, and `before` still takes writes.
 * *ret_shared, and no error: both servers are primaries of one group. */
int bl_one_server_check(const struct bl_config *config, const char *before, struct bl_session *s,
                        bool *ret_shared, struct bl_err *err);

/* Connects a few times more than the caller, who has s. ret_other: another server that one of these
 * connections reaches, and that shares no tables with the server of s; "": there is none. CONN, DB,
 * NOMEM. */
int bl_one_server_look(const struct bl_config *config, struct bl_session *s,
                       char ret_other[BL_IDENTITY_MAX + 1], struct bl_err *err);

#endif
