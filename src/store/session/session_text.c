/* The text half of a session: statements, and the answers to them. A server may answer anything:
 * each answer is compared with what was asked for. A connection whose answers do not fit is given
 * up, because what it sends next has no meaning. */
#include <errmsg.h>
#include <errno.h>
#include <limits.h>
#include <mysqld_error.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/session/errclass.h"
#include "store/session/session.h"

static void note_end(struct bl_session *s, const struct bl_err *err)
{
	enum bl_class class = bl_classify(err->native);

	s->gone |= bl_class_ends_connection(class);
	s->away |= class == BL_CLASS_AWAY || class == BL_CLASS_DOUBT;
	s->silent |= class == BL_CLASS_GONE && bl_passed(s->asked_at + s->io_ms * BL_NS_PER_MS);
}

int bl_session_failed(struct bl_session *s, unsigned native, const char *text, struct bl_err *err)
{
	int rc = bl_err_native(err, native, text);

	note_end(s, err);
	return rc;
}

int bl_session_error(struct bl_session *s, struct bl_err *err)
{
	return bl_session_failed(s, mysql_errno(s->mysql), mysql_error(s->mysql), err);
}

void bl_session_leave(struct bl_session *s)
{
	s->left |= !s->gone;
	s->gone = true;
}

int bl_session_refuse(struct bl_session *s, struct bl_err *err, const char *why)
{
	bl_session_leave(s);
	bl_connector_cut(s->mysql);
	return bl_err_set(err, BIZLOCK_DB, "%s", why);
}

int bl_session_lost(struct bl_session *s, struct bl_err *err, const char *why)
{
	bl_session_leave(s);
	return bl_err_native(err, CR_SERVER_LOST, why);
}

int bl_session_check(struct bl_session *s, const char *what, unsigned long found,
                     unsigned long asked, struct bl_err *err)
{
	if (found == asked)
		return BIZLOCK_OK;
	bl_session_refuse(s, err, "");
	return bl_err_set(err, BIZLOCK_DB, "the server speaks of %lu %s where %lu are asked for",
	                  found, what, asked);
}

int bl_session_ready(struct bl_session *s, struct bl_err *err)
{
	bool looked = s->looked;

	s->looked = false;
	if (looked || !bl_connector_speaks(s->mysql))
		return s->in_group && bl_passed(s->asked_at + BL_MEMBER_NS)
		               ? bl_session_recheck(s, err)
		               : BIZLOCK_OK;
	s->gone = true;
	bl_connector_cut(s->mysql);
	return bl_err_native(err, CR_SERVER_GONE_ERROR, "the server has ended the connection");
}

/* Ends a call of the connector: its time limit, and its error. */
static int ended(struct bl_session *s, bool failed, struct bl_err *err)
{
	bl_session_end(s);
	return failed ? bl_session_error(s, err) : BIZLOCK_OK;
}

/* A packet that is too large would cost the connection. */
static int check_size(const struct bl_session *s, size_t len, struct bl_err *err)
{
	if (!s->packet_max || len < s->packet_max)
		return BIZLOCK_OK;
	return bl_err_native(err, ER_NET_PACKET_TOO_LARGE,
	                     "the statement is larger than max_allowed_packet of the server");
}

static int post(struct bl_session *s, const char *sql, size_t len, struct bl_err *err)
{
	if (check_size(s, len, err) != BIZLOCK_OK)
		return err->code;
	bl_session_begin(s);
	return ended(s, mysql_send_query(s->mysql, sql, (unsigned long)len) != 0, err);
}

/* Could s->text be made? */
static int check_text(const struct bl_session *s, struct bl_err *err)
{
	return s->text.failed ? bl_err_set(err, BIZLOCK_NOMEM, "out of memory") : BIZLOCK_OK;
}

int bl_session_post(struct bl_session *s, struct bl_err *err)
{
	int rc = check_text(s, err);

	if (rc == BIZLOCK_OK)
		rc = bl_session_ready(s, err);
	return rc == BIZLOCK_OK ? post(s, s->text.data, s->text.len, err) : rc;
}

int bl_session_await(struct bl_session *s, struct bl_err *err)
{
	bl_session_begin(s);
	return ended(s, mysql_read_query_result(s->mysql) != 0, err);
}

/* ---- one answer --------------------------------------------------------------------------- */

static int read_rows(struct bl_session *s, struct bl_rows **ret, struct bl_err *err)
{
	bl_time until = bl_deadline_in_ms(BL_ROWS_PATIENCE * (int64_t)s->io_ms);
	int rc;

	bl_session_begin_rows(s, until);
	rc = bl_rows_read(s->mysql, until, ret, err);
	bl_session_end(s);
	if (rc != BIZLOCK_OK && err->native)
		note_end(s, err);
	else if (rc != BIZLOCK_OK)
		bl_session_leave(s);
	return rc;
}

