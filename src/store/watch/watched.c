/* The names of a connection that watches. */
#include "store/watch/watched.h"

#include <string.h>

#include "store/session/errclass.h"

/* One statement takes at most this many names. */
#define NAMES_MAX 128

/* A release may kill a statement of a watcher that does not sleep, so the statement is tried this
 * often. */
#define TRIES 8

static enum bl_sleepers whom_of(const struct bl_watched *w)
{
	return w->first ? BL_SLEEPERS_FIRST : BL_SLEEPERS_WATCHING;
}

/* A statement that was killed may have taken some names. */
static void add_take(struct bl_buf *text, const struct bl_watched *w)
{
	unsigned end, first = bl_sleepers_slots(whom_of(w), &end);

	for (unsigned i = first; i < end; i++) {
		bl_sleepers_add_name(text, "IF(IFNULL(IS_USED_LOCK", i, w->bell, "");
		bl_buf_adds(text, ",0)=CONNECTION_ID(),1,");
	}
	for (unsigned i = first; i < end; i++) {
		bl_sleepers_add_name(text, "IF(GET_LOCK", i, w->bell, ",0");
		bl_buf_adds(text, "=1,1,");
	}
	bl_buf_adds(text, "0");
	for (unsigned i = first; i < end; i++)
		bl_buf_adds(text, "))");
}

int bl_watch_ask(struct bl_session *s, unsigned columns, struct bl_rows **ret, struct bl_err *err)
{
	int tries = 0, rc;

	*ret = NULL;
	do
		rc = bl_session_query_text(s, columns, ret, err);
	while (rc != BIZLOCK_OK && bl_was_stopped(err) && ++tries < TRIES);
	return rc;
}

/* The answer has one digit for each key, '1': it has a name. */
static int take_some(struct bl_session *s, struct bl_watched **watched, size_t n,
                     struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc;

	bl_buf_reset(&s->text);
	bl_buf_adds(&s->text, "SELECT CONCAT(''");
	for (size_t i = 0; i < n; i++) {
		bl_buf_adds(&s->text, ",");
		add_take(&s->text, watched[i]);
	}
	bl_buf_adds(&s->text, ")");
	rc = bl_watch_ask(s, 1, &rows, err);
	if (rc != BIZLOCK_OK)
		return rc;
	row = bl_rows_next(rows);
	for (size_t i = 0; row && row[0] && i < n && row[0][i]; i++)
		watched[i]->named = row[0][i] == '1';
	bl_rows_free(rows);
	return rc;
}

int bl_watch_take_names(struct bl_session *s, struct bl_watched **watched, size_t n,
                        struct bl_err *err)
{
	int rc = BIZLOCK_OK;

	for (size_t i = 0; rc == BIZLOCK_OK && i < n;) {
		struct bl_watched *some[NAMES_MAX];
		size_t count = 0;

		for (; i < n && count < NAMES_MAX; i++)
			if (!watched[i]->named)
				some[count++] = watched[i];
		if (count == 0)
			break;
		rc = take_some(s, some, count, err);
	}
	return rc;
}

/* Several waiters for one key share one name. */
static bool is_wanted(const struct bl_watched *w, struct bl_watched **kept, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (kept[i]->first == w->first && strcmp(kept[i]->bell, w->bell) == 0)
			return true;
	return false;
}

int bl_watch_free_names(struct bl_session *s, struct bl_watched **watched, size_t kept, size_t n,
                        struct bl_err *err)
{
	bool any = false;
	int tries = 0, rc;

	bl_buf_reset(&s->text);
	bl_buf_adds(&s->text, "DO ");
	for (size_t i = kept; i < n; i++) {
		unsigned end, slot = bl_sleepers_slots(whom_of(watched[i]), &end);

		if (!watched[i]->named || is_wanted(watched[i], watched, kept))
			continue;
		for (; slot < end; slot++) {
			bl_sleepers_add_name(&s->text, any ? ",RELEASE_LOCK" : "RELEASE_LOCK", slot,
			                     watched[i]->bell, "");
			any = true;
		}
	}
	if (!any)
		return BIZLOCK_OK;
	do
		rc = bl_session_run_text(s, NULL, err);
	while (rc != BIZLOCK_OK && bl_was_stopped(err) && ++tries < TRIES);
	return rc;
}
