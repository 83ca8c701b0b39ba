#include "store/session.h"

#include <string.h>

#include "core/hosts.h"
#include "store/session_state.h"

#define TEXT_MAX (1 << 20)

static int refuse_connection(struct bl_session *s, struct bl_err *err)
{
	/* No native number: that means that a statement was sent, and is counted so. */
	bl_err_set(err, BIZLOCK_CONN, "connect: %s (%u)%s", bl_connector_error(s->mysql),
	           mysql_errno(s->mysql),
	           bl_connector_refused_plugin(s->mysql)
	                   ? "; see the options auth_plugins and ssl_mode"
	                   : "");
	err->refused = mysql_errno(s->mysql);
	return err->code;
}

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
	if (!s->mysql || (!connected && mysql_errno(s->mysql) == 0))
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	if (!connected)
		return refuse_connection(s, err);
	if (!bl_connector_tls_ok(s->mysql, c))
		return bl_err_set(err, BIZLOCK_CONN,
		                  "connect: ssl_mode asks for TLS, the server has none");
	return BIZLOCK_OK;
}

typedef int open_fn(struct bl_session *s, const struct bl_config *c, const struct bl_host *host,
                    struct bl_err *err);

static int open_fit(struct bl_session *s, const struct bl_config *c, const struct bl_host *host,
                    struct bl_err *err)
{
	int rc = connect_to(s, c, host, c->database, err);

	return rc == BIZLOCK_OK ? bl_session_settle(s, c, err) : rc;
}

static int open_any(struct bl_session *s, const struct bl_config *c, const struct bl_host *host,
                    struct bl_err *err)
{
	int rc = connect_to(s, c, host, NULL, err);

	if (rc == BIZLOCK_OK)
		rc = bl_session_settle_any(s, err);
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
	s->io_ms = (io_ms + 999) / 1000 * 1000; /* they know seconds */
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

/* A server that was not asked says nothing but farewell. */
bool bl_session_ended(struct bl_session *s)
{
	s->gone |= bl_connector_speaks(s->mysql);
	s->looked = !s->gone;
	return s->gone;
}
