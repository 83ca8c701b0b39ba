#include "store/session_state.h"

#include <errmsg.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/hosts.h"
#include "store/errclass.h"
#include "store/settings.h"

/* Of several hosts only one that takes writes is of use: a replica would show
 * the rows of a moment ago. The variable is a number, or since MariaDB 12 a word. */
#define READ_ONLY "CAST(@@global.read_only AS CHAR) NOT IN ('0', 'OFF')"

/* A server that has left its group, and failed to join it again, takes writes: from two of them two
 * owners could have one lock. One that does not reach most of the others takes none, and a commit
 * hangs there until it is put out. A user may have no right to see what it is. */
#define NO_MEMBER                                                                                  \
	"@@performance_schema AND (SELECT NOT IFNULL(MAX(MEMBER_ID = @@server_uuid AND "           \
	"MEMBER_STATE = 'ONLINE'), 0) OR 2 * SUM(MEMBER_STATE = 'UNREACHABLE') >= COUNT(*) "       \
	"FROM performance_schema.replication_group_members)"

/* A KILL QUERY that was meant for a statement before it may end a question, but not many. */
#define TRIES 8

/* It may be of use again later, as a server may that is not there. */
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

/* Was the question ended from outside? It says nothing about the member. */
static bool was_stopped(const struct bl_err *err)
{
	enum bl_class class = bl_classify(err->native);

	return class == BL_CLASS_STOPPED || class == BL_CLASS_RETRY;
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
	if (rc == BIZLOCK_OK || was_stopped(&why))
		return BIZLOCK_OK;
	return turn_away(s, CR_SERVER_GONE_ERROR, &why, err);
}

/* A commit that the group has certified has one of the group's GTIDs. One that its member made
 * alone, because it was about to leave, or to come back, has one of the server's own, and nobody
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
	int rc;

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
	for (int tries = 0; tries == 0 || (rc != BIZLOCK_OK && was_stopped(&why) && tries < TRIES);
	     tries++) {
		bl_err_clear(&why);
		rc = be_member(s, &why);
	}
	return rc == BIZLOCK_OK ? rc : turn_away(s, CR_SERVER_LOST, &why, err);
}

static int read_uuid(struct bl_session *s, struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc = bl_session_query(s, "SELECT @@server_uuid", 1, &rows, err);

	if (rc != BIZLOCK_OK)
		return rc;
	row = bl_rows_next(rows);
	snprintf(s->uuid, sizeof(s->uuid), "%s", row && row[0] ? row[0] : "");
	bl_rows_free(rows);
	return rc;
}

/* Nothing that was set for everybody may change what our statements mean: settings.c has the table,
 * one row for each variable, and why. */
int bl_session_settle(struct bl_session *s, const struct bl_config *c, struct bl_err *err)
{
	int rc;

	bl_settings_all(&s->text, c->database, s->in_group);
	rc = bl_session_run_text(s, NULL, err);
	if (rc != BIZLOCK_OK)
		return bl_err_wrap(err, "session settings");
	if (s->in_group)
		rc = read_uuid(s, err);
	if (rc == BIZLOCK_OK && (bl_hosts_several(c->host) || s->in_group))
		rc = bl_session_takes_writes(s, err);
	return rc == BIZLOCK_OK ? bl_session_mark(s, err) : rc;
}

int bl_session_settle_any(struct bl_session *s, struct bl_err *err)
{
	bl_settings_variables(&s->text);
	return bl_session_run_text(s, NULL, err);
}
