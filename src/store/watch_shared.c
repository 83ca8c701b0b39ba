/* How a connection looks at the shared locks that it watches. They have no single row whose fence
 * could be gone, so it asks of each whether anything is in the way. */
#include <string.h>

#include "store/shared_parts.h"
#include "store/watch_parts.h"

size_t bl_watch_among_last(struct bl_watched **watched, size_t n)
{
	size_t alone = 0;

	for (size_t i = 0; i < n; i++) {
		struct bl_watched *w = watched[i];

		if (w->among)
			continue;
		watched[i] = watched[alone];
		watched[alone++] = w;
	}
	return alone;
}

void bl_watch_add_shared(struct bl_session *s, const struct bl_watched *w)
{
	struct bl_wish wish = {.key = w->key, .exclusive = w->exclusive, .limit = w->limit};

	bl_buf_adds(&s->text, "IF(");
	if (w->first)
		bl_shared_add_in_way(s, &wish);
	else
		bl_buf_addf(&s->text, "IS_USED_LOCK('%s') IS NOT NULL", w->bell);
	bl_buf_adds(&s->text, ",1,0)");
}

static int look_at_some(struct bl_session *s, struct bl_watched **shared, size_t n,
                        struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc;

	bl_buf_reset(&s->text);
	for (size_t i = 0; i < n; i++) {
		bl_buf_adds(&s->text, i == 0 ? "SELECT CONCAT(" : ",");
		bl_watch_add_shared(s, shared[i]);
	}
	bl_buf_adds(&s->text, ")");
	rc = bl_watch_ask(s, 1, &rows, err);
	if (rc != BIZLOCK_OK)
		return rc;
	row = bl_rows_next(rows);
	if (row && row[0] && strlen(row[0]) == n)
		for (size_t i = 0; i < n; i++) {
			shared[i]->seen = true;
			shared[i]->left_us = row[0][i] == '1';
			shared[i]->fence = 1;
		}
	else
		rc = bl_session_refuse(s, err, "not as many answers as there were questions");
	bl_rows_free(rows);
	return rc;
}

int bl_watch_look_shared(struct bl_session *s, struct bl_watched **shared, size_t n, bool all,
                         struct bl_err *err)
{
	size_t count = 0;
	int rc = BIZLOCK_OK;

	for (size_t i = 0; i < n; i++) {
		struct bl_watched *w = shared[i];

		w->seen = w->passed = false;
		if (!all && w->fence)
			continue;
		shared[i] = shared[count];
		shared[count++] = w;
	}
	for (size_t i = 0; i < count && rc == BIZLOCK_OK; i += BL_WATCH_SHARED_MAX) {
		size_t left = count - i;

		rc = look_at_some(s, shared + i,
		                  left < BL_WATCH_SHARED_MAX ? left : BL_WATCH_SHARED_MAX, err);
	}
	return rc;
}
