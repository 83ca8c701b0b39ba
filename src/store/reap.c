#include "store/reap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_TEXT_MAX (32 << 20)    /* the longest keys, as many as are ever asked for */
#define BATCH_TEXT_MAX (256 * 1024) /* far below what most servers take in one packet */

static int reap_query(struct bl_session *s, unsigned columns, struct bl_rows **ret,
                      struct bl_err *err)
{
	if (s->text.failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	return bl_session_query(s, s->text.data, columns, ret, err);
}

/* ---- how many there are ------------------------------------------------------------ */

/* What EXPLAIN FORMAT=TRADITIONAL answers: how many columns, and which of them has the rows. */
enum { PLAN_MYSQL = 12, ROWS_MYSQL = 9, PLAN_MARIADB = 10, ROWS_MARIADB = 8 };

/* Of the statistics, as EXPLAIN has them: in MySQL's information_schema they may be a day
 * old. */
int bl_reap_estimate(struct bl_session *s, struct bl_reap *r, struct bl_err *err)
{
	bool mariadb = s->sql->mariadb;
	struct bl_rows *result = NULL;
	MYSQL_ROW row;
	int rc;

	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text, "EXPLAIN FORMAT=TRADITIONAL SELECT biz_id FROM %s",
	            bl_sql_reap_table(s->sql, r->table));
	rc = reap_query(s, mariadb ? PLAN_MARIADB : PLAN_MYSQL, &result, err);
	if (rc != BIZLOCK_OK)
		return rc;
	row = bl_rows_next(result);
	row = row ? row + (mariadb ? ROWS_MARIADB : ROWS_MYSQL) : NULL;
	r->estimate = row ? bl_rows_number(*row) : 0;
	bl_rows_free(result);
	return BIZLOCK_OK;
}

/* ---- a page ----------------------------------------------------------------------------- */

static void add_literal(struct bl_buf *ret, const char *text, unsigned long len)
{
	bl_sql_literal(ret, "_utf8mb4", text, len);
}

static uint32_t slot_of(MYSQL_ROW row)
{
	return row[3] ? (uint32_t)strtoul(row[3], NULL, 10) : 0;
}

static void keep(struct bl_reap *page, MYSQL_ROW row, const unsigned long *len)
{
	struct bl_reap_item *item = &page->items[page->count];
	long kind = row[2] ? strtol(row[2], NULL, 10) : BL_REAP_NONE;

	page->rows++;
	if (kind <= BL_REAP_NONE || kind >= BL_REAP_KINDS)
		return;
	item->kind = (enum bl_reap_kind)kind;
	item->at = page->text.len;
	bl_buf_adds(&page->text, "(");
	add_literal(&page->text, row[0], len[0]);
	bl_buf_adds(&page->text, ",");
	add_literal(&page->text, row[1], len[1]);
	if (page->table == BL_REAP_LOCKS)
		bl_buf_addf(&page->text, ",%" PRIu32, slot_of(row));
	bl_buf_adds(&page->text, ")");
	item->len = page->text.len - item->at;
	page->count++;
}

static void note_end(struct bl_reap *page, MYSQL_ROW row, const unsigned long *len)
{
	add_literal(&page->after_id, row[0], len[0]);
	add_literal(&page->after_type, row[1], len[1]);
	if (page->table == BL_REAP_LOCKS)
		page->after_slot = slot_of(row);
}

static int fill(struct bl_reap *page, struct bl_rows *result, struct bl_err *err)
{
	MYSQL_ROW row;

	page->items = calloc(result->count + 1, sizeof(*page->items));
	if (!page->items)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	while ((row = bl_rows_next(result)) != NULL) {
		const unsigned long *len = result->lengths;

		if (!row[0] || !row[1])
			return bl_err_set(err, BIZLOCK_DB, "a row without a key");
		keep(page, row, len);
		if (page->rows == result->count)
			note_end(page, row, len);
	}
	if (page->text.failed || page->after_id.failed || page->after_type.failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	return BIZLOCK_OK;
}

int bl_reap_read(struct bl_session *s, struct bl_reap *r, struct bl_err *err)
{
	struct bl_reap page = *r;
	struct bl_rows *result = NULL;
	int rc;

	bl_buf_reset(&s->text);
	bl_sql_reap_page(s->sql, &s->text, r->table, r->older_us, r->after_id.data,
	                 r->after_type.data, r->after_slot, r->page);
	rc = reap_query(s, r->table == BL_REAP_LOCKS ? 4 : 3, &result, err);
	if (rc != BIZLOCK_OK || !result)
		return rc;
	page.items = NULL;
	page.count = page.rows = 0;
	page.text = page.after_id = page.after_type = (struct bl_buf)BL_BUF_INIT(PAGE_TEXT_MAX);
	rc = result->count > r->page ? bl_session_refuse(s, err, "more rows than were asked for")
	                             : fill(&page, result, err);
	bl_rows_free(result);
	bl_reap_free(rc == BIZLOCK_OK ? r : &page);
	if (rc == BIZLOCK_OK)
		*r = page;
	return rc;
}

void bl_reap_free(struct bl_reap *r)
{
	free(r->items);
	r->items = NULL;
	r->count = 0;
	bl_buf_free(&r->text);
	bl_buf_free(&r->after_id);
	bl_buf_free(&r->after_type);
}

/* ---- a batch ----------------------------------------------------------------------------- */

static size_t text_max(const struct bl_session *s)
{
	uint64_t half = s->packet_max / 2;

	return half > 0 && half < BATCH_TEXT_MAX ? (size_t)half : BATCH_TEXT_MAX;
}

/* *ret_next: the first item that is not of the batch. How many are. */
static uint32_t add_batch(const struct bl_reap *r, struct bl_buf *text, size_t text_max,
                          uint32_t *ret_next)
{
	uint32_t n = 0, i = r->from;

	for (; i < r->count && n < r->most && text->len < text_max; i++) {
		const struct bl_reap_item *item = &r->items[i];

		if (item->kind != r->kind)
			continue;
		if (n++ > 0)
			bl_buf_adds(text, ",");
		bl_buf_add(text, r->text.data + item->at, item->len);
	}
	*ret_next = i;
	return n;
}

int bl_reap_purge(struct bl_session *s, struct bl_reap *r, struct bl_err *err)
{
	uint64_t purged = 0;
	int64_t took_us = 0;
	uint32_t n, next;
	int rc = BIZLOCK_OK;

	bl_buf_reset(&s->text);
	bl_sql_begin_reap(s->sql, &s->text, r->table);
	n = add_batch(r, &s->text, text_max(s), &next);
	bl_sql_end_reap(s->sql, &s->text, r->table, r->older_us, n);
	if (s->text.failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	if (n > 0)
		rc = bl_session_ask(s, s->text.data, s->text.len, &purged, &took_us, err);
	if (rc != BIZLOCK_OK)
		return rc;
	r->tried = n;
	r->next = next;
	r->purged = purged;
	r->took_us = took_us;
	return rc;
}