static int64_t first_number(struct bl_rows *rows)
{
	MYSQL_ROW row = bl_rows_next(rows);

	return row ? bl_rows_number(row[0]) : 0;
}

struct sum {
	uint64_t affected;
	int64_t number;
};

static int read_sum(struct bl_session *s, struct sum *ret, struct bl_err *err)
{
	struct bl_rows *rows;
	int rc = read_rows(s, &rows, err);

	if (rc != BIZLOCK_OK)
		return rc;
	if (rows)
		ret->number = first_number(rows);
	else
		rc = bl_session_note_rows(s, ret->affected = mysql_affected_rows(s->mysql), err);
	bl_rows_free(rows);
	return rc;
}

/* ---- one after the other ------------------------------------------------------------------ */

/* Goes on from the answer to statement i of n. When a connection is lost among the answers,
 * Connector/C may say that there are no more; only the error number tells. */
static int next_answer(struct bl_session *s, unsigned i, unsigned n, struct bl_err *err)
{
	bool more = mysql_more_results(s->mysql);

	if (!more && bl_connector_failed(s->mysql))
		return bl_session_error(s, err);
	if (more != (i + 1 < n))
		return bl_session_check(s, "answers", i + 1 + more, n, err);
	if (!more)
		return BIZLOCK_OK;
	bl_session_begin(s);
	return ended(s, mysql_next_result(s->mysql) != 0, err);
}

/* Reads the answers from statement i on. */
static int read_sums(struct bl_session *s, unsigned i, unsigned n, struct sum *ret,
                     struct bl_err *err)
{
	int rc = BIZLOCK_OK;

	for (; rc == BIZLOCK_OK && i < n; i++) {
		rc = read_sum(s, ret, err);
		if (rc == BIZLOCK_OK)
			rc = next_answer(s, i, n, err);
	}
	return rc;
}

/* ---- statements --------------------------------------------------------------------------- */

enum bl_ready bl_session_poll(const struct bl_session *s, int wake_fd, bl_time until)
{
	struct pollfd fds[] = {{.fd = wake_fd, .events = POLLIN},
	                       {.fd = bl_connector_fd(s->mysql), .events = POLLIN}};

	for (;;) {
		int64_t left = bl_left_ms(until);
		int n = poll(fds, 2, left > INT_MAX ? INT_MAX : (int)left);

		if (n > 0)
			return fds[0].revents ? BL_READY_WAKE : BL_READY_ANSWER;
		if (bl_passed(until) || (n < 0 && errno != EINTR))
			return BL_READY_LATE;
	}
}

/* As bl_session_send(), but gives up at `until`: the connectors give up a read after io_timeout_ms,
 * in whole seconds and for all reads alike. */
static int query_by(struct bl_session *s, const char *sql, size_t len, bl_time until,
                    struct bl_err *err)
{
	if (post(s, sql, len, err) != BIZLOCK_OK)
		return err->code;
	if (bl_session_poll(s, -1, until) != BL_READY_ANSWER) {
		s->gone = s->silent = true;
		return bl_err_set(err, BIZLOCK_CONN, "no answer in time");
	}
	return bl_session_await(s, err);
}

int bl_session_send(struct bl_session *s, const char *sql, size_t len, struct bl_err *err)
{
	if (check_size(s, len, err) != BIZLOCK_OK || bl_session_ready(s, err) != BIZLOCK_OK)
		return err->code;
	if (s->answer_by != BL_NEVER)
		return query_by(s, sql, len, s->answer_by, err);
	bl_session_begin(s);
	return ended(s, mysql_real_query(s->mysql, sql, (unsigned long)len) != 0, err);
}

int bl_session_ask(struct bl_session *s, const char *sql, size_t len, uint64_t *ret_affected,
                   int64_t *ret_number, struct bl_err *err)
{
	struct sum sum = {0, 0};
	int rc = bl_session_send(s, sql, len, err);

	if (rc == BIZLOCK_OK)
		rc = read_sums(s, 0, bl_sql_statements(sql, len), &sum, err);
	if (rc == BIZLOCK_OK)
		rc = bl_session_vouch(s, err);
	if (rc == BIZLOCK_OK && ret_affected)
		*ret_affected = sum.affected;
	if (rc == BIZLOCK_OK && ret_number)
		*ret_number = sum.number;
	return rc;
}

int bl_session_run(struct bl_session *s, const char *sql, size_t len, uint64_t *ret_affected,
                   struct bl_err *err)
{
	return bl_session_ask(s, sql, len, ret_affected, NULL, err);
}

