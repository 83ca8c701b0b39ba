#include "store/session.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/hosts.h"
#include "store/errclass.h"
#include "store/settings.h"

#define TEXT_MAX (1 << 20)

int bl_session_error(struct bl_session *s, struct bl_err *err)
{
	unsigned native = mysql_errno(s->mysql);

	s->gone |= bl_class_is_away(bl_classify(native));
	return bl_err_native(err, native, mysql_error(s->mysql));
}

static int refuse_connection(struct bl_session *s, struct bl_err *err)
{
	/* No native number: that of a statement which was sent is counted. */
	bl_err_set(err, BIZLOCK_CONN, "connect: %s (%u)%s", bl_connector_error(s->mysql),
	           mysql_errno(s->mysql),
	           bl_connector_refused_plugin(s->mysql)
	                   ? "; see the options auth_plugins and ssl_mode"
	                   : "");
	return err->code;
}

static bool dial_host(struct bl_session *s, const struct bl_config *c, const struct bl_host *host,
                      const char *name, const char *database, bool with_tls)
{
	/* Affected rows must mean changed rows: no CLIENT_FOUND_ROWS. */
	unsigned long flags = CLIENT_MULTI_STATEMENTS;

	s->mysql = bl_connector_new(c, name, with_tls);
	return s->mysql && mysql_real_connect(s->mysql, name, c->user, c->password, database,
	                                      host->port ? host->port : c->port, c->socket, flags);
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
	if (!s->mysql)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	if (!connected)
		return refuse_connection(s, err);
	if (!bl_connector_tls_ok(s->mysql, c))
		return bl_err_set(err, BIZLOCK_CONN,
		                  "connect: ssl_mode asks for TLS, the server has none");
	return BIZLOCK_OK;
}

/* Of several hosts only one that takes writes is of use: a replica would show
 * the rows of a moment ago. */
static int check_writable(struct bl_session *s, struct bl_err *err)
{
	int64_t read_only = 0;
	static const char query[] = "SELECT @@global.read_only";
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
static int set_up(struct bl_session *s, const struct bl_config *c, struct bl_err *err)
{
	int rc;

	bl_settings_all(&s->text, c->database);
	rc = run_texts(s, err);
	if (rc != BIZLOCK_OK)
		return bl_err_wrap(err, "session settings");
	rc = bl_hosts_several(c->host) ? check_writable(s, err) : BIZLOCK_OK;
	return rc == BIZLOCK_OK ? bl_session_mark(s, err) : rc;
}

typedef int open_fn(struct bl_session *s, const struct bl_config *c, const struct bl_host *host,
                    struct bl_err *err);

static int open_fit(struct bl_session *s, const struct bl_config *c, const struct bl_host *host,
                    struct bl_err *err)
{
	int rc = connect_to(s, c, host, c->database, err);

	return rc == BIZLOCK_OK ? set_up(s, c, err) : rc;
}

static int open_any(struct bl_session *s, const struct bl_config *c, const struct bl_host *host,
                    struct bl_err *err)
{
	int rc = connect_to(s, c, host, NULL, err);

	if (rc == BIZLOCK_OK) {
		bl_settings_variables(&s->text);
		rc = run_texts(s, err);
	}
	return s->mysql && !s->gone && rc == BIZLOCK_DB ? BIZLOCK_OK : rc;
}

static int open_at(struct bl_session *s, const struct bl_config *c, const struct bl_host *host,
                   open_fn *open, struct bl_err *err)
{
	int rc;

	memset(s, 0, sizeof(*s));
	s->text = (struct bl_buf)BL_BUF_INIT(TEXT_MAX);
	s->idle_max = s->answer_by = BL_NEVER;
	rc = open(s, c, host, err);
	if (rc != BIZLOCK_OK && bl_hosts_several(c->host))
		bl_err_wrap(err, "%s", host->name);
	if (rc != BIZLOCK_OK)
		bl_session_close(s);
	return rc;
}

static int open_first(struct bl_session *ret, const struct bl_config *config, open_fn *open,
                      struct bl_err *err)
{
	const char *at = config->host;
	int rc;

	do {
		struct bl_host host = bl_hosts_next(&at);

		rc = open_at(ret, config, &host, open, err);
	} while (rc == BIZLOCK_CONN && at && *at);
	return rc;
}

int bl_session_open(struct bl_session *ret, const struct bl_config *config,
                    const struct bl_sql *sql, struct bl_err *err)
{
	int rc = open_first(ret, config, open_fit, err);

	if (rc == BIZLOCK_OK)
		ret->sql = sql;
	return rc;
}

int bl_session_reach(struct bl_session *ret, const struct bl_config *config, struct bl_err *err)
{
	return open_first(ret, config, open_any, err);
}

void bl_session_close(struct bl_session *s)
{
	/* First the connection, which detaches its statements: closing those
	 * first would send a packet for each. */
	if (s->mysql)
		mysql_close(s->mysql);
	for (size_t i = 0; i < BL_STMT_COUNT; i++)
		if (s->stmts[i])
			mysql_stmt_close(s->stmts[i]);
	bl_buf_free(&s->text);
	memset(s, 0, sizeof(*s));
}

/* Closing says goodbye on the wire, and the wire is the parent's: put a socket
 * that leads nowhere in its place first. */
void bl_session_forget(struct bl_session *s)
{
	int nowhere[2], fd = s->mysql ? bl_connector_fd(s->mysql) : -1;

	if (fd >= 0) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, nowhere) != 0)
			return; /* better to leak than to speak for the parent */
		close(nowhere[1]);
		dup2(nowhere[0], fd);
		close(nowhere[0]);
	}
	bl_session_close(s);
}

