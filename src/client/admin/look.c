/* Looking at rows: a page at a time, so that a table of any size can be shown. */
#include "client/admin/admin.h"
#include "client/conn/retry.h"
#include "store/table/page.h"

/* A view of the rows of `key`, from `slot` on; without a key, of the rows behind `after`, of
 * biz_type or (NULL) of all types. */
struct view {
	const struct bl_key *key;
	uint64_t slot;
	const char *biz_type;
	struct bl_page_row after;
	struct bl_page page; /* as read last */
};

static int read_page(struct bl_session *s, void *arg, struct bl_err *err)
{
	struct view *v = arg;

	return v->key ? bl_page_read_key(s, v->key, v->slot, &v->page, err)
	              : bl_page_read(s, &v->after, v->biz_type, &v->page, err);
}

static int show_row(const struct bl_page_row *row, int (*fn)(void *arg, const bizlock_info *),
                    void *arg)
{
	bizlock_info info = {
	        .size = sizeof(info),
	        .biz_type = row->type,
	        .biz_id = row->id,
	        .owner = row->owner,
	        .note = row->note,
	        .fence = row->fence,
	        .left_ms = row->left_us / 1000,
	        .held_ms = row->held_us / 1000,
	        .depth = row->depth,
	        .flags = row->slot > 0 ? BIZLOCK_SHARED : 0,
	        .slot = row->slot,
	        .limit = row->limit,
	};

	return fn(arg, &info);
}

int bl_client_look(struct bizlock *b, const struct bl_key *key, const char *biz_type,
                   int (*fn)(void *arg, const bizlock_info *), void *arg, struct bl_err *err)
{
	struct view v = {.key = key, .biz_type = biz_type};
	bool end = false;

	while (!end) {
		int rc = bl_run_twice(b, read_page, &v, err);

		if (rc != BIZLOCK_OK)
			return rc;
		end = v.page.count < BL_PAGE_ROWS;
		for (size_t i = 0; i < v.page.count; i++) {
			v.after = v.page.rows[i];
			if (show_row(&v.after, fn, arg) != 0) {
				end = true;
				break;
			}
		}
		bl_page_free(&v.page);
		v.slot = v.after.slot + UINT64_C(1);
	}
	return BIZLOCK_OK;
}
