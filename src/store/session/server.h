/* What kind of server this is, and whether bizlock can work with it. */
#ifndef BL_STORE_SESSION_SERVER_H
#define BL_STORE_SESSION_SERVER_H

#include "store/session/session.h"

struct bl_server {
	bool mariadb;
	bool read_committed;      /* false: binlog_format=STATEMENT refuses writes under it */
	unsigned version;         /* 100619 for 10.6.19 */
	bool snapshot_isolation;  /* MariaDB knows innodb_snapshot_isolation */
	bool rollback_on_timeout; /* MariaDB: error 1205, NOWAIT's, ends the transaction */
	bool secure_timestamp;    /* MariaDB: sessions of plain users may not set their clock */
	bool compound;            /* MariaDB: it and every proxy on the way take BEGIN NOT ATOMIC */
	bool galera;              /* a node of Galera */
	bool group;               /* a member of a group (MySQL's group replication) */
	bool several_primaries;   /* its cluster takes writes at other members, too, at this moment:
	                             only COMMIT finds out what two of them have changed */
	char identity[BL_IDENTITY_MAX + 1]; /* "": a member of a cluster, which shares its tables */
	char text[64];                      /* the version, as the server says it */
	char database[64 * 4 + 1];
};

/* The facts, without a judgement. CONN, DB. */
int bl_server_read(struct bl_session *s, struct bl_server *ret, struct bl_err *err);

#define BL_SERVER_NEEDED "MySQL 8.0.17 or MariaDB 10.6, or later"
bool bl_server_too_old(const struct bl_server *server);

static inline bool bl_server_in_cluster(const struct bl_server *server)
{
	return server->galera || server->group;
}

/* UNSUPPORTED: something on the way takes no packet with several statements, as MySQL Router does
 * while it shares connections. CONN. */
int bl_server_try_packet(struct bl_session *s, struct bl_err *err);

/* CONN, DB; UNSUPPORTED: too old, refuses READ COMMITTED writes, or that packet. */
int bl_server_probe(struct bl_session *s, struct bl_server *ret, struct bl_err *err);

#endif
