#include "store/row/many.h"

#include <inttypes.h>
#include <string.h>

#include "store/bell/sleepers.h"
#include "store/row/take.h"

void bl_many_suffix(struct bl_buf *ret, const char *suffix)
{
	bl_buf_addf(ret, " AND RIGHT(owner, %zu) = ", strlen(suffix));
	bl_sql_literal(ret, "_ascii", suffix, strlen(suffix));
}

void bl_many_holds(struct bl_buf *ret, const struct bl_item *items, size_t n, const char *suffix)
{
	for (size_t i = 0; i < n; i++)
		bl_sql_add_key(ret, i == 0, &items[i].key);
	bl_sql_end_keys(ret);
	bl_many_suffix(ret, suffix);
	bl_buf_adds(ret, " AND fence + 0 IN ("); /* + 0 keeps the index of `fence` out of it */
	for (size_t i = 0; i < n; i++)
		bl_buf_addf(ret, "%s%" PRIu64, i ? "," : "", items[i].fence);
	bl_buf_adds(ret, ")");
}

/* In the form for several tables, because only that form obeys FORCE INDEX: it reads no other rows,
 * and so waits for none. */
void bl_many_add_drop(struct bl_buf *ret, const struct bl_sql *sql, const struct bl_item *items,
                      size_t n, const char *suffix)
{
	bl_buf_addf(ret, "DELETE l FROM %s AS l FORCE INDEX (PRIMARY)", sql->table);
	bl_many_holds(ret, items, n, suffix);
}

int bl_many_count(struct bl_session *s, const struct bl_item *items, size_t n, const char *suffix,
                  bool living, int64_t *ret, struct bl_err *err)
{
	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text, "SELECT COUNT(*) FROM %s FORCE INDEX (PRIMARY)", s->sql->table);
	bl_many_holds(&s->text, items, n, suffix);
	if (living)
		bl_sql_living(&s->text);
	return bl_session_ask_text(s, NULL, ret, err);
}

int bl_many_drop(struct bl_session *s, const struct bl_item *items, size_t n, const char *suffix,
                 uint64_t *ret_dropped, struct bl_err *err)
{
	const char *table = s->sql->table;

	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text,
	            "DELETE l FROM (SELECT biz_id, biz_type, slot FROM %s FORCE INDEX (PRIMARY)",
	            table);
	bl_many_holds(&s->text, items, n, suffix);
	bl_sql_join_selected(&s->text, table, true, (uint32_t)n, true);
	return bl_session_run_text(s, ret_dropped, err);
}

enum { RELEASE_STATEMENTS = 4 };

struct releasing {
	const struct bl_item *items;
	size_t n;
	bool *seen;
};

/* Follows START TRANSACTION: which holds are there, and are deleted next. */
static void read_released(void *arg, unsigned statement, struct bl_rows *rows)
{
	struct releasing *r = arg;
	MYSQL_ROW row;

	if (statement != 1 || !rows)
		return;
	while ((row = bl_rows_next(rows)) != NULL)
		for (size_t i = 0; i < r->n && row[0]; i++)
			r->seen[i] |= r->items[i].fence == bl_rows_u64(row[0]);
}

int bl_many_release(struct bl_session *s, const struct bl_item *items, size_t n, const char *suffix,
                    bool rings, bool *ret_released, struct bl_err *err)
{
	bool asks = !rings && items[0].bell;
	struct releasing r = {items, n, ret_released};
	const char *bells[BL_TAKE_MAX];
	int rc;

	memset(ret_released, 0, n * sizeof(*ret_released));
	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text, "START TRANSACTION;SELECT fence FROM %s FORCE INDEX (PRIMARY)",
	            s->sql->table);
	bl_many_holds(&s->text, items, n, suffix);
	bl_buf_adds(&s->text, " FOR UPDATE;");
	bl_many_add_drop(&s->text, s->sql, items, n, suffix);
	bl_buf_adds(&s->text, ";COMMIT");
	for (size_t i = 0; i < n; i++)
		bells[i] = items[i].bell;
	if (rings || asks)
		bl_buf_adds(&s->text, ";");
	if (rings)
		bl_sleepers_add_rings(s, bells, n);
	else if (asks)
		bl_sleepers_add_question(&s->text, bells, n, BL_SLEEPERS_ALL);
	rc = bl_session_each(s, RELEASE_STATEMENTS, read_released, &r, err);
	if (rc != BIZLOCK_OK)
		bl_session_leave(s); /* its transaction is open */
	else if (rings || asks)
		bl_sleepers_wake(s, bells, n, rings ? BL_SLEEPERS_WATCHING : BL_SLEEPERS_ALL);
	return rc;
}
