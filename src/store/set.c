#include "store/set.h"

#include <stdlib.h>
#include <string.h>

#include "store/errclass.h"

static bool same(const char *text, unsigned long len, const char *part, size_t part_len)
{
	return text && len == part_len && memcmp(text, part, len) == 0;
}

/* One row: biz_id, biz_type, fence, taken_from. */
static void note(const struct bl_item *items, size_t n, MYSQL_ROW row, const unsigned long *len,
                 struct bl_set_row *rows)
{
	for (size_t i = 0; i < n; i++) {
		const struct bl_key *key = &items[i].key;

		if (rows[i].seen || !same(row[0], len[0], key->id, key->id_len) ||
		    !same(row[1], len[1], key->type, key->type_len))
			continue;
		rows[i].seen = true;
		rows[i].fence = row[2] ? strtoull(row[2], NULL, 10) : 0;
		rows[i].took_over = row[3] && strcmp(row[3], "0") != 0;
		return;
	}
}

static int read_rows(struct bl_session *s, const struct bl_item *items, size_t n,
                     struct bl_set_row *rows, struct bl_err *err)
{
	MYSQL_RES *result = mysql_store_result(s->mysql);
	MYSQL_ROW row;

	if (!result)
		return mysql_field_count(s->mysql) ? bl_session_error(s, err) : BIZLOCK_OK;
	while (mysql_num_fields(result) == 4 && (row = mysql_fetch_row(result)) != NULL)
		note(items, n, row, mysql_fetch_lengths(result), rows);
	mysql_free_result(result);
	return BIZLOCK_OK;
}

/* Sends what stands in the session's text. Of its results those with rows are read. */
static int run(struct bl_session *s, const struct bl_item *items, size_t n, struct bl_set_row *rows,
               struct bl_err *err)
{
	int next = 0, rc = BIZLOCK_OK;

	memset(rows, 0, n * sizeof(*rows));
	if (s->text.failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	if (mysql_real_query(s->mysql, s->text.data, (unsigned long)s->text.len) != 0)
		return bl_session_error(s, err);
	while (rc == BIZLOCK_OK && next == 0) {
		rc = read_rows(s, items, n, rows, err);
		if (rc == BIZLOCK_OK)
			next = mysql_next_result(s->mysql);
	}
	return rc == BIZLOCK_OK && next > 0 ? bl_session_error(s, err) : rc;
}

/* Within one transaction all rows are locked, and then the fences drawn once more: the
 * first ones were drawn before the statement came to the last key, which another may
 * have taken, with a later number, and given back in between. */
static void add_take(struct bl_session *s, const struct bl_item *items, size_t n,
                     const struct bl_set_claim *claim)
{
	for (int again = 0; again < 2; again++) {
		bl_sql_begin_set(s->sql, &s->text);
		for (size_t i = 0; i < n; i++)
			bl_sql_add_to_set(&s->text, i == 0, &items[i].key, claim->owner,
			                  claim->note, (int64_t)claim->lease_ms * 1000);
		bl_sql_end_set(&s->text, again);
	}
}

int bl_set_take(struct bl_session *s, const struct bl_item *items, size_t n,
                const struct bl_set_claim *claim, struct bl_set_row *rows, bool *ret_all,
                struct bl_err *err)
{
	struct bl_err ignored;
	int rc;

	bl_buf_reset(&s->text);
	bl_buf_adds(&s->text, "START TRANSACTION;");
	add_take(s, items, n, claim);
	bl_buf_adds(&s->text, "COMMIT;");
	bl_sql_read_set(s->sql, &s->text);
	bl_many_where(&s->text, items, n, claim->owner);
	rc = run(s, items, n, rows, err);
	*ret_all = rc == BIZLOCK_OK;
	if (rc == BIZLOCK_OK)
		return rc;
	/* The refused statement left nothing locked, but its transaction open. */
	if (!s->gone && bl_session_run(s, "ROLLBACK", strlen("ROLLBACK"), NULL, &ignored))
		s->gone = true;
	return rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_NULL ? BIZLOCK_OK : rc;
}

int bl_set_drop(struct bl_session *s, const struct bl_item *items, size_t n, const char *suffix,
                struct bl_set_row *rows, struct bl_err *err)
{
	bl_buf_reset(&s->text);
	bl_sql_read_set(s->sql, &s->text);
	bl_many_where(&s->text, items, n, suffix);
	bl_many_fences(&s->text, items, n);
	bl_buf_addf(&s->text, ";DELETE FROM %s", s->sql->table);
	bl_many_where(&s->text, items, n, suffix);
	bl_many_fences(&s->text, items, n);
	return run(s, items, n, rows, err);
}