int bl_session_ask_text(struct bl_session *s, uint64_t *ret_affected, int64_t *ret_number,
                        struct bl_err *err)
{
	int rc = check_text(s, err);

	if (rc != BIZLOCK_OK)
		return rc;
	return bl_session_ask(s, s->text.data, s->text.len, ret_affected, ret_number, err);
}

int bl_session_run_text(struct bl_session *s, uint64_t *ret_affected, struct bl_err *err)
{
	return bl_session_ask_text(s, ret_affected, NULL, err);
}

static int send_text(struct bl_session *s, struct bl_err *err)
{
	int rc = check_text(s, err);

	return rc == BIZLOCK_OK ? bl_session_send(s, s->text.data, s->text.len, err) : rc;
}

static int read_one_answer(struct bl_session *s, unsigned statement, bl_answer_fn *fn, void *arg,
                           struct bl_err *err)
{
	struct bl_rows *rows;
	int rc = read_rows(s, &rows, err);

	if (rc != BIZLOCK_OK)
		return rc;
	if (!rows)
		rc = bl_session_note_rows(s, mysql_affected_rows(s->mysql), err);
	if (rc == BIZLOCK_OK)
		fn(arg, statement, rows);
	bl_rows_free(rows);
	return rc;
}

int bl_session_run_first(struct bl_session *s, uint64_t *ret_affected, struct bl_err *err)
{
	struct sum first = {0, 0}, second;
	struct bl_err ignored;
	int rc = send_text(s, err);

	if (rc == BIZLOCK_OK)
		rc = read_sum(s, &first, err);
	if (rc != BIZLOCK_OK)
		return rc;
	*ret_affected = first.affected;
	rc = next_answer(s, 0, 2, &ignored);
	if (rc == BIZLOCK_OK)
		rc = read_sums(s, 1, 2, &second, &ignored);
	s->gone |= rc != BIZLOCK_OK;
	s->warnings = mysql_warning_count(s->mysql);
	return bl_session_vouch(s, err);
}

int bl_session_each(struct bl_session *s, unsigned needed, bl_answer_fn *fn, void *arg,
                    struct bl_err *err)
{
	unsigned n = bl_sql_statements(s->text.data, s->text.len);

	return bl_session_each_of(s, n, needed, fn, arg, err);
}

int bl_session_each_of(struct bl_session *s, unsigned n, unsigned needed, bl_answer_fn *fn,
                       void *arg, struct bl_err *err)
{
	int rc = send_text(s, err);

	for (unsigned i = 0, read = 0; rc == BIZLOCK_OK && i < n; i++) {
		rc = read_one_answer(s, i, fn, arg, err);
		if (rc == BIZLOCK_OK) {
			read = i + 1;
			rc = next_answer(s, i, n, err);
		}
		if (rc != BIZLOCK_OK && read >= needed && err->native) {
			bl_session_leave(s);
			rc = BIZLOCK_OK;
			break;
		}
	}
	s->warnings = mysql_warning_count(s->mysql);
	return rc == BIZLOCK_OK ? bl_session_vouch(s, err) : rc;
}

int bl_session_last(struct bl_session *s, struct bl_err *err)
{
	return next_answer(s, 0, 1, err);
}

int bl_session_answer(struct bl_session *s, unsigned columns, struct bl_rows **ret,
                      struct bl_err *err)
{
	struct bl_rows *rows = NULL;
	int rc = read_rows(s, &rows, err);

	if (rc == BIZLOCK_OK)
		rc = bl_session_check(s, "columns", rows ? rows->columns : 0, columns, err);
	if (rc == BIZLOCK_OK)
		rc = bl_session_last(s, err);
	if (rc == BIZLOCK_OK)
		*ret = rows;
	else
		bl_rows_free(rows);
	return rc;
}

int bl_session_query(struct bl_session *s, const char *sql, unsigned columns, struct bl_rows **ret,
                     struct bl_err *err)
{
	int rc = bl_session_send(s, sql, strlen(sql), err);

	return rc == BIZLOCK_OK ? bl_session_answer(s, columns, ret, err) : rc;
}

int bl_session_query_text(struct bl_session *s, unsigned columns, struct bl_rows **ret,
                          struct bl_err *err)
{
	int rc = send_text(s, err);

	return rc == BIZLOCK_OK ? bl_session_answer(s, columns, ret, err) : rc;
}

int bl_session_ask_word(struct bl_session *s, const char *sql, char *ret, size_t size,
                        struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc = bl_session_query(s, sql, 1, &rows, err);

	if (rc != BIZLOCK_OK)
		return rc;
	row = bl_rows_next(rows);
	snprintf(ret, size, "%s", row && row[0] ? row[0] : "");
	bl_rows_free(rows);
	return rc;
}
