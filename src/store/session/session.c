/* Opens and closes sessions: settings, whether the server is of use, the mark of the connection. */
#include "store/session/session.h"

#include <errmsg.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/rnd.h"
#include "core/hosts.h"
#include "store/session/errclass.h"
#include "store/session/settings.h"

#define TEXT_MAX (1 << 20)

/* ---- whether the server is of use ---------------------------------------------------------- */

/* Of several hosts only a host that takes writes is of use: a replica would show the rows of a
 * moment ago. The variable is a number, or since MariaDB 12 a word. */
#define READ_ONLY "CAST(@@global.read_only AS CHAR) NOT IN ('0', 'OFF')"

/* A server that has left its group, and failed to join it again, takes writes: two such servers
 * could give one lock to two owners. A server that does not reach most of the others takes no
 * writes: a commit hangs there until the server is expelled. A user may have no right to see the
 * state. */
#define NO_MEMBER                                                                                  \
	"@@performance_schema AND (SELECT NOT IFNULL(MAX(MEMBER_ID = @@server_uuid AND "           \
	"MEMBER_STATE = 'ONLINE'), 0) OR 2 * SUM(MEMBER_STATE = 'UNREACHABLE') >= COUNT(*) "       \
	"FROM performance_schema.replication_group_members)"

/* A KILL QUERY that was meant for an earlier statement may end a question, but not this many. */
#define TRIES 8

/* Counts as a server that is not there: it may be of use again later. */
static int refuse_server(struct bl_err *err, const char *what)
{
	bl_err_set(err, BIZLOCK_CONN, "the server is %s", what);
	err->refused = ER_OPTION_PREVENTS_STATEMENT;
	return err->code;
}

static int ask(struct bl_session *s, const char *query, const char *what, struct bl_err *err)
{
	int64_t is = 0;
	int rc = bl_session_ask(s, query, strlen(query), NULL, &is, err);

	if (rc == BIZLOCK_OK && is)
		return refuse_server(err, what);
	return rc;
}

static int be_member(struct bl_session *s, struct bl_err *err)
{
	int rc = ask(s, "SELECT " NO_MEMBER,
	             "not an online member of its group, or has no majority", err);

	if (rc != BIZLOCK_DB || err->native != ER_TABLEACCESS_DENIED_ERROR)
		return rc;
	s->blind = true;
	bl_err_clear(err);
	return BIZLOCK_OK;
}

int bl_session_takes_writes(struct bl_session *s, struct bl_err *err)
{
	int rc = ask(s, "SELECT " READ_ONLY, "read-only", err);

	return rc == BIZLOCK_OK && s->in_group && !s->blind ? be_member(s, err) : rc;
}

static int turn_away(struct bl_session *s, unsigned native, const struct bl_err *why,
                     struct bl_err *err)
{
	s->gone = s->away = true;
	bl_connector_cut(s->mysql);
	return bl_err_native(err, native, why->msg);
}

int bl_session_recheck(struct bl_session *s, struct bl_err *err)
{
	struct bl_err why;
	int rc;

	s->asked_at = bl_now();
	bl_err_clear(&why);
	rc = bl_session_takes_writes(s, &why);
	if (rc == BIZLOCK_OK || bl_was_stopped(&why))
		return BIZLOCK_OK; /* the question says nothing about the member then */
	return turn_away(s, CR_SERVER_GONE_ERROR, &why, err);
}

/* A commit that the group has certified has one of the group's GTIDs. A commit that the member made
 * alone, because it was about to leave, or to come back, has a GTID of the server's own, and nobody
 * else will ever see it. */
static void note_gtid(struct bl_session *s)
{
	const char *gtid;
	size_t len;

	if (!(s->mysql->server_status & SERVER_SESSION_STATE_CHANGED) ||
	    mysql_session_track_get_first(s->mysql, SESSION_TRACK_GTIDS, &gtid, &len) != 0)
		return;
	s->wrote = false;
	s->alone |= len > strlen(s->uuid) && strncasecmp(gtid, s->uuid, strlen(s->uuid)) == 0;
}

