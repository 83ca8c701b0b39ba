#include "store/session/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define OLDEST_MYSQL 80017u /* utf8mb4_0900_bin */
#define OLDEST_MARIADB 100600u

/* "10.11.19-MariaDB-0+deb12u1" -> 101119. A part of 100 or more counts as 99. */
static unsigned parse_version(const char *text)
{
	unsigned version = 0;

	for (int part = 0; part < 3; part++) {
		char *end;
		unsigned long n = strtoul(text, &end, 10);

		version = version * 100 + (n > 99 ? 99 : (unsigned)n);
		text = *end == '.' ? end + 1 : "";
	}
	return version;
}

struct variables {
	bool log_bin, statement, multi_primary;
	char hostname[256], port[16], id[16];
};

static void note_variable(struct bl_server *ret, struct variables *v, const char *name,
                          const char *value)
{
	bool on = strcasecmp(value, "ON") == 0;

	if (strcasecmp(name, "version") == 0)
		snprintf(ret->text, sizeof(ret->text), "%s", value);
	if (strncasecmp(name, "version", 7) == 0 && strcasestr(value, "mariadb"))
		ret->mariadb = true;
	if (strcasecmp(name, "hostname") == 0)
		snprintf(v->hostname, sizeof(v->hostname), "%s", value);
	if (strcasecmp(name, "port") == 0)
		snprintf(v->port, sizeof(v->port), "%s", value);
	if (strcasecmp(name, "server_id") == 0)
		snprintf(v->id, sizeof(v->id), "%s", value);
	ret->snapshot_isolation |= strcasecmp(name, "innodb_snapshot_isolation") == 0;
	ret->secure_timestamp |=
	        strcasecmp(name, "secure_timestamp") == 0 && strcasecmp(value, "NO") != 0;
	ret->rollback_on_timeout |= strcasecmp(name, "innodb_rollback_on_timeout") == 0 && on;
	ret->galera |= strcasecmp(name, "wsrep_on") == 0 && on;
	ret->group |= strcasecmp(name, "group_replication_group_name") == 0 && value[0];
	v->multi_primary |= strcasecmp(name, "group_replication_single_primary_mode") == 0 && !on;
	v->log_bin |= strcasecmp(name, "log_bin") == 0 && on;
	v->statement |=
	        strcasecmp(name, "binlog_format") == 0 && strcasecmp(value, "STATEMENT") == 0;
}

/* SHOW, because it leaves out what a server does not know, where SELECT @@x
 * would fail. */
#define VARIABLES                                                                                  \
	"SHOW SESSION VARIABLES WHERE Variable_name IN ('version', 'version_comment', "            \
	"'binlog_format', 'log_bin', 'innodb_snapshot_isolation', 'wsrep_on', 'hostname', "        \
	"'port', 'server_id', 'innodb_rollback_on_timeout', 'secure_timestamp', "                  \
	"'group_replication_group_name', 'group_replication_single_primary_mode')"
#define DATABASE "SELECT DATABASE()"

static void note_variables(struct bl_server *ret, struct bl_rows *rows)
{
	struct variables v = {.hostname = ""};
	MYSQL_ROW row;

	while ((row = bl_rows_next(rows)) != NULL)
		note_variable(ret, &v, row[0] ? row[0] : "", row[1] ? row[1] : "");
	ret->rollback_on_timeout &= ret->mariadb;
	ret->version = parse_version(ret->text);
	ret->read_committed = !(v.log_bin && v.statement);
	ret->several_primaries = ret->galera || (ret->group && v.multi_primary);
	if (!bl_server_in_cluster(ret))
		snprintf(ret->identity, sizeof(ret->identity), "%s:%s:%s", v.hostname, v.port,
		         v.id);
}

