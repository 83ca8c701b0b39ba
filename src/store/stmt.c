/* The prepared half of a session. */
#include <mysqld_error.h>
#include <string.h>

#include "store/errclass.h"
#include "store/stmt_text.h"

/* Callers pass checked lengths; the cut keeps a mistake from becoming an overflow. */
static unsigned long copy(char *to, size_t size, const char *from, size_t len)
{
	if (len >= size)
		len = size - 1;
	memcpy(to, from, len);
	to[len] = '\0';
	return (unsigned long)len;
}

void bl_params_key(struct bl_params *p, const struct bl_key *key)
{
	p->id_len = copy(p->id, sizeof(p->id), key->id, key->id_len);
	p->type_len = copy(p->type, sizeof(p->type), key->type, key->type_len);
	p->slot = key->slot;
}

void bl_params_stored(struct bl_params *p, const char *id, size_t id_len, const char *type,
                      size_t type_len)
{
	p->id_len = copy(p->id, sizeof(p->id), id, id_len);
	p->type_len = copy(p->type, sizeof(p->type), type, type_len);
}

void bl_params_bell(struct bl_params *p, const char *bell)
{
	p->bell_len = copy(p->bell, sizeof(p->bell), bell, strlen(bell));
}

void bl_params_owner(struct bl_params *p, const char *owner)
{
	p->owner_len = copy(p->owner, sizeof(p->owner), owner, strlen(owner));
}

void bl_params_giver(struct bl_params *p, const char *giver)
{
	p->giver_len = copy(p->giver, sizeof(p->giver), giver, strlen(giver));
}

void bl_params_note(struct bl_params *p, const char *note)
{
	p->note_len = note ? copy(p->note, sizeof(p->note), note, strlen(note)) : 0;
}

static void bind_text(MYSQL_BIND *bind, char *data, unsigned long *len, size_t size)
{
	bind->buffer_type = MYSQL_TYPE_STRING;
	bind->buffer = data;
	bind->buffer_length = (unsigned long)size;
	bind->length = len;
}

static void bind_number(MYSQL_BIND *bind, void *data, bool is_unsigned)
{
	bind->buffer_type = MYSQL_TYPE_LONGLONG;
	bind->buffer = data;
	bind->is_unsigned = is_unsigned;
}

static void bind_param(MYSQL_BIND *bind, enum bl_param param, struct bl_params *p)
{
	switch (param) {
	case BL_P_ID:
		bind_text(bind, p->id, &p->id_len, sizeof(p->id));
		break;
	case BL_P_TYPE:
		bind_text(bind, p->type, &p->type_len, sizeof(p->type));
		break;
	case BL_P_BELL:
		bind_text(bind, p->bell, &p->bell_len, sizeof(p->bell));
		break;
	case BL_P_OWNER:
		bind_text(bind, p->owner, &p->owner_len, sizeof(p->owner));
		break;
	case BL_P_GIVER:
		bind_text(bind, p->giver, &p->giver_len, sizeof(p->giver));
		break;
	case BL_P_NOTE:
		bind_text(bind, p->note, &p->note_len, sizeof(p->note));
		break;
	case BL_P_LEASE:
		bind_number(bind, &p->lease_us, false);
		break;
	case BL_P_DEPTH:
		bind_number(bind, &p->depth, true);
		break;
	case BL_P_FENCE:
		bind_number(bind, &p->fence, true);
		break;
	case BL_P_SLOT:
		bind_number(bind, &p->slot, true);
		break;
	case BL_P_END:
		break;
	}
}

/* When a connection is lost among the rows, Connector/C sets the error of the connection, and not
 * that of the statement. */
static int stmt_error(struct bl_session *s, MYSQL_STMT *stmt, struct bl_err *err)
{
	if (!mysql_stmt_errno(stmt))
		return bl_session_error(s, err);
	return bl_session_failed(s, mysql_stmt_errno(stmt), mysql_stmt_error(stmt), err);
}

static int send_prepare(struct bl_session *s, MYSQL_STMT *stmt, const char *sql, struct bl_err *err)
{
	int failed;

	bl_session_begin(s);
	failed = mysql_stmt_prepare(stmt, sql, (unsigned long)strlen(sql));
	bl_session_end(s);
	return failed ? stmt_error(s, stmt, err) : BIZLOCK_OK;
}