int bl_session_note_rows(struct bl_session *s, uint64_t affected, struct bl_err *err)
{
	if (affected == UINT64_MAX)
		return bl_session_lost(s, err, "the answer does not count rows");
	if (!s->in_group)
		return BIZLOCK_OK;
	s->wrote |= !s->blind && affected > 0;
	note_gtid(s);
	return BIZLOCK_OK;
}

int bl_session_vouch(struct bl_session *s, struct bl_err *err)
{
	struct bl_err why;
	int tries = 0, rc;

	if (s->alone) {
		bl_err_set(&why, BIZLOCK_CONN, "the server has committed without its group");
		return turn_away(s, CR_SERVER_LOST, &why, err);
	}
	if (!s->wrote)
		return BIZLOCK_OK;
	s->wrote = false;
	if (s->gone)
		return bl_err_native(err, CR_SERVER_LOST, "lost before its member was seen online");
	s->asked_at = bl_now();
	do {
		bl_err_clear(&why);
		rc = be_member(s, &why);
	} while (rc != BIZLOCK_OK && bl_was_stopped(&why) && ++tries < TRIES);
	return rc == BIZLOCK_OK ? rc : turn_away(s, CR_SERVER_LOST, &why, err);
}

/* ---- what a session says and asks at first -------------------------------------------------- */

#define IDLE_MAX_S (365 * 24 * 3600) /* the largest wait_timeout, by the servers' manuals */

/* Gives the connection its mark, and asks how long it may be idle, and to which server it leads.
 * Where there are no named locks, nothing is lost with a connection. */
static int mark_session(struct bl_session *s, struct bl_err *err)
{
	struct bl_mark *mark = &s->mark;
	uint8_t number[16];
	int64_t id, idle_s;
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc;

	if (!bl_random_bytes(number, sizeof(number)))
		return BIZLOCK_OK;
	snprintf(mark->name, sizeof(mark->name), "bizlock:");
	for (size_t i = 0, at = strlen(mark->name); i < sizeof(number); i++, at += 2)
		snprintf(mark->name + at, sizeof(mark->name) - at, "%02x", number[i]);
	bl_buf_reset(&s->text);
	bl_buf_addf(
	        &s->text,
	        "SELECT GET_LOCK('%s', 0) * CONNECTION_ID(), @@SESSION.wait_timeout, " BL_IDENTITY
	        ", @@SESSION.max_allowed_packet",
	        mark->name);
	rc = bl_session_query_text(s, 4, &rows, err);
	row = rc == BIZLOCK_OK ? bl_rows_next(rows) : NULL;
	id = row ? bl_rows_number(row[0]) : 0;
	idle_s = row ? bl_rows_number(row[1]) : 0;
	s->packet_max = row ? bl_rows_u64(row[3]) : 0;
	snprintf(s->server, sizeof(s->server), "%s", row && row[2] ? row[2] : "");
	if (rc == BIZLOCK_OK)
		bl_rows_free(rows);
	mark->id = (uint64_t)id;
	if (id <= 0)
		mark->name[0] = '\0';
	if (idle_s > 0 && idle_s <= IDLE_MAX_S)
		s->idle_max = idle_s * 1000 * BL_NS_PER_MS;
	return s->gone || rc == BIZLOCK_NOMEM ? rc : BIZLOCK_OK;
}

/* Nothing that was set for everybody may change what our statements mean: settings.c has the table,
 * one row for each variable, and why. */
static int settle(struct bl_session *s, const struct bl_config *c, struct bl_err *err)
{
	int rc;

	bl_settings_all(&s->text, c->database, s->in_group);
	rc = bl_session_run_text(s, NULL, err);
	if (rc != BIZLOCK_OK)
		return bl_err_wrap(err, "session settings");
	if (s->in_group)
		rc = bl_session_ask_word(s, "SELECT @@server_uuid", s->uuid, sizeof(s->uuid), err);
	if (rc == BIZLOCK_OK && (bl_hosts_several(c->host) || s->in_group))
		rc = bl_session_takes_writes(s, err);
	return rc == BIZLOCK_OK ? mark_session(s, err) : rc;
}

/* ---- opening and closing ------------------------------------------------------------------- */

