#include "store/table/runs.h"

#include <stdlib.h>
#include <string.h>

#include "store/table/page.h"

static const char *const words[] = {
        [BIZLOCK_RUN_RUNNING] = "running",
        [BIZLOCK_RUN_DONE] = "done",
        [BIZLOCK_RUN_FAILED] = "failed",
        [BIZLOCK_RUN_LOST] = "lost",
};

/* ---- writing ---------------------------------------------------------------------------- */

int bl_run_begin(struct bl_session *s, struct bl_ref hold, uint32_t lease_ms, struct bl_err *err)
{
	bl_buf_reset(&s->text);
	bl_sql_begin_run(s->sql, &s->text, hold.key, hold.owner, hold.fence, lease_ms);
	return bl_session_run_text(s, NULL, err);
}

int bl_run_end(struct bl_session *s, struct bl_ref hold, const bizlock_run_result *result,
               struct bl_err *err)
{
	struct bl_run_end end = {.outcome = words[result->outcome],
	                         .exit_code = result->exit_code,
	                         .exit_signal = result->exit_signal};

	bl_buf_reset(&s->text);
	bl_sql_end_run(s->sql, &s->text, hold.key, hold.owner, hold.fence, &end);
	return bl_session_run_text(s, NULL, err);
}

/* ---- reading ---------------------------------------------------------------------------- */

enum { COLUMNS = 15 };

/* A run that nobody ended, and that no longer has its lock, ended by the death of its process. A
 * word of a later library is no success that this one knows of. */
static uint32_t read_outcome(const char *word, bool holds)
{
	for (uint32_t i = 0; word && i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(word, words[i]) == 0)
			return i == BIZLOCK_RUN_RUNNING && !holds ? BIZLOCK_RUN_DIED : i;
	return BIZLOCK_RUN_FAILED;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* What bl_sql_page_runs() asks for. */
static void read_row(MYSQL_ROW from, const unsigned long *len, struct bl_run_row *ret)
{
	uint32_t outcome = read_outcome(from[4], bl_rows_number(from[5]) != 0);
	uint64_t running = outcome == BIZLOCK_RUN_RUNNING, runs = bl_rows_u64(from[12]);

	ret->id_len = bl_page_text(ret->id, sizeof(ret->id), from[0], len[0]);
	ret->type_len = bl_page_text(ret->type, sizeof(ret->type), from[1], len[1]);
	bl_page_text(ret->owner, sizeof(ret->owner), from[2], len[2]);
	ret->run = (bizlock_run){
	        .size = sizeof(ret->run),
	        .fence = bl_rows_u64(from[3]),
	        .now_us = bl_rows_number(from[8]),
	        .began_us = bl_rows_number(from[9]),
	        .ended_us = bl_rows_number(from[10]),
	        .succeeded_us = bl_rows_number(from[11]),
	        .runs = runs,
	        .failures = less(runs, bl_rows_u64(from[13]) + running),
	        .failures_in_row = less(bl_rows_u64(from[14]), running),
	        .outcome = outcome,
	        .exit_code = from[6] ? (int32_t)bl_rows_u32(from[6]) : -1,
	        .exit_signal = bl_rows_u32(from[7]),
	};
}

static bool comes_after(const struct bl_run_row *row, const struct bl_run_row *before)
{
	int order = bl_page_order(row->id, row->id_len, before->id, before->id_len);

	return order > 0 || (order == 0 && bl_page_order(row->type, row->type_len, before->type,
	                                                 before->type_len) > 0);
}

static int keep_rows(struct bl_rows *rows, const struct bl_run_row *before, struct bl_run_page *ret,
                     struct bl_err *err)
{
	MYSQL_ROW row;

	while ((row = bl_rows_next(rows)) != NULL) {
		struct bl_run_row *kept = &ret->rows[ret->count++];

		read_row(row, rows->lengths, kept);
		if (before && !comes_after(kept, before))
			return bl_err_set(err, BIZLOCK_DB, "rows out of the order of their keys");
		before = kept;
	}
	return BIZLOCK_OK;
}

int bl_runs_read(struct bl_session *s, const char *biz_type, const char *biz_id,
                 const struct bl_run_row *after, struct bl_run_page *ret, struct bl_err *err)
{
	struct bl_run_page page = {.rows = calloc(BL_PAGE_ROWS, sizeof(*page.rows))};
	struct bl_sql_after key = {NULL, NULL, 0, 0};
	struct bl_rows *rows = NULL;
	int rc;

	if (!page.rows)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	if (after)
		key = (struct bl_sql_after){after->id, after->type, after->id_len, after->type_len};
	bl_buf_reset(&s->text);
	bl_sql_page_runs(s->sql, &s->text, biz_type, biz_id, after ? &key : NULL);
	rc = bl_session_query_text(s, COLUMNS, &rows, err);
	if (rc == BIZLOCK_OK)
		rc = rows->count > BL_PAGE_ROWS
		             ? bl_session_refuse(s, err, "more rows than were asked for")
		             : keep_rows(rows, after, &page, err);
	bl_rows_free(rows);
	if (rc == BIZLOCK_OK)
		*ret = page;
	else
		free(page.rows);
	return rc;
}
