#include "store/page.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 8, TEXTS = 4 };

struct reader {
	MYSQL_BIND binds[COLUMNS];
	bl_bool null[COLUMNS];
	unsigned long len[TEXTS];
	uint64_t fence, depth;
	struct bl_page_row row;
	struct bl_page page;
	struct bl_err *err;
};

/* Lengths and NULLs are the server's word, which nobody has to take. */
static void end_text(const struct reader *r, size_t column, char *text, size_t size)
{
	unsigned long len = r->null[column] ? 0 : r->len[column];

	text[len < size ? len : size - 1] = '\0';
}

static int keep_row(void *arg)
{
	struct reader *r = arg;

	if (r->page.count == BL_PAGE_ROWS)
		return bl_err_set(r->err, BIZLOCK_DB, "more rows than were asked for");
	end_text(r, 0, r->row.id, sizeof(r->row.id));
	end_text(r, 1, r->row.type, sizeof(r->row.type));
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
	};

	for (size_t i = 0; i < COLUMNS; i++) {
		MYSQL_BIND *bind = &r->binds[i];

		bind->buffer_type = i < TEXTS ? MYSQL_TYPE_STRING : MYSQL_TYPE_LONGLONG;
		bind->buffer = columns[i].data;
		bind->buffer_length = (unsigned long)columns[i].size;
		bind->is_unsigned = i == 4 || i == 5;
		bind->is_null = &r->null[i];
		bind->length = i < TEXTS ? &r->len[i] : NULL;
	}
}

static void fill(char *to, unsigned long *to_len, size_t size, const char *from)
{
	size_t len = strnlen(from, size - 1);

	memcpy(to, from, len);
	to[len] = '\0';
	*to_len = (unsigned long)len;
}

static int read_rows(struct bl_session *s, enum bl_stmt stmt, const char *id, const char *type,
                     struct bl_page *ret, struct bl_err *err)
{
	struct bl_params *p = &s->params;
	struct reader r;
	int rc;

	memset(&r, 0, sizeof(r));
	r.err = err;
	r.page.rows = calloc(BL_PAGE_ROWS, sizeof(*r.page.rows));
	if (!r.page.rows)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	bind_columns(&r);
	fill(p->id, &p->id_len, sizeof(p->id), id);
	fill(p->type, &p->type_len, sizeof(p->type), type);
	rc = bl_session_select(s, stmt, r.binds, keep_row, &r, err);
	if (rc == BIZLOCK_OK)
		*ret = r.page;
	else
		bl_page_free(&r.page);
	return rc;
}

int bl_page_read(struct bl_session *s, const char *after_id, const char *after_type,
                 const char *only_type, struct bl_page *ret, struct bl_err *err)
{
	if (only_type)
		return read_rows(s, BL_STMT_PAGE_TYPE, after_id, only_type, ret, err);
	return read_rows(s, BL_STMT_PAGE, after_id, after_type, ret, err);
}

int bl_page_read_key(struct bl_session *s, const struct bl_key *key, struct bl_page *ret,
                     struct bl_err *err)
{
	return read_rows(s, BL_STMT_PAGE_KEY, key->id, key->type, ret, err);
}

void bl_page_free(struct bl_page *page)
{
	free(page->rows);
	page->rows = NULL;
	page->count = 0;
}
