#include "store/set.h"

#include <string.h>

#include "store/errclass.h"
#include "store/shared_parts.h"
#include "store/watch.h"

enum { DROP_STATEMENTS = 4 };

/* ---- taking -------------------------------------------------------------------------- */

static bool same(const char *text, unsigned long len, const char *part, size_t part_len)
{
	return text && len == part_len && memcmp(text, part, len) == 0;
}

struct taking {
	MYSQL *mysql;
	struct bl_goal **goals;
	size_t n;
	unsigned statements; /* the last one reads the rows, that before it makes them */
	unsigned answered;
	bool there; /* one of the rows was there before */
};

enum { COLUMNS = 5 };

/* One row: biz_id, biz_type, fence, taken_from, and whether anybody shares the lock. */
static void note_taken(const struct taking *t, MYSQL_ROW row, const unsigned long *len)
{
	for (size_t i = 0; i < t->n; i++) {
		struct bl_goal *goal = t->goals[i];

		if (goal->seen || !same(row[0], len[0], goal->key->id, goal->key->id_len) ||
		    !same(row[1], len[1], goal->key->type, goal->key->type_len))
			continue;
		goal->seen = true;
		goal->fence = bl_rows_u64(row[2]);
		goal->took_over = goal->cleared || (row[3] && strcmp(row[3], "0") != 0);
		goal->shared = !row[4] || strcmp(row[4], "0") != 0;
		return;
	}
}

static void read_taken(void *arg, unsigned statement, struct bl_rows *rows)
{
	struct taking *t = arg;
	MYSQL_ROW row;

	t->answered = statement + 1;
	if (t->answered + 1 == t->statements && !rows)
		t->there = mysql_affected_rows(t->mysql) > t->n; /* see bl_was_there() */
	if (t->answered == t->statements && rows && rows->columns == COLUMNS)
		while ((row = bl_rows_next(rows)) != NULL)
			note_taken(t, row, rows->lengths);
}

/* Rings one after the other, up to the first that somebody has; before any fence is drawn, so that
 * no contender at a doorbell comes in between. */
static void add_rings(struct bl_session *s, struct bl_goal *const *goals, size_t n,
                      const char *rung)
{
	bl_buf_adds(&s->text, "SET @bizlock_rung = 1");
	for (size_t i = 0; i < n; i++)
		if (goals[i]->bell != rung)
			bl_buf_addf(&s->text, " AND GET_LOCK('%s',0) = 1", goals[i]->bell);
	bl_buf_adds(&s->text, ";");
}

static void add_set_insert(struct bl_session *s, struct bl_goal *const *goals, size_t n,
                           const struct bl_claim *claim, bool bells)
{
	bl_sql_begin_set(s->sql, &s->text);
	for (size_t i = 0; i < n; i++) {
		struct bl_sql_row row = {.key = goals[i]->key,
		                         .owner = claim->owner,
		                         .note = claim->note,
		                         .lease_us = (int64_t)claim->lease_ms * 1000,
		                         .if_rung = bells && i == 0,
		                         .bell = bells};

		bl_sql_add_to_set(&s->text, i == 0, &row);
	}
	bl_sql_end_set(&s->text);
}

/* Sends the text, to which the statements that read the rows are added. *ret_done false: it was
 * refused. */
static int take(struct bl_session *s, struct taking *t, const char *owner, bool looks,
                bool *ret_done, struct bl_err *err)
{
	int rc;

	bl_sql_read_set(s->sql, &s->text, looks);
	for (size_t i = 0; i < t->n; i++) {
		t->goals[i]->seen = false;
		bl_sql_add_key(&s->text, i == 0, t->goals[i]->key);
	}
	bl_sql_end_keys(&s->text);
	bl_many_suffix(&s->text, owner);
	rc = bl_session_each(s, t->statements, read_taken, t, err);
	*ret_done = rc == BIZLOCK_OK;
	return rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_NULL ? BIZLOCK_OK : rc;
}

void bl_set_free_bells(struct bl_session *s, struct bl_goal *const *goals, size_t n)
{
	struct bl_err ignored;

	bl_buf_reset(&s->text);
	bl_sql_free_bell(&s->text, goals[0]->bell);
	for (size_t i = 1; i < n; i++)
		bl_sql_free_another_bell(&s->text, goals[i]->bell);
	if (bl_session_run_text(s, NULL, &ignored))
		bl_session_leave(s);
}

