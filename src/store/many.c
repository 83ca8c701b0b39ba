#include "store/many.h"

#include <inttypes.h>
#include <string.h>

void bl_many_suffix(struct bl_buf *ret, const char *suffix)
{
	bl_buf_addf(ret, " AND RIGHT(owner, %zu) = ", strlen(suffix));
	bl_sql_literal(ret, "_ascii", suffix, strlen(suffix));
}

static void add_where_keys(struct bl_buf *ret, const struct bl_item *items, size_t n,
                           const char *suffix)
{
	for (size_t i = 0; i < n; i++)
		bl_sql_add_key(ret, i == 0, &items[i].key);
	bl_sql_end_keys(ret);
	bl_many_suffix(ret, suffix);
}

/* `+ 0` keeps the index of `fence` out of it. */
static void add_fences(struct bl_buf *ret, const struct bl_item *items, size_t n)
{
	bl_buf_adds(ret, " AND fence + 0 IN (");
	for (size_t i = 0; i < n; i++)
		bl_buf_addf(ret, "%s%" PRIu64, i ? "," : "", items[i].fence);
	bl_buf_adds(ret, ")");
}

void bl_many_holds(struct bl_buf *ret, const struct bl_item *items, size_t n, const char *suffix)
{
	add_where_keys(ret, items, n, suffix);
	add_fences(ret, items, n);
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
