/* The one place that knows which connector bizlock is built against:
 * MariaDB Connector/C or libmysqlclient. The rest uses what both have. */
#ifndef BL_STORE_SESSION_CONNECTOR_H
#define BL_STORE_SESSION_CONNECTOR_H

#include <mysql.h>
#include <stdbool.h>

#include "core/config.h"

#ifdef MARIADB_PACKAGE_VERSION_ID
#if MARIADB_PACKAGE_VERSION_ID < 30100
#error "bizlock needs MariaDB Connector/C 3.1 or later"
#endif
#elif defined(MARIADB_BASE_VERSION) || MYSQL_VERSION_ID < 80016
#error "bizlock needs libmysqlclient 8.0.16 or later, or MariaDB Connector/C 3.1 or later"
#endif

#define BL_CONNECTOR_CHARSET "utf8mb4"

/* A handle with all options set, to be connected to `host` (NULL: the default) by
 * bl_connector_dial() and freed by mysql_close(). with_tls: over a network, with TLS or not at all,
 * even with ssl_mode "preferred". io_ms: for each read and write. NULL: out of memory. */
MYSQL *bl_connector_new(const struct bl_config *c, const char *host, bool with_tls, uint32_t io_ms);

/* Sets on a handle of the program's what bl_connector_dial() needs to connect it to `host`.
 * Timeouts that the program has set stay, and so do options that have nothing to do with
 * connecting. */
void bl_connector_prepare(MYSQL *mysql, const struct bl_config *c, const char *host, bool with_tls);

/* Connects. A program that this process starts does not inherit the connection: it would keep the
 * session and its doorbells when this process is long dead. */
bool bl_connector_dial(MYSQL *mysql, const struct bl_config *c, const char *host, unsigned port,
                       const char *database, unsigned long flags);

/* INVALID, CONN: this connector would ignore one of these options at `host`, so nobody must connect
 * there. */
int bl_connector_check(const struct bl_config *c, const char *host, struct bl_err *err);

/* After bl_connector_dial() of a handle, or NULL, has answered `connected`: OK if the connection
 * may be used. CONN, NOMEM. */
int bl_connector_judge(MYSQL *mysql, const struct bl_config *c, bool connected, struct bl_err *err);

/* After connecting failed: did it fail because the server asked for an authentication
 * plugin that was refused? Would the plugin be allowed with_tls? */
bool bl_connector_needs_tls(MYSQL *mysql, const struct bl_config *c, const char *host);

/* Does the connection have TLS? */
bool bl_connector_has_tls(MYSQL *mysql);

/* Is the handle connected, or was it, without a mysql_init() since? */
bool bl_connector_was_used(MYSQL *mysql);

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
