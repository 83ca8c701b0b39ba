#include "store/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/errclass.h"
#include "store/sql_parts.h"

/* "bizlock:" and what follows is a doorbell; the names of watchers are as long. */
#define PREFIX_LEN 7

/* As many names are taken by one statement. */
#define NAMES_MAX 128

/* A release may end a statement of a watcher that does not sleep, so that it has to be repeated. */
#define TRIES_MAX 8

/* As many keys are looked at by one statement. */
#define KEYS_MAX 1024

static void add_name(struct bl_buf *text, const char *before, unsigned slot, const char *bell,
                     const char *after)
{
	bl_buf_addf(text, "%s('bizwat%u%s'%s)", before, slot, bell + PREFIX_LEN, after);
}

/* ---- those who release ---------------------------------------------------------------------- */

/* A number that is divided by zero gives a warning (settings.c asks for it), NULL gives none. The
 * answer to DO counts warnings, and has no rows: a SELECT costs four times what this does. */
void bl_watch_add_rings(struct bl_buf *text, const char *const *bells, size_t n,
                        const char *only_if)
{
	for (size_t i = 0; i < n; i++) {
		bl_buf_adds(text, i == 0 ? "DO " : ",");
		if (only_if)
			bl_buf_addf(text, "IF(%s,RELEASE_LOCK('%s'),0)", only_if, bells[i]);
		else
			bl_buf_addf(text, "RELEASE_LOCK('%s')", bells[i]);
		for (unsigned slot = 0; slot < BL_WATCH_SLOTS; slot++) {
			add_name(text, ",IS_USED_LOCK", slot, bells[i], "");
			bl_buf_adds(text, "/0");
		}
	}
}

/* More than these are woken by their own next look. */
#define WOKEN_MAX (2 * BL_WATCH_SLOTS)

static unsigned read_watchers(struct bl_rows *rows, uint64_t ret[WOKEN_MAX])
{
	MYSQL_ROW row = bl_rows_next(rows);
	char *at = row ? row[0] : NULL;
	unsigned n = 0;

	while (at && *at && n < WOKEN_MAX) {
		char *end;
		uint64_t id = strtoull(at, &end, 10);
		bool known = id == 0;

		for (unsigned i = 0; i < n; i++)
			known |= ret[i] == id;
		if (!known)
			ret[n++] = id;
		at = *end == ',' ? end + 1 : NULL;
	}
	return n;
}

static unsigned find_watchers(struct bl_session *s, const char *const *bells, size_t n,
                              uint64_t ret[WOKEN_MAX])
{
	struct bl_err ignored;
	struct bl_rows *rows;
	unsigned found;

	bl_buf_reset(&s->text);
	bl_buf_adds(&s->text, "SELECT CONCAT_WS(','");
	for (size_t i = 0; i < n; i++)
		for (unsigned slot = 0; slot < BL_WATCH_SLOTS; slot++)
			add_name(&s->text, ",IS_USED_LOCK", slot, bells[i], "");
	bl_buf_adds(&s->text, ")");
	if (s->text.failed || bl_session_query(s, s->text.data, 1, &rows, &ignored) != BIZLOCK_OK)
		return 0;
	found = read_watchers(rows, ret);
	bl_rows_free(rows);
	return found;
}

void bl_watch_wake(struct bl_session *s, const char *const *bells, size_t n)
{
	uint64_t ids[WOKEN_MAX];
	unsigned found = 0;

	if (!s->gone && mysql_warning_count(s->mysql) > 0)
		found = find_watchers(s, bells, n, ids);
	s->woke = found > 0;
	for (unsigned i = 0; i < found && !s->gone; i++)
		bl_watch_end_sleep(s, ids[i]);
}

void bl_watch_end_sleep(struct bl_session *s, uint64_t connection)
{
	struct bl_err ignored;
	char text[48];
	int len = snprintf(text, sizeof(text), "KILL QUERY %" PRIu64, connection);

	bl_session_run(s, text, (size_t)len, NULL, &ignored);
}

/* ---- those who watch: names ----------------------------------------------------------------- */

/* A statement that was ended from outside may have taken some. */
static void add_take(struct bl_buf *text, const char *bell)
{
	for (unsigned i = 0; i < BL_WATCH_SLOTS; i++) {
		add_name(text, "IF(IFNULL(IS_USED_LOCK", i, bell, "");
		bl_buf_adds(text, ",0)=CONNECTION_ID(),1,");
	}
	for (unsigned i = 0; i < BL_WATCH_SLOTS; i++) {
		add_name(text, "IF(GET_LOCK", i, bell, ",0");
		bl_buf_adds(text, "=1,1,");
	}
	bl_buf_adds(text, "0");
	for (unsigned i = 0; i < 2 * BL_WATCH_SLOTS; i++)
		bl_buf_adds(text, ")");
}

