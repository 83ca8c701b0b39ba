#include "store/stmt_text.h"

#include <inttypes.h>
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
static void make_text(struct bl_session *s, enum bl_stmt which)
{
	const enum bl_param *params = bl_sql_params(which);
	const char *from = s->sql->text[which], *mark;

	bl_buf_reset(&s->text);
	for (; (mark = strchr(from, '?')) != NULL; from = mark + 1) {
		bl_buf_add(&s->text, from, (size_t)(mark - from));
		add_param(&s->text, *params++, &s->params);
	}
	bl_buf_adds(&s->text, from);
}

int bl_text_exec(struct bl_session *s, enum bl_stmt stmt, struct bl_done *ret, struct bl_err *err)
{
	struct bl_rows *none;
	int rc;

	make_text(s, stmt);
	rc = bl_session_query_text(s, 0, &none, err);
	if (rc == BIZLOCK_OK) {
		ret->affected = mysql_affected_rows(s->mysql);
		ret->insert_id = mysql_insert_id(s->mysql);
	}
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
	return bl_session_refuse(s, err, "more rows than were asked for");
}
