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
	case BL_P_END:
		break;
	}
}

/* No text of ours has a question mark that stands for itself. */
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
	if (mysql_real_query(s->mysql, s->text.data, (unsigned long)s->text.len) != 0)
		return bl_session_error(s, err);
	return BIZLOCK_OK;
}

int bl_text_exec(struct bl_session *s, enum bl_stmt stmt, struct bl_done *ret, struct bl_err *err)
{
	int rc = send(s, stmt, err);

	if (rc == BIZLOCK_OK)
		rc = bl_session_check(s, "columns", mysql_field_count(s->mysql), 0, err);
	if (rc == BIZLOCK_OK) {
		ret->affected = mysql_affected_rows(s->mysql);
		ret->insert_id = mysql_insert_id(s->mysql);
	}
	return rc;
}

/* What mysql_stmt_fetch() would write: of a text as much as there is room for, and how long
 * it is; all other columns are numbers of 64 bits. */
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
		*(int64_t *)bind->buffer = strtoll(field, NULL, 10);
}

int bl_text_select(struct bl_session *s, enum bl_stmt stmt, MYSQL_BIND *binds, unsigned columns,
                   int (*fn)(void *arg), void *arg, struct bl_err *err)
{
	MYSQL_RES *rows = NULL;
	MYSQL_ROW row;
	int rc = send(s, stmt, err);

	if (rc != BIZLOCK_OK)
		return rc;
	rows = mysql_store_result(s->mysql);
	if (!rows && mysql_errno(s->mysql))
		return bl_session_error(s, err);
	rc = bl_session_check(s, "columns", rows ? mysql_num_fields(rows) : 0, columns, err);
	while (rc == BIZLOCK_OK && (row = mysql_fetch_row(rows)) != NULL) {
		const unsigned long *lengths = mysql_fetch_lengths(rows);

		for (unsigned i = 0; i < columns; i++)
			put_field(&binds[i], row[i], lengths[i]);
		rc = fn(arg);
	}
	mysql_free_result(rows);
	return rc;
}
