/* The statements of sql.c with their parameters: prepared, or as text, with literals in them and
 * the same answers. A statement without rows is prepared, but for its first time, and where nothing
 * can be prepared (max_prepared_stmt_count). A statement with rows always goes as text: neither
 * connector compares the lengths in a prepared statement's row with its packet, and both would read
 * behind the end of memory. In the rows of texts they compare them. */
#include <mysqld_error.h>
#include <string.h>

#include "store/session/errclass.h"
#include "store/session/session.h"

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

/* Where the value of a parameter is: a text, or a number of 64 bits, which is never below 0. */
struct place {
	void *data;
	unsigned long *len; /* of a text; NULL: it is a number */
	size_t size;
	const char *charset;
	bool is_unsigned;
};

static struct place place_of(struct bl_params *p, enum bl_param param)
{
	const struct place places[] = {
	        [BL_P_ID] = {p->id, &p->id_len, sizeof(p->id), "_utf8mb4", false},
	        [BL_P_TYPE] = {p->type, &p->type_len, sizeof(p->type), "_utf8mb4", false},
	        [BL_P_SLOT] = {.data = &p->slot, .is_unsigned = true},
	        [BL_P_BELL] = {p->bell, &p->bell_len, sizeof(p->bell), "_ascii", false},
	        [BL_P_OWNER] = {p->owner, &p->owner_len, sizeof(p->owner), "_ascii", false},
	        [BL_P_GIVER] = {p->giver, &p->giver_len, sizeof(p->giver), "_ascii", false},
	        [BL_P_NOTE] = {p->note, &p->note_len, sizeof(p->note), "_utf8mb4", false},
	        [BL_P_LEASE] = {.data = &p->lease_us},
	        [BL_P_DEPTH] = {.data = &p->depth, .is_unsigned = true},
	        [BL_P_FENCE] = {.data = &p->fence, .is_unsigned = true},
	};

	return places[param];
}

/* ---- as text ------------------------------------------------------------------------------- */

static void add_param(struct bl_buf *text, struct place place)
{
	if (place.len)
		bl_sql_literal(text, place.charset, place.data, *place.len);
	else if (place.data)
		bl_buf_addu(text, *(const uint64_t *)place.data);
}

/* Every question mark in our texts is a parameter. */
static void make_text(struct bl_session *s, enum bl_stmt which)
{
	const enum bl_param *params = bl_sql_params(which);
	const char *from = s->sql->text[which], *mark;

	bl_buf_reset(&s->text);
	for (; (mark = strchr(from, '?')) != NULL; from = mark + 1) {
		bl_buf_add(&s->text, from, (size_t)(mark - from));
		add_param(&s->text, place_of(&s->params, *params++));
	}
	bl_buf_adds(&s->text, from);
}

static int exec_text(struct bl_session *s, enum bl_stmt stmt, struct bl_done *ret,
                     struct bl_err *err)
{
	struct bl_rows *none;
	int rc;

	make_text(s, stmt);
	rc = bl_session_query_text(s, 0, &none, err);
	if (rc == BIZLOCK_OK)
		*ret = (struct bl_done){mysql_affected_rows(s->mysql), mysql_insert_id(s->mysql)};
	return rc;
}

int bl_session_select(struct bl_session *s, enum bl_stmt stmt, unsigned columns,
                      struct bl_rows **ret, struct bl_err *err)
{
	struct bl_rows *rows;
	int rc;

	make_text(s, stmt);
	rc = bl_session_query_text(s, columns, &rows, err);
	if (rc != BIZLOCK_OK)
		return rc;
	if (rows->count <= bl_sql_rows(stmt)) {
		*ret = rows;
		return BIZLOCK_OK;
	}
	bl_rows_free(rows);
	bl_session_refuse(s, err, "more rows than were asked for");
	if (bl_sql_rows(stmt) > 1)
		return err->code;
	return bl_err_set(err, BIZLOCK_SCHEMA,
	                  "table %s has several rows of one key: it has lost its primary key; "
	                  "`bizlock doctor` says what to do",
	                  s->sql->table);
}

/* ---- prepared ------------------------------------------------------------------------------ */

static void bind_param(MYSQL_BIND *bind, struct place place)
{
	bind->buffer_type = place.len ? MYSQL_TYPE_STRING : MYSQL_TYPE_LONGLONG;
	bind->buffer = place.data;
	bind->buffer_length = (unsigned long)place.size;
	bind->length = place.len;
	bind->is_unsigned = place.is_unsigned;
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
		bind_param(&binds[n], place_of(&s->params, params[n]));
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

/* *ret NULL: it has to go as text. To prepare takes a packet of its own, so a statement is prepared
 * when it is sent for the second time: many programs take one lock, and end. */
static int get_ready(struct bl_session *s, enum bl_stmt which, MYSQL_STMT **ret, struct bl_err *err)
{
	int rc = bl_session_ready(s, err);

	if (rc == BIZLOCK_OK && s->ran[which] && !s->stmts[which] && !s->unprepared)
		rc = prepare(s, which, err);
	s->ran[which] = true;
	if (no_room(rc, err)) {
		s->unprepared = true;
		bl_err_clear(err);
		rc = BIZLOCK_OK;
	}
	*ret = s->stmts[which];
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

int bl_session_exec(struct bl_session *s, enum bl_stmt which, struct bl_done *ret,
                    struct bl_err *err)
{
	struct bl_done done = {0, 0};
	MYSQL_STMT *stmt;
	int failed, rc = get_ready(s, which, &stmt, err);

	if (rc == BIZLOCK_OK && !stmt) {
		rc = exec_text(s, which, &done, err);
	} else if (rc == BIZLOCK_OK) {
		bl_session_begin(s);
		failed = mysql_stmt_execute(stmt);
		bl_session_end(s);
		rc = failed ? stmt_error(s, stmt, err) : read_done(s, stmt, &done, err);
	}
	if (rc == BIZLOCK_OK)
		rc = bl_session_note_rows(s, done.affected, err);
	if (rc == BIZLOCK_OK)
		rc = bl_session_vouch(s, err);
	if (rc == BIZLOCK_OK)
		*ret = done;
	return rc;
}
