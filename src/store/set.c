#include "store/set.h"

#include <stdlib.h>
#include <string.h>

#include "store/errclass.h"

enum { TAKE_STATEMENTS = 5, DROP_STATEMENTS = 4 };

static bool same(const char *text, unsigned long len, const char *part, size_t part_len)
{
	return text && len == part_len && memcmp(text, part, len) == 0;
}

struct reading {
	const struct bl_item *items;
	size_t n;
	struct bl_set_row *rows;
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
	MYSQL_ROW row;

	if (statement + 1 == TAKE_STATEMENTS && rows && mysql_num_fields(rows) == 4)
		while ((row = mysql_fetch_row(rows)) != NULL)
			note(arg, row, mysql_fetch_lengths(rows));
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

static void add_row(struct bl_session *s, const struct bl_item *item,
                    const struct bl_set_claim *claim, bool first)
{
	struct bl_sql_row row = {
	        .key = &item->key,
	        .owner = claim->owner,
	        .note = claim->note,
	        .lease_us = (int64_t)claim->lease_ms * 1000,
	        .ring = claim->ring && item->bell != claim->rung ? item->bell : NULL,
	        .bell = claim->ring,
	};

	bl_sql_add_to_set(&s->text, first, &row);
}

/* Within one transaction all rows are locked, and then the fences drawn once more: the
 * first ones were drawn before the statement came to the last key, which another may
 * have taken, with a later number, and given back in between. */
static void add_take(struct bl_session *s, const struct bl_item *items, size_t n,
                     const struct bl_set_claim *claim)
{
	bl_sql_begin_set(s->sql, &s->text);
	for (size_t i = 0; i < n; i++)
		add_row(s, &items[i], claim, i == 0);
	bl_sql_end_set(&s->text);
	bl_sql_begin_set(s->sql, &s->text);
	for (size_t i = 0; i < n; i++)
		bl_sql_add_to_set_again(&s->text, i == 0, &items[i].key);
	bl_sql_end_set_again(&s->text, claim->owner);
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

/* The refused statement left nothing locked, but its transaction open; and, of the
 * doorbells, those that it came to. */
static void undo(struct bl_session *s, const struct bl_item *items, size_t n,
                 const struct bl_set_claim *claim)
{
	struct bl_err ignored;

	if (!s->gone && bl_session_run(s, "ROLLBACK", strlen("ROLLBACK"), NULL, &ignored))
		s->gone = true;
	if (!s->gone && claim->ring)
		bl_set_free_bells(s, items, n);
}

int bl_set_take(struct bl_session *s, const struct bl_item *items, size_t n,
                const struct bl_set_claim *claim, struct bl_set_row *rows, bool *ret_all,
                struct bl_err *err)
{
	struct reading r = {items, n, rows};
	int rc;

	memset(rows, 0, n * sizeof(*rows));
	bl_buf_reset(&s->text);
	bl_buf_adds(&s->text, "START TRANSACTION;");
	add_take(s, items, n, claim);
	bl_buf_adds(&s->text, "COMMIT;");
	bl_sql_read_set(s->sql, &s->text);
	bl_many_where(&s->text, items, n, claim->owner);
	rc = bl_session_each(s, TAKE_STATEMENTS, read_taken, &r, err);
	*ret_all = rc == BIZLOCK_OK;
	if (rc == BIZLOCK_OK)
		return rc;
	undo(s, items, n, claim);
	return rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_NULL ? BIZLOCK_OK : rc;
}

int bl_set_drop(struct bl_session *s, const struct bl_item *items, size_t n, const char *suffix,
                bool bells, struct bl_set_row *rows, struct bl_err *err)
{
	struct reading r = {items, n, rows};
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
	rc = bl_session_each(s, DROP_STATEMENTS, read_dropped, &r, err);
	if (rc != BIZLOCK_OK)
		bl_session_leave(s); /* its transaction is open */
	return rc;
}
