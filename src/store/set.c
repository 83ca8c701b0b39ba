#include "store/set.h"

#include <stdlib.h>
#include <string.h>

#include "store/errclass.h"

enum { DROP_STATEMENTS = 4 };

static bool same(const char *text, unsigned long len, const char *part, size_t part_len)
{
	return text && len == part_len && memcmp(text, part, len) == 0;
}

struct reading {
	const struct bl_item *items;
	size_t n;
	struct bl_set_row *rows;
	unsigned statements; /* of a take, the last one reads the rows, that before it makes them */
	unsigned answered;   /* of a take */
};

/* One row: biz_id, biz_type, fence, taken_from. */
static void note(const struct reading *r, MYSQL_ROW row, const unsigned long *len)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct bl_key *key = &r->items[i].key;

		if (r->rows[i].seen || !same(row[0], len[0], key->id, key->id_len) ||
		    !same(row[1], len[1], key->type, key->type_len))
			continue;
		r->rows[i].seen = true;
		r->rows[i].fence = row[2] ? strtoull(row[2], NULL, 10) : 0;
		r->rows[i].took_over = row[3] && strcmp(row[3], "0") != 0;
		return;
	}
}

static void read_taken(void *arg, unsigned statement, MYSQL_RES *rows)
{
	struct reading *r = arg;
	MYSQL_ROW row;

	r->answered = statement + 1;
	if (r->answered == r->statements && rows && mysql_num_fields(rows) == 4)
		while ((row = mysql_fetch_row(rows)) != NULL)
			note(r, row, mysql_fetch_lengths(rows));
}

/* Which holds are there, and go; it follows START TRANSACTION. */
static void read_dropped(void *arg, unsigned statement, MYSQL_RES *rows)
{
	const struct reading *r = arg;
	MYSQL_ROW row;

	if (statement != 1 || !rows)
		return;
	while ((row = mysql_fetch_row(rows)) != NULL)
		for (size_t i = 0; i < r->n && row[0]; i++)
			r->rows[i].seen |= r->items[i].fence == strtoull(row[0], NULL, 10);
}

/* One after the other, up to the first that somebody has. Before any fence is drawn, so
 * that nobody who stands at a doorbell can come in between. */
static void add_rings(struct bl_session *s, const struct bl_item *items, size_t n, const char *rung)
{
	bl_buf_adds(&s->text, "SET @bizlock_rung = 1");
	for (size_t i = 0; i < n; i++)
		if (items[i].bell != rung)
			bl_buf_addf(&s->text, " AND GET_LOCK('%s',0) = 1", items[i].bell);
	bl_buf_adds(&s->text, ";");
}

static void add_insert(struct bl_session *s, const struct bl_item *items, size_t n,
                       const struct bl_set_claim *claim)
{
	bl_sql_begin_set(s->sql, &s->text);
	for (size_t i = 0; i < n; i++) {
		struct bl_sql_row row = {.key = &items[i].key,
		                         .owner = claim->owner,
		                         .note = claim->note,
		                         .lease_us = (int64_t)claim->lease_ms * 1000,
		                         .if_rung = claim->ring && i == 0,
		                         .bell = claim->ring};

		bl_sql_add_to_set(&s->text, i == 0, &row);
	}
	bl_sql_end_set(&s->text);
}

static void add_insert_again(struct bl_session *s, const struct bl_item *items, size_t n,
                             const char *owner)
{
	bl_sql_begin_set(s->sql, &s->text);
	for (size_t i = 0; i < n; i++)
		bl_sql_add_to_set_again(&s->text, i == 0, &items[i].key);
	bl_sql_end_set_again(&s->text, owner);
}

static void add_free_bells(struct bl_session *s, const struct bl_item *items, size_t n)
{
	bl_sql_free_bell(&s->text, items[0].bell);
	for (size_t i = 1; i < n; i++)
		bl_sql_free_another_bell(&s->text, items[i].bell);
}

void bl_set_free_bells(struct bl_session *s, const struct bl_item *items, size_t n)
{
	struct bl_err ignored;

	bl_buf_reset(&s->text);
	add_free_bells(s, items, n);
	if (s->text.failed || bl_session_run(s, s->text.data, s->text.len, NULL, &ignored))
		bl_session_leave(s);
}

/* The statement is there; with what reads its rows. *ret_done false: it was refused. */
static int run(struct bl_session *s, struct reading *r, const char *owner, bool *ret_done,
               struct bl_err *err)
{
	int rc;

	memset(r->rows, 0, r->n * sizeof(*r->rows));
	bl_sql_read_set(s->sql, &s->text);
	bl_many_where(&s->text, r->items, r->n, owner);
	rc = bl_session_each(s, r->statements, read_taken, r, err);
	*ret_done = rc == BIZLOCK_OK;
	return rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_NULL ? BIZLOCK_OK : rc;
}

int bl_set_take(struct bl_session *s, const struct bl_item *items, size_t n,
                const struct bl_set_claim *claim, struct bl_set_row *rows, enum bl_set_took *ret,
                struct bl_err *err)
{
	struct reading r = {items, n, rows, claim->ring ? 3 : 2, 0};
	bool all;
	int rc;

	bl_buf_reset(&s->text);
	if (claim->ring)
		add_rings(s, items, n, claim->rung);
	add_insert(s, items, n, claim);
	rc = run(s, &r, claim->owner, &all, err);
	if (!all && !s->gone && claim->ring)
		bl_set_free_bells(s, items, n); /* those that it came to */
	if (all)
		*ret = BL_SET_ALL;
	else
		*ret = r.answered + 1 < r.statements ? BL_SET_NOTHING : BL_SET_MAYBE;
	return rc;
}

int bl_set_draw_again(struct bl_session *s, const struct bl_item *items, size_t n,
                      const char *owner, struct bl_set_row *rows, struct bl_err *err)
{
	struct reading r = {items, n, rows, 2, 0};
	bool done;

	bl_buf_reset(&s->text);
	add_insert_again(s, items, n, owner);
	return run(s, &r, owner, &done, err);
}

int bl_set_drop(struct bl_session *s, const struct bl_item *items, size_t n, const char *suffix,
                bool bells, struct bl_set_row *rows, struct bl_err *err)
{
	struct reading r = {items, n, rows, DROP_STATEMENTS, 0};
	int rc;

	memset(rows, 0, n * sizeof(*rows));
	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text, "START TRANSACTION;SELECT fence FROM %s FORCE INDEX (PRIMARY)",
	            s->sql->table);
	bl_many_holds(&s->text, items, n, suffix);
	bl_buf_adds(&s->text, " FOR UPDATE;");
	bl_many_add_drop(&s->text, s->sql, items, n, suffix);
	bl_buf_adds(&s->text, ";COMMIT");
	if (bells) {
		bl_buf_adds(&s->text, ";");
		add_free_bells(s, items, n);
	}
	rc = bl_session_each(s, r.statements, read_dropped, &r, err);
	if (rc != BIZLOCK_OK)
		bl_session_leave(s); /* its transaction is open */
	return rc;
}
