/* The server under test, and SQL to look at it from outside. The statements are common to MySQL and
 * MariaDB. A call that fails ends the test. */
#ifndef TEST_DB_H
#define TEST_DB_H

#include <mysql.h>
#include <stdbool.h>
#include <stddef.h>

struct server {
	char host[128], socket[108], user[64], password[128], tls_ca[256];
	unsigned port;
	bool plain; /* without TLS, which hides the packets from a proxy */
};

/* From BIZLOCK_TEST_HOST, _PORT, _SOCKET, _USER, _PASSWORD, _TLS_CA; plain where bizlock's
 * clients are, by BIZLOCK_SSL_MODE. */
struct server server_from_env(void);

/* The same server, by host and port alone. */
struct server server_over_tcp(struct server at, const char *host, unsigned port);

/* schema: may be NULL. One text may hold several statements. */
MYSQL *db_open(const struct server *at, const char *schema);

/* The same, with flags of mysql_real_connect(), and a time limit in seconds for each read (0:
 * none). */
MYSQL *db_connect(const struct server *at, const char *schema, unsigned long flags,
                  unsigned read_s);

/* MySQL, and not MariaDB. */
bool server_is_mysql(MYSQL *db);

void db_run(MYSQL *db, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* False: the server refused. */
bool db_try(MYSQL *db, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The first field of the first row; dies if there is none or it is NULL. */
long long db_number(MYSQL *db, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* All rows, a line each, fields parted by '|', NULL as "NULL". To be freed. */
char *db_text(MYSQL *db, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The bytes of s as an SQL literal. Static storage, eight calls deep. */
const char *db_literal(const char *s);

/* A number of SHOW GLOBAL STATUS; -1: there is no such name. */
long long db_status(MYSQL *db, const char *name);

/* How many InnoDB deadlocks the server has seen since it started. */
long long db_deadlocks(MYSQL *db);

#endif