static int send_execute(struct bl_session *s, MYSQL_STMT *stmt, struct bl_err *err)
{
	int failed;

	bl_session_begin(s);
	failed = mysql_stmt_execute(stmt);
	bl_session_end(s);
	return failed ? stmt_error(s, stmt, err) : BIZLOCK_OK;
}

/* Closing a statement sends a packet. */
static void close_stmt(struct bl_session *s, MYSQL_STMT *stmt)
{
	if (bl_connector_speaks(s->mysql))
		bl_connector_cut(s->mysql);
	mysql_stmt_close(stmt);
}

static int prepare(struct bl_session *s, enum bl_stmt which, struct bl_err *err)
{
	const char *text = s->sql->text[which];
	const enum bl_param *params = bl_sql_params(which);
	MYSQL_BIND binds[BL_PARAMS_MAX];
	MYSQL_STMT *stmt = mysql_stmt_init(s->mysql);
	unsigned n = 0;
	int rc;

	if (!stmt)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	memset(binds, 0, sizeof(binds));
	for (; n < BL_PARAMS_MAX && params[n] != BL_P_END; n++)
		bind_param(&binds[n], params[n], &s->params);
	rc = send_prepare(s, stmt, text, err);
	if (rc == BIZLOCK_OK)
		rc = bl_session_check(s, "parameters", mysql_stmt_param_count(stmt), n, err);
	if (rc == BIZLOCK_OK && mysql_stmt_bind_param(stmt, binds) != 0)
		rc = stmt_error(s, stmt, err);
	if (rc == BIZLOCK_OK)
		s->stmts[which] = stmt;
	else
		close_stmt(s, stmt);
	return rc;
}

/* max_prepared_stmt_count counts all clients together: another one may have used it up. */
static bool no_room(int rc, const struct bl_err *err)
{
	return rc == BIZLOCK_DB && err->native == ER_MAX_PREPARED_STMT_COUNT_REACHED;
}

/* EXPLAIN needs the same privileges as the statement itself. */
static int explain(struct bl_session *s, const char *sql, struct bl_err *err)
{
	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text, "EXPLAIN %s", sql);
	bl_err_clear(err);
	return bl_session_run_text(s, NULL, err);
}

int bl_session_prepare(struct bl_session *s, const char *sql, struct bl_err *err)
{
	MYSQL_STMT *stmt = mysql_stmt_init(s->mysql);
	int rc;

	if (!stmt)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	rc = bl_session_ready(s, err);
	if (rc == BIZLOCK_OK)
		rc = send_prepare(s, stmt, sql, err);
	close_stmt(s, stmt);
	return no_room(rc, err) ? explain(s, sql, err) : rc;
}

/* *ret_text: it has to go as text. */
static int execute(struct bl_session *s, enum bl_stmt which, bool *ret_text, struct bl_err *err)
{
	int rc = bl_session_ready(s, err);

	if (rc == BIZLOCK_OK && !s->stmts[which] && !s->unprepared)
		rc = prepare(s, which, err);
	if (no_room(rc, err)) {
		s->unprepared = true;
		bl_err_clear(err);
		rc = BIZLOCK_OK;
	}
	*ret_text = rc == BIZLOCK_OK && !s->stmts[which];
	if (rc == BIZLOCK_OK && !*ret_text)
		rc = send_execute(s, s->stmts[which], err);
	return rc;
}

static int read_done(struct bl_session *s, MYSQL_STMT *stmt, struct bl_done *ret,
                     struct bl_err *err)
{
	int rc = bl_session_check(s, "columns", mysql_stmt_field_count(stmt), 0, err);

	if (rc == BIZLOCK_OK)
		rc = bl_session_last(s, err);
	if (rc == BIZLOCK_OK)
		*ret = (struct bl_done){mysql_stmt_affected_rows(stmt), mysql_stmt_insert_id(stmt)};
	return rc;
}

int bl_session_exec(struct bl_session *s, enum bl_stmt stmt, struct bl_done *ret,
                    struct bl_err *err)
{
	struct bl_done done = {0, 0};
	bool as_text;
	int rc = execute(s, stmt, &as_text, err);

	if (as_text)
		rc = bl_text_exec(s, stmt, &done, err);
	else if (rc == BIZLOCK_OK)
		rc = read_done(s, s->stmts[stmt], &done, err);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_session_note_rows(s, done.affected, err);
	if (rc == BIZLOCK_OK)
		rc = bl_session_vouch(s, err);
	if (rc == BIZLOCK_OK)
		*ret = done;
	return rc;
}