static bool is_stopped(int rc, const struct bl_err *err)
{
	enum bl_class class = bl_classify(err->native);

	return rc == BIZLOCK_DB && (class == BL_CLASS_STOPPED || class == BL_CLASS_RETRY);
}

/* One digit for each. */
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
		add_take(&s->text, watched[i]->bell);
	}
	bl_buf_adds(&s->text, ")");
	if (s->text.failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	rc = bl_session_query(s, s->text.data, 1, &rows, err);
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
		for (int tries = 0; tries == 0 || (is_stopped(rc, err) && tries < TRIES_MAX);
		     tries++)
			rc = take_some(s, some, count, err);
	}
	return rc;
}

int bl_watch_free_names(struct bl_session *s, struct bl_watched **watched, size_t n,
                        struct bl_err *err)
{
	bool any = false;
	int rc = BIZLOCK_OK;

	bl_buf_reset(&s->text);
	bl_buf_adds(&s->text, "DO ");
	for (size_t i = 0; i < n; i++)
		for (unsigned slot = 0; watched[i]->named && slot < BL_WATCH_SLOTS; slot++) {
			add_name(&s->text, any ? ",RELEASE_LOCK" : "RELEASE_LOCK", slot,
			         watched[i]->bell, "");
			any = true;
		}
	if (!any)
		return BIZLOCK_OK;
	if (s->text.failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	for (int tries = 0; tries == 0 || (is_stopped(rc, err) && tries < TRIES_MAX); tries++)
		rc = bl_session_run(s, s->text.data, s->text.len, NULL, err);
	return rc;
}

/* ---- those who watch: looking, and sleeping ----------------------------------------------------
 */

/* A fence is a number in an index: that is several times as fast as the key. Only a server that was
 * restored from a backup may have given one out twice; then the end of the lease tells. */
static void add_fences(struct bl_session *s, struct bl_watched **watched, size_t n)
{
	const char *before = " FORCE INDEX (fence) WHERE fence IN (";

	bl_buf_addf(&s->text, " FROM %s", s->sql->table);
	for (size_t i = 0; i < n; i++) {
		bl_buf_addf(&s->text, "%s%" PRIu64, before, watched[i]->fence);
		before = ",";
	}
	bl_buf_adds(&s->text, ")");
}

static int run_look(struct bl_session *s, unsigned columns, struct bl_rows **ret,
                    struct bl_err *err)
{
	int rc = BIZLOCK_OK;

