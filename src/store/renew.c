#include "store/renew.h"

#include <inttypes.h>

#include "store/sql_parts.h"

/* Around the WHERE that names the holds. skip_locked: a row that a transaction of the
 * application's has locked (bizlock_fence) is left out, and so no statement of ours waits for
 * it while it has others locked, which is what deadlocks are made of. There is no UPDATE ...
 * SKIP LOCKED, but rows that are selected so and inserted again meet themselves; each counts
 * as two affected rows. */
static void add_text(struct bl_session *s, const struct bl_renewal *r)
{
	const char *table = bl_sql_table(s->sql, &r->items->key);
	const char *slot = r->items->key.shared ? ", slot" : "";
	int64_t lease_us = (int64_t)r->lease_ms * 1000;

	if (r->skip_locked)
		bl_buf_addf(&s->text,
		            "INSERT INTO %s (biz_id, biz_type%s, fence, owner, reentrant, timeout, "
		            "gmt_create, gmt_modified) SELECT biz_id, biz_type%s, fence, owner, "
		            "reentrant, timeout, gmt_create, gmt_modified FROM %s AS old "
		            "FORCE INDEX (PRIMARY)",
		            table, slot, slot, table);
	else
		bl_buf_addf(&s->text, "UPDATE %s SET " RENEWED, table, table, lease_us);
	bl_many_holds(&s->text, r->items, r->n, r->suffix);
	bl_sql_living(&s->text);
	if (r->skip_locked)
		bl_buf_addf(&s->text, " FOR UPDATE SKIP LOCKED ON DUPLICATE KEY UPDATE " RENEWED,
		            table, lease_us);
	bl_buf_adds(&s->text, ";SELECT TIMESTAMPDIFF(MICROSECOND, '2000-01-01', " NOW ")");
}

int bl_renew_many(struct bl_session *s, const struct bl_renewal *r, struct bl_renewed *ret,
                  struct bl_err *err)
{
	int64_t server_us = 0;
	uint64_t affected = 0;
	int rc;

	bl_buf_reset(&s->text);
	add_text(s, r);
	if (s->text.failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	rc = bl_session_ask(s, s->text.data, s->text.len, &affected, &server_us, err);
	if (rc == BIZLOCK_OK)
		*ret = (struct bl_renewed){r->skip_locked ? affected / 2 : affected, server_us};
	return rc;
}
