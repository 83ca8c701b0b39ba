#include "store/table/reap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/wait.h"
#include "store/row/lock.h"

#define PAGE_TEXT_MAX (32 << 20)    /* the longest keys, as many as are ever asked for */
#define BATCH_TEXT_MAX (128 * 1024) /* far below what most servers take in one packet */

/* ---- how many there are ------------------------------------------------------------ */

/* What EXPLAIN FORMAT=TRADITIONAL answers: how many columns, and which of them has the rows. */
enum { PLAN_MYSQL = 12, ROWS_MYSQL = 9, PLAN_MARIADB = 10, ROWS_MARIADB = 8 };

/* By the statistics of EXPLAIN: those in MySQL's information_schema may be a day old. */
int bl_reap_estimate(struct bl_session *s, struct bl_reap *r, struct bl_err *err)
{
	bool mariadb = s->sql->mariadb;
	struct bl_rows *result = NULL;
	MYSQL_ROW row;
	int rc;

	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text, "EXPLAIN FORMAT=TRADITIONAL SELECT biz_id FROM %s",
	            bl_sql_reap_table(s->sql, r->table));
	rc = bl_session_query_text(s, mariadb ? PLAN_MARIADB : PLAN_MYSQL, &result, err);
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
		bl_buf_addf(&page->text, ",%" PRIu32, bl_rows_u32(row[3]));
	bl_buf_adds(&page->text, ")");
	item->len = page->text.len - item->at;
	page->count++;
}

static void note_end(struct bl_reap *page, MYSQL_ROW row, const unsigned long *len)
{
	add_literal(&page->after_id, row[0], len[0]);
	add_literal(&page->after_type, row[1], len[1]);
	if (page->table == BL_REAP_LOCKS)
		page->after_slot = bl_rows_u32(row[3]);
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
	rc = bl_session_query_text(s, r->table == BL_REAP_LOCKS ? 4 : 3, &result, err);
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
	uint64_t part = s->packet_max / 4; /* a packet has the keys three times */

	return part > 0 && part < BATCH_TEXT_MAX ? (size_t)part : BATCH_TEXT_MAX;
}

/* *ret_next: the first item that is not of the batch. */
static int make_batch(const struct bl_session *s, const struct bl_reap *r, struct bl_sql_keys *ret,
                      uint32_t *ret_next, struct bl_err *err)
{
	size_t most = text_max(s);
	uint32_t i = r->from;

	*ret = (struct bl_sql_keys){.text = BL_BUF_INIT(2 * BATCH_TEXT_MAX)};
	for (; i < r->count && ret->n < r->most && ret->text.len < most; i++) {
		const struct bl_reap_item *item = &r->items[i];

		if (item->kind != r->kind)
			continue;
		if (ret->n++ > 0)
			bl_buf_adds(&ret->text, ",");
		bl_buf_add(&ret->text, r->text.data + item->at, item->len);
	}
	*ret_next = i;
	return ret->text.failed ? bl_err_set(err, BIZLOCK_NOMEM, "out of memory") : BIZLOCK_OK;
}

/* Why to sleep: a contender with the doorbell may have drawn a fence, and have no row yet.
 * Meanwhile others may have shared the lock, with larger fences. If the row of slot 0 goes now, the
 * contender makes a new one and looks for nobody. But it believes only an answer that comes within
 * BL_PROMPT_NS. Why to catch up: in a cluster others may have shared a lock before the mark, and
 * this member may not have applied their rows yet. */
static int mark(struct bl_session *s, const struct bl_reap *r, const struct bl_sql_keys *keys,
                struct bl_err *err)
{
	int rc;

	bl_sql_mark(s->sql, &s->text, keys, r->older_us, r->owner);
	rc = bl_session_run_text(s, NULL, err);
	if (rc != BIZLOCK_OK)
		return rc;
	bl_sleep_until(bl_now() + BL_PROMPT_NS);
	return bl_lock_catch_up(s, NULL, err);
}

static int purge_batch(struct bl_session *s, struct bl_reap *ret, const struct bl_sql_keys *keys,
                       struct bl_err *err)
{
	int rc = BIZLOCK_OK;

	bl_buf_reset(&s->text);
	if (ret->kind == BL_REAP_RESTS)
		rc = mark(s, ret, keys, err);
	if (rc != BIZLOCK_OK)
		return rc;
	bl_buf_reset(&s->text);
	if (ret->table == BL_REAP_LOCKS)
		bl_sql_reap_locks(s->sql, &s->text, keys, ret->older_us, ret->owner);
	else
		bl_sql_reap_row_locks(s->sql, &s->text, keys, ret->older_us);
	return bl_session_ask_text(s, &ret->purged, &ret->took_us, err);
}

int bl_reap_purge(struct bl_session *s, struct bl_reap *r, struct bl_err *err)
{
	struct bl_reap done = *r;
	struct bl_sql_keys keys;
	int rc = make_batch(s, r, &keys, &done.next, err);

	done.tried = keys.n;
	done.purged = 0;
	done.took_us = 0;
	if (rc == BIZLOCK_OK && keys.n > 0)
		rc = purge_batch(s, &done, &keys, err);
	if (rc == BIZLOCK_OK)
		*r = done;
	bl_buf_free(&keys.text);
	return rc;
}