/* A server that was not asked says nothing but farewell. */
bool bl_session_ended(struct bl_session *s)
{
	struct pollfd fd = {.fd = bl_connector_fd(s->mysql), .events = POLLIN};

	s->gone |= poll(&fd, 1, 0) > 0;
	return s->gone;
}

void bl_session_leave(struct bl_session *s)
{
	s->left |= !s->gone;
	s->gone = true;
}

static int64_t first_number(MYSQL_RES *rows)
{
	MYSQL_ROW row = mysql_fetch_row(rows);

	return row && row[0] ? strtoll(row[0], NULL, 10) : 0;
}

/* When a connection is lost among the answers, Connector/C may say that there are no more,
 * or that one has no columns; the error number alone tells. */
static bool session_failed(const struct bl_session *s)
{
	return mysql_errno(s->mysql) != 0;
}

/* 0: there is another answer, < 0: there is none, > 0: error. */
static int next_answer(struct bl_session *s)
{
	int next = mysql_next_result(s->mysql);

	return next < 0 && session_failed(s) ? 1 : next;
}

/* Reads what is left of a packet's results. The first error wins; there is
 * nothing more to read after one. */
static int drain(struct bl_session *s, uint64_t *ret_affected, int64_t *ret_number,
                 struct bl_err *err)
{
	int next;

	do {
		MYSQL_RES *rows = mysql_store_result(s->mysql);

		if (rows) {
			*ret_number = first_number(rows);
			mysql_free_result(rows);
		} else if (session_failed(s)) {
			return bl_session_error(s, err);
		} else {
			*ret_affected = mysql_affected_rows(s->mysql);
		}
		next = next_answer(s);
	} while (next == 0);
	return next > 0 ? bl_session_error(s, err) : BIZLOCK_OK;
}

static bool answers_by(const struct bl_session *s, bl_time until)
{
	struct pollfd fd = {.fd = bl_connector_fd(s->mysql), .events = POLLIN};

	for (;;) {
		int64_t left = bl_left_ms(until);
		int n = poll(&fd, 1, left > INT_MAX ? INT_MAX : (int)left);

		if (n > 0)
			return true;
		if (bl_passed(until) || (n < 0 && errno != EINTR))
			return false;
	}
}

/* A read is given up after io_timeout_ms, which the connectors know in seconds and for all
 * reads alike. */
static int query_by(struct bl_session *s, const char *sql, size_t len, bl_time until,
                    struct bl_err *err)
{
	if (mysql_send_query(s->mysql, sql, (unsigned long)len) != 0)
		return bl_session_error(s, err);
	if (!answers_by(s, until)) {
		s->gone = true;
		return bl_err_set(err, BIZLOCK_CONN, "no answer in time");
	}
	return mysql_read_query_result(s->mysql) ? bl_session_error(s, err) : BIZLOCK_OK;
}