int bl_server_read(struct bl_session *s, struct bl_server *ret, struct bl_err *err)
{
	struct bl_server server = {0};
	struct bl_rows *rows;
	int rc = bl_session_query(s, VARIABLES, 2, &rows, err);

	if (rc == BIZLOCK_OK) {
		note_variables(&server, rows);
		bl_rows_free(rows);
		rc = bl_session_ask_word(s, DATABASE, server.database, sizeof(server.database),
		                         err);
	}
	if (rc != BIZLOCK_OK)
		return bl_err_wrap(err, "ask what the server is");
	*ret = server;
	return BIZLOCK_OK;
}

bool bl_server_too_old(const struct bl_server *server)
{
	return server->version < (server->mariadb ? OLDEST_MARIADB : OLDEST_MYSQL);
}

static int refuse_packet(int rc, struct bl_err *err)
{
	if (rc != BIZLOCK_DB)
		return rc;
	bl_err_wrap(err, "two statements in one packet");
	return err->code = BIZLOCK_UNSUPPORTED;
}

int bl_server_try_packet(struct bl_session *s, struct bl_err *err)
{
	static const char two[] = "DO 0;DO 0";

	return refuse_packet(bl_session_run(s, two, strlen(two), NULL, err), err);
}

struct reading {
	struct bl_server server;
	unsigned read; /* answers that fit their questions */
};

static void read_fact(void *arg, unsigned statement, struct bl_rows *rows)
{
	struct reading *r = arg;
	MYSQL_ROW row;

	if (!rows || rows->columns != (statement == 0 ? 2 : 1))
		return;
	r->read++;
	if (statement == 0) {
		note_variables(&r->server, rows);
		return;
	}
	row = bl_rows_next(rows);
	snprintf(r->server.database, sizeof(r->server.database), "%s", row && row[0] ? row[0] : "");
}

/* bl_server_read() and bl_server_try_packet() at once: a program may live for one lock only. */
static int read_in_packet(struct bl_session *s, struct bl_server *ret, struct bl_err *err)
{
	struct reading r = {.read = 0};
	int rc;

	bl_buf_reset(&s->text);
	bl_buf_adds(&s->text, VARIABLES ";" DATABASE);
	rc = refuse_packet(bl_session_each(s, 2, read_fact, &r, err), err);
	if (rc == BIZLOCK_OK && r.read != 2)
		rc = bl_session_refuse(s, err, "not the columns that were asked for");
	if (rc == BIZLOCK_OK)
		*ret = r.server;
	return rc == BIZLOCK_OK ? rc : bl_err_wrap(err, "ask what the server is");
}

/* A proxy may not know compounds; then batches and releases do without. They also do without where
 * error 1205 ends the transaction: they tell by an open transaction that COMMIT was not reached. */
static int try_compound(struct bl_session *s, struct bl_server *server, struct bl_err *err)
{
	static const char text[] = "BEGIN NOT ATOMIC DO 0;DO 0;END";
	struct bl_rows *none = NULL;
	int rc;

	if (!server->mariadb || server->rollback_on_timeout)
		return BIZLOCK_OK;
	rc = bl_session_send(s, text, strlen(text), err);
	if (rc == BIZLOCK_OK)
		rc = bl_session_answer(s, 0, &none, err);
	server->compound = rc == BIZLOCK_OK;
	if (rc != BIZLOCK_DB)
		return rc;
	bl_err_clear(err);
	return BIZLOCK_OK;
}

int bl_server_probe(struct bl_session *s, struct bl_server *ret, struct bl_err *err)
{
	struct bl_server server = {0};
	int rc = read_in_packet(s, &server, err);

	if (rc != BIZLOCK_OK)
		return rc;
	if (bl_server_too_old(&server))
		return bl_err_set(err, BIZLOCK_UNSUPPORTED,
		                  "server version %s is too old: bizlock needs " BL_SERVER_NEEDED,
		                  server.text);
	if (!server.read_committed)
		return bl_err_set(err, BIZLOCK_UNSUPPORTED,
		                  "binlog_format=STATEMENT refuses writes under READ COMMITTED "
		                  "(error 1665): set binlog_format to MIXED or ROW");
	rc = try_compound(s, &server, err);
	if (rc == BIZLOCK_OK)
		*ret = server;
	return rc;
}
