/* The runs of jobs, in biz_run: the last run of each key, its last success, and counts. Nobody
 * waits for a row of this table to get a lock. */
#ifndef BL_STORE_TABLE_RUNS_H
#define BL_STORE_TABLE_RUNS_H

#include "store/row/lock.h"

/* Both may be repeated. The outcome is as bizlock_run_result has it. CONN (it may or may not have
 * run), NOMEM, DB: the table is missing, for example. */
int bl_run_begin(struct bl_session *s, struct bl_ref hold, uint32_t lease_ms, struct bl_err *err);
int bl_run_end(struct bl_session *s, struct bl_ref hold, const bizlock_run_result *result,
               struct bl_err *err);

struct bl_run_row {
	char id[BL_STORED_ID_MAX + 1], type[BL_STORED_TYPE_MAX + 1];
	size_t id_len, type_len; /* there may be NULs among them */
	char owner[BL_OWNER_MAX + 1];
	bizlock_run run; /* without its texts */
};

struct bl_run_page {
	struct bl_run_row *rows; /* freed by the caller */
	size_t count;            /* fewer than BL_PAGE_ROWS: the last page */
};

/* The rows after `after` (NULL: from the beginning), of biz_type and biz_id; NULL: of all. CONN,
 * NOMEM; DB, too, if the rows are out of order, as in bl_page_read(). */
int bl_runs_read(struct bl_session *s, const char *biz_type, const char *biz_id,
                 const struct bl_run_row *after, struct bl_run_page *ret, struct bl_err *err);

#endif
