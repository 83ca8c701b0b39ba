#include "store/table/page.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 10 };

/* A server may lie about lengths and NULLs. */
size_t bl_page_text(char *to, size_t size, const char *from, unsigned long len)
{
	size_t end = len < size ? len : size - 1;

	memcpy(to, from ? from : "", end);
	to[end] = '\0';
	return end;
}

/* What BL_STMT_PAGE asks for. */
static void read_row(MYSQL_ROW from, const unsigned long *len, struct bl_page_row *ret)
{
	ret->id_len = bl_page_text(ret->id, sizeof(ret->id), from[0], len[0]);
	ret->type_len = bl_page_text(ret->type, sizeof(ret->type), from[1], len[1]);
	bl_page_text(ret->owner, sizeof(ret->owner), from[2], len[2]);
	bl_page_text(ret->note, sizeof(ret->note), from[3], len[3]);
	ret->fence = bl_rows_u64(from[4]);
	ret->depth = bl_rows_u32(from[5]);
	ret->left_us = bl_rows_number(from[6]);
	ret->held_us = bl_rows_number(from[7]);
	ret->slot = bl_rows_u32(from[8]);
	ret->limit = bl_rows_u32(from[9]);
}

int bl_page_order(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

static bool comes_after(const struct bl_page_row *row, const struct bl_page_row *before)
{
	int order = bl_page_order(row->id, row->id_len, before->id, before->id_len);

	if (order == 0)
		order = bl_page_order(row->type, row->type_len, before->type, before->type_len);
	return order > 0 || (order == 0 && row->slot > before->slot);
}

static int keep_rows(struct bl_rows *rows, const struct bl_page_row *after, struct bl_page *ret,
                     struct bl_err *err)
{
	static const struct bl_page_row beginning;
	const struct bl_page_row *before = after ? after : &beginning;
	MYSQL_ROW row;

	while ((row = bl_rows_next(rows)) != NULL) {
		struct bl_page_row *kept = &ret->rows[ret->count++];

		read_row(row, rows->lengths, kept);
		if (!comes_after(kept, before))
			return bl_err_set(err, BIZLOCK_DB, "rows out of the order of their keys");
		before = kept;
	}
	return BIZLOCK_OK;
}

static int read_page_rows(struct bl_session *s, enum bl_stmt stmt, const struct bl_page_row *after,
                          struct bl_page *ret, struct bl_err *err)
{
	struct bl_page page = {.rows = calloc(BL_PAGE_ROWS, sizeof(*page.rows))};
	struct bl_rows *rows = NULL;
	int rc;

	if (!page.rows)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	rc = bl_session_select(s, stmt, COLUMNS, &rows, err);
	if (rc == BIZLOCK_OK)
		rc = keep_rows(rows, after, &page, err);
	bl_rows_free(rows);
	if (rc == BIZLOCK_OK)
		*ret = page;
	else
		bl_page_free(&page);
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
