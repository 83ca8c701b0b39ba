#include "store/stmt_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void add_param(struct bl_buf *text, enum bl_param param, const struct bl_params *p)
{
	switch (param) {
	case BL_P_ID:
		bl_sql_literal(text, "_utf8mb4", p->id, p->id_len);
		break;
	case BL_P_TYPE:
		bl_sql_literal(text, "_utf8mb4", p->type, p->type_len);
		break;
	case BL_P_BELL:
		bl_sql_literal(text, "_ascii", p->bell, p->bell_len);
		break;
	case BL_P_OWNER:
		bl_sql_literal(text, "_ascii", p->owner, p->owner_len);
		break;
	case BL_P_GIVER:
		bl_sql_literal(text, "_ascii", p->giver, p->giver_len);
		break;
	case BL_P_NOTE:
		bl_sql_literal(text, "_utf8mb4", p->note, p->note_len);
		break;
	case BL_P_LEASE:
		bl_buf_addf(text, "%" PRId64, p->lease_us);
		break;
	case BL_P_DEPTH:
		bl_buf_addf(text, "%" PRIu64, p->depth);
		break;
	case BL_P_FENCE:
		bl_buf_addf(text, "%" PRIu64, p->fence);
		break;
	case BL_P_SLOT:
		bl_buf_addf(text, "%" PRIu64, p->slot);
		break;
	case BL_P_END:
		break;
	}
}

/* Every question mark in our texts is a parameter. */
static int send(struct bl_session *s, enum bl_stmt which, struct bl_err *err)
{
	const enum bl_param *params = bl_sql_params(which);
	const char *from = s->sql->text[which], *mark;

	bl_buf_reset(&s->text);
	for (; (mark = strchr(from, '?')) != NULL; from = mark + 1) {
		bl_buf_add(&s->text, from, (size_t)(mark - from));
		add_param(&s->text, *params++, &s->params);
	}
	bl_buf_adds(&s->text, from);
	if (s->text.failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	return bl_session_send(s, s->text.data, s->text.len, err);
}

int bl_text_exec(struct bl_session *s, enum bl_stmt stmt, struct bl_done *ret, struct bl_err *err)
{
	struct bl_rows *none = NULL;
	int rc = send(s, stmt, err);

	if (rc == BIZLOCK_OK)
		rc = bl_session_answer(s, 0, &none, err);
	if (rc == BIZLOCK_OK) {
		ret->affected = mysql_affected_rows(s->mysql);
		ret->insert_id = mysql_insert_id(s->mysql);
	}
	return rc;
}

/* Writes what mysql_stmt_fetch() would write: of a text, its length, and as many bytes as there is
 * room for; all other columns are numbers of 64 bits. */
static void put_field(const MYSQL_BIND *bind, const char *field, unsigned long len)
{
	if (bind->is_null)
		*bind->is_null = !field;
	if (bind->length)
		*bind->length = len;
	if (!field)
		return;
	if (bind->buffer_type == MYSQL_TYPE_STRING)
		memcpy(bind->buffer, field, len < bind->buffer_length ? len : bind->buffer_length);
	else if (bind->is_unsigned)
		*(uint64_t *)bind->buffer = strtoull(field, NULL, 10);
	else
		*(int64_t *)bind->buffer = bl_rows_number(field);
}

int bl_session_select(struct bl_session *s, enum bl_stmt stmt, MYSQL_BIND *binds, unsigned columns,
                      int (*fn)(void *arg), void *arg, struct bl_err *err)
{
	struct bl_rows *rows = NULL;
	MYSQL_ROW row;
	int rc = send(s, stmt, err);

	if (rc == BIZLOCK_OK)
		rc = bl_session_answer(s, columns, &rows, err);
	if (rc == BIZLOCK_OK && rows->count > bl_sql_rows(stmt))
		rc = bl_session_refuse(s, err, "more rows than were asked for");
	while (rc == BIZLOCK_OK && (row = bl_rows_next(rows)) != NULL) {
		for (unsigned i = 0; i < columns; i++)
			put_field(&binds[i], row[i], rows->lengths[i]);
		rc = fn(arg);
	}
	bl_rows_free(rows);
	return rc;
}
