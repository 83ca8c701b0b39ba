#include "store/page.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 10, TEXTS = 4 };

struct reader {
	MYSQL_BIND binds[COLUMNS];
	bl_bool null[COLUMNS];
	unsigned long len[TEXTS];
	uint64_t fence, depth, slot, limit;
	struct bl_page_row row, before;
	struct bl_page page;
	struct bl_err *err;
};

/* A server may lie about lengths and NULLs. */
static size_t end_text(const struct reader *r, size_t column, char *text, size_t size)
{
	unsigned long len = r->null[column] ? 0 : r->len[column];
	size_t end = len < size ? len : size - 1;

	text[end] = '\0';
	return end;
}

static int order_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

static bool comes_after(const struct bl_page_row *row, const struct bl_page_row *before)
{
	int order = order_bytes(row->id, row->id_len, before->id, before->id_len);

	if (order == 0)
		order = order_bytes(row->type, row->type_len, before->type, before->type_len);
	return order > 0 || (order == 0 && row->slot > before->slot);
}

static int keep_row(void *arg)
{
	struct reader *r = arg;

	r->row.id_len = end_text(r, 0, r->row.id, sizeof(r->row.id));
	r->row.type_len = end_text(r, 1, r->row.type, sizeof(r->row.type));
	r->row.slot = r->null[8] ? 0 : (uint32_t)r->slot;
	r->row.limit = r->null[9] || r->limit > UINT32_MAX ? 0 : (uint32_t)r->limit;
	if (!comes_after(&r->row, &r->before))
		return bl_err_set(r->err, BIZLOCK_DB, "rows out of the order of their keys");
	r->before = r->row;
	end_text(r, 2, r->row.owner, sizeof(r->row.owner));
	end_text(r, 3, r->row.note, sizeof(r->row.note));
	r->row.fence = r->null[4] ? 0 : r->fence;
	r->row.depth = r->null[5] || r->depth > UINT32_MAX ? 0 : (uint32_t)r->depth;
	r->row.left_us = r->null[6] ? 0 : r->row.left_us;
	r->row.held_us = r->null[7] ? 0 : r->row.held_us;
	r->page.rows[r->page.count++] = r->row;
	return BIZLOCK_OK;
}

static void bind_columns(struct reader *r)
{
	struct {
		void *data;
		size_t size; /* of a text; 0: a number */
	} columns[COLUMNS] = {
	        {r->row.id, sizeof(r->row.id)},
	        {r->row.type, sizeof(r->row.type)},
	        {r->row.owner, sizeof(r->row.owner)},
	        {r->row.note, sizeof(r->row.note)},
	        {&r->fence, 0},
	        {&r->depth, 0},
	        {&r->row.left_us, 0},
	        {&r->row.held_us, 0},
	        {&r->slot, 0},
	        {&r->limit, 0},
	};

	for (size_t i = 0; i < COLUMNS; i++) {
		MYSQL_BIND *bind = &r->binds[i];

		bind->buffer_type = i < TEXTS ? MYSQL_TYPE_STRING : MYSQL_TYPE_LONGLONG;
		bind->buffer = columns[i].data;
		bind->buffer_length = (unsigned long)columns[i].size;
		bind->is_unsigned = i == 4 || i == 5 || i >= 8;
		bind->is_null = &r->null[i];
		bind->length = i < TEXTS ? &r->len[i] : NULL;
	}
}

static int read_page_rows(struct bl_session *s, enum bl_stmt stmt, const struct bl_page_row *after,
                          struct bl_page *ret, struct bl_err *err)
{
	struct reader r;
	int rc;

	memset(&r, 0, sizeof(r));
	r.err = err;
	if (after)
		r.before = *after;
	r.page.rows = calloc(BL_PAGE_ROWS, sizeof(*r.page.rows));
	if (!r.page.rows)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	bind_columns(&r);
	rc = bl_session_select(s, stmt, r.binds, COLUMNS, keep_row, &r, err);
	if (rc == BIZLOCK_OK)
		*ret = r.page;
	else
		bl_page_free(&r.page);
	return rc;
}

int bl_page_read(struct bl_session *s, const struct bl_page_row *after, const char *only_type,
                 struct bl_page *ret, struct bl_err *err)
{
	const char *type = only_type ? only_type : after->type;

	bl_params_stored(&s->params, after->id, after->id_len, type,
	                 only_type ? strlen(type) : after->type_len);
	s->params.slot = after->slot + UINT64_C(1);
	return read_page_rows(s, only_type ? BL_STMT_PAGE_TYPE : BL_STMT_PAGE, after, ret, err);
}

int bl_page_read_key(struct bl_session *s, const struct bl_key *key, uint64_t slot,
                     struct bl_page *ret, struct bl_err *err)
{
	bl_params_key(&s->params, key);
	s->params.slot = slot;
	return read_page_rows(s, BL_STMT_PAGE_KEY, NULL, ret, err);
}

void bl_page_free(struct bl_page *page)
{
	free(page->rows);
	page->rows = NULL;
	page->count = 0;
}