int bl_set_take(struct bl_session *s, const struct bl_claim *claim, struct bl_goal **goals,
                size_t n, struct bl_ring ring, enum bl_took *ret, bool *ret_over,
                struct bl_err *err)
{
	struct taking t = {s->mysql, goals, n, ring.bells ? 3 : 2, 0, false};
	bool all;
	int rc;

	bl_buf_reset(&s->text);
	if (ring.bells)
		add_rings(s, goals, n, ring.rung);
	add_set_insert(s, goals, n, claim, ring.bells);
	rc = take(s, &t, claim->owner, false, &all, err);
	*ret_over = t.there;
	if (!all && !s->gone && ring.bells)
		bl_set_free_bells(s, goals, n); /* those that it came to */
	if (all)
		*ret = BL_TOOK_ALL;
	else
		*ret = t.answered + 1 < t.statements ? BL_TOOK_NOTHING : BL_TOOK_MAYBE;
	return rc;
}

/* A cluster's member asks for those that share the locks once it has caught up with the others. */
static int draw_apart(struct bl_session *s, struct taking *t, struct bl_err *err)
{
	int rc;

	rc = bl_session_run_text(s, NULL, err);
	if (rc == BIZLOCK_OK)
		rc = bl_shared_catch_up(s, err);
	bl_buf_reset(&s->text);
	t->statements--;
	return rc;
}

int bl_set_draw_again(struct bl_session *s, const struct bl_claim *claim, struct bl_goal **goals,
                      size_t n, struct bl_err *err)
{
	struct taking t = {s->mysql, goals, n, 2, 0, false};
	int rc = BIZLOCK_OK;
	bool done;

	for (size_t i = 0; i < n; i++)
		goals[i]->seen = false;
	bl_buf_reset(&s->text);
	bl_sql_begin_set(s->sql, &s->text);
	for (size_t i = 0; i < n; i++)
		bl_sql_add_free_row(&s->text, i == 0, goals[i]->key);
	bl_sql_begin_again(&s->text);
	bl_buf_adds(&s->text, "owner = ");
	bl_sql_literal(&s->text, "_ascii", claim->owner, strlen(claim->owner));
	bl_sql_end_again(&s->text);
	if (bl_shared_in_cluster(s))
		rc = draw_apart(s, &t, err);
	if (rc == BIZLOCK_OK)
		return take(s, &t, claim->owner, true, &done, err);
	return rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_NULL ? BIZLOCK_OK : rc;
}

/* ---- dropping ------------------------------------------------------------------------ */

struct dropping {
	const struct bl_item *items;
	size_t n;
	bool *seen;
};

/* Follows START TRANSACTION: which holds are there, and are deleted next. */
static void read_dropped(void *arg, unsigned statement, struct bl_rows *rows)
{
	struct dropping *d = arg;
	MYSQL_ROW row;

	if (statement != 1 || !rows)
		return;
	while ((row = bl_rows_next(rows)) != NULL)
		for (size_t i = 0; i < d->n && row[0]; i++)
			d->seen[i] |= d->items[i].fence == bl_rows_u64(row[0]);
}

int bl_set_drop(struct bl_session *s, const struct bl_item *items, size_t n, const char *suffix,
                bool rings, bool *ret_dropped, struct bl_err *err)
{
	bool asks = !rings && items[0].bell;
	struct dropping d = {items, n, ret_dropped};
	const char *rung[BL_TAKE_MAX];
	int rc;

	memset(ret_dropped, 0, n * sizeof(*ret_dropped));
	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text, "START TRANSACTION;SELECT fence FROM %s FORCE INDEX (PRIMARY)",
	            s->sql->table);
	bl_many_holds(&s->text, items, n, suffix);
	bl_buf_adds(&s->text, " FOR UPDATE;");
	bl_many_add_drop(&s->text, s->sql, items, n, suffix);
	bl_buf_adds(&s->text, ";COMMIT");
	for (size_t i = 0; i < n; i++)
		rung[i] = items[i].bell;
	if (rings || asks)
		bl_buf_adds(&s->text, ";");
	if (rings)
		bl_watch_add_rings(s, rung, n);
	else if (asks)
		bl_watch_add_question(&s->text, rung, n, BL_WATCH_ALL);
	rc = bl_session_each(s, DROP_STATEMENTS, read_dropped, &d, err);
	if (rc != BIZLOCK_OK)
		bl_session_leave(s); /* its transaction is open */
	else if (rings || asks)
		bl_watch_wake(s, rung, n, rings ? BL_WATCH_WATCHERS : BL_WATCH_ALL);
	return rc;
}
