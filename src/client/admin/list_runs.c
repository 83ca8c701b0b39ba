/* The runs of jobs, shown a page at a time. */
#include <stdlib.h>

#include "client/admin/admin.h"
#include "client/conn/retry.h"
#include "store/table/runs.h"

struct view {
	const char *biz_type, *biz_id;
	const struct bl_run_row *after; /* NULL: from the beginning */
	struct bl_run_page page;        /* as read last */
};

static int read_page(struct bl_session *s, void *arg, struct bl_err *err)
{
	struct view *v = arg;

	return bl_runs_read(s, v->biz_type, v->biz_id, v->after, &v->page, err);
}

static int show_run(struct bl_run_row *row, int (*fn)(void *arg, const bizlock_run *), void *arg)
{
	row->run.biz_type = row->type;
	row->run.biz_id = row->id;
	row->run.owner = row->owner;
	return fn(arg, &row->run);
}

int bl_client_each_run(struct bizlock *b, const char *biz_type, const char *biz_id,
                       int (*fn)(void *arg, const bizlock_run *), void *arg, struct bl_err *err)
{
	struct view v = {.biz_type = biz_type, .biz_id = biz_id};
	struct bl_run_row last;
	bool end = false;

	while (!end) {
		int rc = bl_run_twice(b, read_page, &v, err);

		if (rc != BIZLOCK_OK)
			return rc;
		end = v.page.count < BL_PAGE_ROWS;
		for (size_t i = 0; i < v.page.count; i++) {
			last = v.page.rows[i];
			if (show_run(&last, fn, arg) != 0) {
				end = true;
				break;
			}
		}
		v.after = &last;
		free(v.page.rows);
	}
	return BIZLOCK_OK;
}
