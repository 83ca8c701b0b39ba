/* How a connection looks at the keys that it watches, and sleeps. */
#include <stdlib.h>
#include <string.h>

#include "store/session/errclass.h"
#include "store/shared/in_way.h"
#include "store/watch/watched.h"

/* One statement looks at this many keys at most. */
#define KEYS_MAX 1024

/* A look by fences is several times as fast as one by keys: a fence is a number in an index. Only a
 * server that was restored from a backup may have given a fence out twice. Then the end of the
 * lease tells. */
static int by_fence(const void *a, const void *b)
{
	uint64_t x = (*(struct bl_watched *const *)a)->fence;
	uint64_t y = (*(struct bl_watched *const *)b)->fence;

	return (x > y) - (x < y);
}

/* A step from one entry of the index to the next costs an eighth of finding an entry. So fences
 * that are near each other are asked for as a range, although it includes fences of others. */
#define NEAR 8
#define WORTH_A_RANGE 4

/* How many fences, from the first on, make one range. */
static size_t run_of(struct bl_watched **sorted, size_t n, uint64_t gap)
{
	size_t i = 1;

	while (i < n && sorted[i]->fence - sorted[i - 1]->fence <= gap)
		i++;
	return i;
}

/* TAKEN: a release may have left a free row with the same fence. */
static void add_fences(struct bl_session *s, struct bl_watched **sorted, size_t n, uint64_t gap)
{
	const char *before = " FORCE INDEX (fence) WHERE " TAKEN " AND (fence IN (0";
	size_t run;

	bl_buf_addf(&s->text, " FROM %s%s", s->sql->table, before);
	for (size_t i = 0; i < n; i += run) {
		run = run_of(sorted + i, n - i, gap);
		for (size_t j = i; run < WORTH_A_RANGE && j < i + run; j++) {
			bl_buf_adds(&s->text, ",");
			bl_buf_addu(&s->text, sorted[j]->fence);
		}
	}
	bl_buf_adds(&s->text, ")");
	for (size_t i = 0; i < n; i += run) {
		run = run_of(sorted + i, n - i, gap);
		if (run < WORTH_A_RANGE)
			continue;
		bl_buf_adds(&s->text, " OR fence BETWEEN ");
		bl_buf_addu(&s->text, sorted[i]->fence);
		bl_buf_adds(&s->text, " AND ");
		bl_buf_addu(&s->text, sorted[i + run - 1]->fence);
	}
	bl_buf_adds(&s->text, ")");
}

/* ---- shared locks: they have no single row whose fence could be gone, so it is asked of each
 * whether anything is in the way ----------------------------------------------------------- */

/* One statement looks at SHARED_MAX shared locks at most: each may be a question to the table. With
 * more, the statement that sleeps asks for only some, and sleeps MANY_MS at most: one of the others
 * may have been released just before. */
#define SHARED_MAX 256
#define MANY_MS 200

/* Puts exclusive locks first, shared ones (`among`) last; returns the number of the exclusive
 * ones. */
static size_t among_last(struct bl_watched **watched, size_t n)
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

/* 1: something is in the way; else 0. */
static void add_shared(struct bl_session *s, const struct bl_watched *w)
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
		add_shared(s, shared[i]);
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

/* Looks at shared locks without the flag `fence`, or at all. */
static int look_shared(struct bl_session *s, struct bl_watched **shared, size_t n, bool all,
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
	for (size_t i = 0; i < count && rc == BIZLOCK_OK; i += SHARED_MAX) {
		size_t left = count - i;

		rc = look_at_some(s, shared + i, left < SHARED_MAX ? left : SHARED_MAX, err);
	}
	return rc;
}

/* ---- locks that one owner has alone -------------------------------------------------------- */

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

/* The first entry that is not less than the key: several may wait for one key. */
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
	rc = bl_watch_ask(s, 4, &rows, err);
	if (rc != BIZLOCK_OK)
		return rc;
	qsort(watched, n, sizeof(*watched), by_key);
	for (size_t i = 0; i < n; i++) {
		watched[i]->left_us = 0;
		watched[i]->passed = watched[i]->fence != 0;
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

/* Sets `seen` for keys whose fence is gone. */
static int look_by_fence(struct bl_session *s, struct bl_watched **watched, size_t n,
                         struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc;

	qsort(watched, n, sizeof(*watched), by_fence);
	bl_buf_reset(&s->text);
	bl_buf_adds(&s->text, "SELECT fence");
	add_fences(s, watched, n, NEAR);
	rc = bl_watch_ask(s, 1, &rows, err);
	if (rc != BIZLOCK_OK)
		return rc;
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

/* Puts keys to be looked at by key (`seen`) first; returns their number. */
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
	size_t alone = among_last(watched, n), count;
	int rc = look_shared(s, watched + alone, n - alone, all, err);

	n = alone;
	for (size_t i = 0; i < n; i++)
		watched[i]->seen = watched[i]->fence == 0;
	count = seen_first(watched, n);
	if (rc == BIZLOCK_OK && all && count < n)
		rc = look_by_fence(s, watched + count, n - count, err);
	count = seen_first(watched, n);
	for (size_t i = 0; i < count && rc == BIZLOCK_OK; i += KEYS_MAX)
		rc = look_by_key(s, watched + i, count - i < KEYS_MAX ? count - i : KEYS_MAX, err);
	return rc;
}

/* Several may wait for one key. */
static size_t count_fences(struct bl_watched **sorted, size_t n)
{
	size_t count = n > 0;

	for (size_t i = 1; i < n; i++)
		count += sorted[i]->fence != sorted[i - 1]->fence;
	return count;
}

int bl_watch_sleep(struct bl_session *s, struct bl_watched **watched, size_t n, int64_t ms,
                   struct bl_err *err)
{
	size_t alone = among_last(watched, n);

	qsort(watched, alone, sizeof(*watched), by_fence);
	bl_buf_reset(&s->text);
	bl_buf_adds(&s->text, "SELECT IF((SELECT COUNT(*)");
	add_fences(s, watched, alone, 1); /* no others are counted */
	bl_buf_addf(&s->text, ")<%zu", count_fences(watched, alone));
	if (n - alone > SHARED_MAX)
		ms = ms < MANY_MS ? ms : MANY_MS;
	for (; n - alone > SHARED_MAX; n--)
		watched[n - 1]->fence = 0; /* left out here: the next look asks for it */
	for (size_t i = alone; i < n; i++) {
		bl_buf_adds(&s->text, i == alone ? " OR 0 IN (" : ",");
		add_shared(s, watched[i]);
	}
	bl_buf_adds(&s->text, alone < n ? "),2," : ",2,");
	bl_sql_sleep(s->sql, &s->text, ms, true);
	bl_buf_adds(&s->text, ")");
	return bl_session_post(s, err);
}

/* A sleep that was killed answers 1, or NULL if it was a wait for a named lock, or the error of a
 * statement that was killed. */
int bl_watch_awake(struct bl_session *s, enum bl_watch_end *ret, struct bl_err *err)
{
	struct bl_rows *rows = NULL;
	MYSQL_ROW row;
	int rc = bl_session_await(s, err);

	if (rc == BIZLOCK_OK)
		rc = bl_session_answer(s, 1, &rows, err);
	if (rc != BIZLOCK_OK && !s->gone && bl_was_stopped(err)) {
		*ret = BL_WATCH_WOKEN;
		return BIZLOCK_OK;
	}
	if (rc != BIZLOCK_OK)
		return rc;
	row = bl_rows_next(rows);
	switch (row && row[0] ? bl_rows_number(row[0]) : 1) {
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