	if (s->text.failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	for (int tries = 0; tries == 0 || (is_stopped(rc, err) && tries < TRIES_MAX); tries++)
		rc = bl_session_query(s, s->text.data, columns, ret, err);
	return rc;
}

static int order(const struct bl_watched *w, const char *id, const char *type)
{
	int by_id = strcmp(w->key->id, id);

	return by_id ? by_id : strcmp(w->key->type, type);
}

static int by_key(const void *a, const void *b)
{
	const struct bl_watched *y = *(struct bl_watched *const *)b;

	return order(*(struct bl_watched *const *)a, y->key->id, y->key->type);
}

/* The first of those that are not less: several may wait for one key. */
static size_t find_key(struct bl_watched **watched, size_t n, const char *id, const char *type)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (order(watched[middle], id, type) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int look_by_key(struct bl_session *s, struct bl_watched **watched, size_t n,
                       struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc;

	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text,
	            "SELECT biz_id, biz_type, TIMESTAMPDIFF(MICROSECOND, " NOW ", timeout), fence "
	            "FROM %s FORCE INDEX (PRIMARY)",
	            s->sql->table);
	for (size_t i = 0; i < n; i++)
		bl_sql_add_key(&s->text, i == 0, watched[i]->key);
	bl_sql_end_keys(&s->text);
	bl_sql_living(&s->text);
	rc = run_look(s, 4, &rows, err);
	if (rc != BIZLOCK_OK)
		return rc;
	qsort(watched, n, sizeof(*watched), by_key);
	for (size_t i = 0; i < n; i++) {
		watched[i]->left_us = 0;
		watched[i]->fence = 0;
	}
	while ((row = bl_rows_next(rows)) != NULL)
		for (size_t i = row[0] && row[1] ? find_key(watched, n, row[0], row[1]) : n;
		     i < n && order(watched[i], row[0], row[1]) == 0; i++) {
			watched[i]->left_us = bl_rows_number(row[2]);
			watched[i]->fence = (uint64_t)bl_rows_number(row[3]);
		}
	bl_rows_free(rows);
	return rc;
}

static int by_fence(const void *a, const void *b)
{
	uint64_t x = (*(struct bl_watched *const *)a)->fence;
	uint64_t y = (*(struct bl_watched *const *)b)->fence;

	return (x > y) - (x < y);
}

/* Marks those whose fence is gone. */
static int look_by_fence(struct bl_session *s, struct bl_watched **watched, size_t n,
                         struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc;

	bl_buf_reset(&s->text);
	bl_buf_adds(&s->text, "SELECT fence");
	add_fences(s, watched, n);
	rc = run_look(s, 1, &rows, err);
	if (rc != BIZLOCK_OK)
		return rc;
	qsort(watched, n, sizeof(*watched), by_fence);
	for (size_t i = 0; i < n; i++)
		watched[i]->seen = true;
	while ((row = bl_rows_next(rows)) != NULL) {
		struct bl_watched one = {.fence = (uint64_t)bl_rows_number(row[0])}, *key = &one;
		struct bl_watched **at = bsearch(&key, watched, n, sizeof(*watched), by_fence);

		for (; at && at > watched && at[-1]->fence == one.fence; at--)
			continue;
		for (; at && at < watched + n && (*at)->fence == one.fence; at++)
			(*at)->seen = false;
	}
	bl_rows_free(rows);
	return rc;
}

/* Those to be looked at by key come first: how many. */
static size_t seen_first(struct bl_watched **watched, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		struct bl_watched *w = watched[i];

		if (!w->seen)
			continue;
		watched[i] = watched[count];
		watched[count++] = w;
	}
	return count;
}

int bl_watch_look(struct bl_session *s, struct bl_watched **watched, size_t n, bool all,
                  struct bl_err *err)
{
	size_t count;
	int rc = BIZLOCK_OK;

	for (size_t i = 0; i < n; i++)
		watched[i]->seen = watched[i]->fence == 0;
	count = seen_first(watched, n);
	if (all && count < n)
		rc = look_by_fence(s, watched + count, n - count, err);
	count = seen_first(watched, n);
	for (size_t i = 0; i < count && rc == BIZLOCK_OK; i += KEYS_MAX)
		rc = look_by_key(s, watched + i, count - i < KEYS_MAX ? count - i : KEYS_MAX, err);
	return rc;
}

/* Several may wait for one key. */
static size_t count_fences(struct bl_watched **watched, size_t n)
{
	size_t count = n > 0;

	qsort(watched, n, sizeof(*watched), by_fence);
	for (size_t i = 1; i < n; i++)
		count += watched[i]->fence != watched[i - 1]->fence;
	return count;
}

int bl_watch_sleep(struct bl_session *s, struct bl_watched **watched, size_t n, int64_t ms,
                   struct bl_err *err)
{
	bl_buf_reset(&s->text);
	bl_buf_adds(&s->text, "SELECT IF((SELECT COUNT(DISTINCT fence)");
	add_fences(s, watched, n);
	bl_buf_addf(&s->text, ")<%zu,2,SLEEP(%" PRId64 ".%03d))", count_fences(watched, n),
	            ms / 1000, (int)(ms % 1000));
	if (s->text.failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	if (bl_session_ready(s, err) != BIZLOCK_OK)
		return err->code;
	return bl_session_post(s, s->text.data, s->text.len, err);
}

/* A sleep that was ended answers 1, or with the error of a statement that was. */
int bl_watch_awake(struct bl_session *s, enum bl_watch_end *ret, struct bl_err *err)
{
	struct bl_rows *rows = NULL;
	MYSQL_ROW row;
	int rc = bl_session_await(s, err);

	if (rc == BIZLOCK_OK)
		rc = bl_session_answer(s, 1, &rows, err);
	if (!s->gone && is_stopped(rc, err)) {
		*ret = BL_WATCH_WOKEN;
		return BIZLOCK_OK;
	}
	if (rc != BIZLOCK_OK)
		return rc;
	row = bl_rows_next(rows);
	switch (row ? bl_rows_number(row[0]) : 0) {
	case 1:
		*ret = BL_WATCH_WOKEN;
		break;
	case 2:
		*ret = BL_WATCH_CHANGED;
		break;
	default:
		*ret = BL_WATCH_OVER;
	}
	bl_rows_free(rows);
	return rc;
}