static bool dial_host(struct bl_session *s, const struct bl_config *c, const struct bl_host *host,
                      const char *name, const char *database, bool with_tls)
{
	/* Affected rows must mean changed rows: no CLIENT_FOUND_ROWS. */
	unsigned long flags = CLIENT_MULTI_STATEMENTS;

	s->mysql = bl_connector_new(c, name, with_tls, s->io_ms);
	return s->mysql && bl_connector_dial(s->mysql, c, name, host->port ? host->port : c->port,
	                                     database, flags);
}

static int connect_to(struct bl_session *s, const struct bl_config *c, const struct bl_host *host,
                      const char *database, struct bl_err *err)
{
	const char *name = host->name[0] ? host->name : NULL;
	bool connected;

	if (bl_connector_check(c, name, err) != BIZLOCK_OK)
		return err->code;
	connected = dial_host(s, c, host, name, database, false);
	if (s->mysql && !connected && bl_connector_needs_tls(s->mysql, c, name)) {
		mysql_close(s->mysql);
		connected = dial_host(s, c, host, name, database, true);
	}
	return bl_connector_judge(s->mysql, c, connected, err);
}

typedef int open_fn(struct bl_session *s, const struct bl_config *c, const struct bl_host *host,
                    struct bl_err *err);

static int open_fit(struct bl_session *s, const struct bl_config *c, const struct bl_host *host,
                    struct bl_err *err)
{
	int rc = connect_to(s, c, host, c->database, err);

	return rc == BIZLOCK_OK ? settle(s, c, err) : rc;
}

static int open_any(struct bl_session *s, const struct bl_config *c, const struct bl_host *host,
                    struct bl_err *err)
{
	int rc = connect_to(s, c, host, NULL, err);

	if (rc == BIZLOCK_OK) {
		bl_settings_variables(&s->text);
		rc = bl_session_run_text(s, NULL, err);
	}
	return s->mysql && !s->gone && rc == BIZLOCK_DB ? BIZLOCK_OK : rc;
}

static int open_at(struct bl_session *s, const struct bl_config *c, const struct bl_host *host,
                   bool in_group, uint32_t io_ms, open_fn *open, struct bl_err *err)
{
	int rc;

	memset(s, 0, sizeof(*s));
	s->in_group = in_group;
	s->text = (struct bl_buf)BL_BUF_INIT(TEXT_MAX);
	s->idle_max = s->answer_by = BL_NEVER;
	s->due = BL_NEVER;
	s->io_ms = (io_ms + 999) / 1000 * 1000; /* the connectors know seconds */
	rc = open(s, c, host, err);
	if (rc != BIZLOCK_OK && bl_hosts_several(c->host))
		bl_err_wrap(err, "%s", host->name);
	if (rc != BIZLOCK_OK)
		bl_session_close(s);
	return rc;
}

int bl_session_open(struct bl_session *ret, const struct bl_config *config,
                    const struct bl_host *host, bool in_group, uint32_t io_ms, struct bl_err *err)
{
	return open_at(ret, config, host, in_group, io_ms, open_fit, err);
}

int bl_session_reach(struct bl_session *ret, const struct bl_config *config,
                     const struct bl_host *host, struct bl_err *err)
{
	return open_at(ret, config, host, false, config->io_timeout_ms, open_any, err);
}

void bl_session_close(struct bl_session *s)
{
	bl_session_unguard(s);
	/* First the connection, which detaches its statements: closing those
	 * first would send a packet for each. */
	if (s->mysql && bl_connector_speaks(s->mysql))
		bl_connector_cut(s->mysql);
	if (s->mysql)
		mysql_close(s->mysql);
	for (size_t i = 0; i < BL_STMT_COUNT; i++)
		if (s->stmts[i])
			mysql_stmt_close(s->stmts[i]);
	bl_buf_free(&s->text);
	memset(s, 0, sizeof(*s));
}

/* Closing says goodbye on the wire, and the wire is the parent's. */
void bl_session_forget(struct bl_session *s)
{
	if (s->mysql && !bl_connector_cut(s->mysql))
		return; /* better to leak than to speak for the parent */
	bl_session_close(s);
}

/* A server that was not asked says something only when it ends the connection. */
bool bl_session_ended(struct bl_session *s)
{
	s->gone |= bl_connector_speaks(s->mysql);
	s->looked = !s->gone;
	return s->gone;
}