static int query_text(struct bl_session *s, const char *sql, size_t len, struct bl_err *err)
{
	if (s->answer_by != BL_NEVER)
		return query_by(s, sql, len, s->answer_by, err);
	return mysql_real_query(s->mysql, sql, (unsigned long)len) ? bl_session_error(s, err)
	                                                           : BIZLOCK_OK;
}

int bl_session_ask(struct bl_session *s, const char *sql, size_t len, uint64_t *ret_affected,
                   int64_t *ret_number, struct bl_err *err)
{
	uint64_t affected = 0;
	int64_t number = 0;
	int rc = query_text(s, sql, len, err);

	if (rc == BIZLOCK_OK)
		rc = drain(s, &affected, &number, err);
	if (rc == BIZLOCK_OK && ret_affected)
		*ret_affected = affected;
	if (rc == BIZLOCK_OK && ret_number)
		*ret_number = number;
	return rc;
}

int bl_session_run_first(struct bl_session *s, const char *sql, size_t len, uint64_t *ret_affected,
                         struct bl_err *err)
{
	struct bl_err ignored;
	uint64_t later;
	int64_t number;

	if (mysql_real_query(s->mysql, sql, (unsigned long)len) != 0)
		return bl_session_error(s, err);
	*ret_affected = mysql_affected_rows(s->mysql);
	s->gone |= drain(s, &later, &number, &ignored) != BIZLOCK_OK;
	return BIZLOCK_OK;
}

int bl_session_run(struct bl_session *s, const char *sql, size_t len, uint64_t *ret_affected,
                   struct bl_err *err)
{
	return bl_session_ask(s, sql, len, ret_affected, NULL, err);
}

static int read_one_answer(struct bl_session *s, unsigned statement, bl_answer_fn *fn, void *arg,
                           struct bl_err *err)
{
	MYSQL_RES *rows = mysql_store_result(s->mysql);

	if (!rows && session_failed(s))
		return bl_session_error(s, err);
	fn(arg, statement, rows);
	mysql_free_result(rows);
	return BIZLOCK_OK;
}

int bl_session_each(struct bl_session *s, unsigned needed, bl_answer_fn *fn, void *arg,
                    struct bl_err *err)
{
	int next = 0, rc = BIZLOCK_OK;

	if (s->text.failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	if (mysql_real_query(s->mysql, s->text.data, (unsigned long)s->text.len) != 0)
		return bl_session_error(s, err);
	for (unsigned i = 0; rc == BIZLOCK_OK && next == 0; i++) {
		rc = read_one_answer(s, i, fn, arg, err);
		if (rc == BIZLOCK_OK)
			next = next_answer(s);
		if (next > 0 && i + 1 < needed)
			rc = bl_session_error(s, err);
		else if (next > 0)
			bl_session_leave(s);
	}
	return rc;
}

int bl_session_check(struct bl_session *s, const char *what, unsigned long found,
                     unsigned long asked, struct bl_err *err)
{
	if (found == asked)
		return BIZLOCK_OK;
	bl_session_leave(s);
	return bl_err_set(err, BIZLOCK_DB, "the server speaks of %lu %s where %lu are asked for",
	                  found, what, asked);
}

int bl_session_query(struct bl_session *s, const char *sql, unsigned columns, MYSQL_RES **ret,
                     struct bl_err *err)
{
	MYSQL_RES *rows;
	int rc = BIZLOCK_OK;

	if (mysql_real_query(s->mysql, sql, (unsigned long)strlen(sql)) != 0)
		return bl_session_error(s, err);
	rows = mysql_store_result(s->mysql);
	if (!rows && session_failed(s))
		return bl_session_error(s, err);
	if (!rows)
		rc = bl_session_check(s, "columns", 0, columns ? columns : 1, err);
	else if (columns)
		rc = bl_session_check(s, "columns", mysql_num_fields(rows), columns, err);
	if (rc == BIZLOCK_OK)
		*ret = rows;
	else
		mysql_free_result(rows);
	return rc;
}
