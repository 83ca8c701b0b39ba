/* The one place that knows which connector bizlock is built against:
 * MariaDB Connector/C or libmysqlclient. The rest uses what both have. */
#ifndef BL_STORE_SESSION_CONNECTOR_H
#define BL_STORE_SESSION_CONNECTOR_H

#include <mysql.h>
#include <stdbool.h>

#include "core/config.h"

/* A handle with all options set, to be connected to `host` (NULL: the default) by
 * bl_connector_dial() and freed by mysql_close(). with_tls: over a network, with TLS or not at all,
 * even with ssl_mode "preferred". io_ms: for each read and write. NULL: out of memory. */
MYSQL *bl_connector_new(const struct bl_config *c, const char *host, bool with_tls, uint32_t io_ms);

/* Connects. A program that this process starts does not inherit the connection: it would keep the
 * session and its doorbells when this process is long dead. */
bool bl_connector_dial(MYSQL *mysql, const struct bl_config *c, const char *host, unsigned port,
                       const char *database, unsigned long flags);

/* INVALID, CONN: this connector would ignore one of these options at `host`, so nobody must connect
 * there. */
int bl_connector_check(const struct bl_config *c, const char *host, struct bl_err *err);

/* After connecting failed: the message. Did it fail because the server asked for an authentication
 * plugin that was refused? Would the plugin be allowed with_tls? */
const char *bl_connector_error(MYSQL *mysql);
bool bl_connector_refused_plugin(MYSQL *mysql);
bool bl_connector_needs_tls(MYSQL *mysql, const struct bl_config *c, const char *host);

/* After connecting: does the connection keep what ssl_mode asks for? */
bool bl_connector_tls_ok(MYSQL *mysql, const struct bl_config *c);

/* Has the last call failed? The number of an error that the server sends may be 0. */
bool bl_connector_failed(MYSQL *mysql);

bool bl_connector_reconnects(MYSQL *mysql); /* is automatic reconnection on? */

int bl_connector_fd(MYSQL *mysql); /* of the socket, for poll(); -1: none */

/* Has the server said something that was not read, or ended the connection? */
bool bl_connector_speaks(MYSQL *mysql);

/* From here on the handle's connection leads nowhere: nothing more comes, nothing that is said gets
 * to the server, and the handle can be freed at once. False: it could not be done. */
bool bl_connector_cut(MYSQL *mysql);

#endif
