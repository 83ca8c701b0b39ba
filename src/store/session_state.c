#include "store/session_state.h"

#include <string.h>

#include "core/hosts.h"
#include "store/settings.h"

/* Of several hosts only one that takes writes is of use: a replica would show
 * the rows of a moment ago. The variable is a number, or since MariaDB 12 a word. */
int bl_session_takes_writes(struct bl_session *s, struct bl_err *err)
{
	int64_t read_only = 0;
	static const char query[] = "SELECT CAST(@@global.read_only AS CHAR) NOT IN ('0', 'OFF')";
	int rc = bl_session_ask(s, query, strlen(query), NULL, &read_only, err);

	if (rc == BIZLOCK_OK && read_only)
		rc = bl_err_set(err, BIZLOCK_CONN, "the server is read-only");
	return rc;
}

static int run_texts(struct bl_session *s, struct bl_err *err)
{
	if (s->text.failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	return bl_session_run(s, s->text.data, s->text.len, NULL, err);
}

/* Nothing that was set for everybody may change what our statements mean: settings.c has the table,
 * one row for each variable, and why. */
int bl_session_settle(struct bl_session *s, const struct bl_config *c, struct bl_err *err)
{
	int rc;

	bl_settings_all(&s->text, c->database, s->in_group);
	rc = run_texts(s, err);
	if (rc != BIZLOCK_OK)
		return bl_err_wrap(err, "session settings");
	rc = bl_hosts_several(c->host) ? bl_session_takes_writes(s, err) : BIZLOCK_OK;
	return rc == BIZLOCK_OK ? bl_session_mark(s, err) : rc;
}

int bl_session_settle_any(struct bl_session *s, struct bl_err *err)
{
	bl_settings_variables(&s->text);
	return run_texts(s, err);
}
