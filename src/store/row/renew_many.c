#include "store/row/renew_many.h"

#include <inttypes.h>

#include "store/sql/phrases.h"

#define END "@bizlock_end"

/* An INSERT ... SELECT ... ON DUPLICATE KEY UPDATE would do as well, and harm everybody: where
 * innodb_autoinc_lock_mode is 1, as it is on MariaDB, it has the lock of the table's counter until
 * it is committed, and all acquisitions wait for that lock. */
static void add_update(struct bl_session *s, const struct bl_renewal *r)
{
	const char *table = s->sql->table;

	bl_buf_addf(&s->text, "UPDATE (SELECT biz_id, biz_type, slot FROM %s FORCE INDEX (PRIMARY)",
	            table);
	bl_many_holds(&s->text, r->items, r->n, r->suffix);
	bl_sql_living(&s->text);
	bl_sql_join_selected(&s->text, table, true, (uint32_t)r->n, !r->queue);
	bl_buf_adds(&s->text,
	            " SET l.timeout = GREATEST(l.timeout, " END "), l.gmt_modified = " NOW ";");
}

/* Affected rows do not tell how many leases are long enough now: a proxy with CLIENT_FOUND_ROWS,
 * system versioning and triggers all count otherwise. */
static void add_count(struct bl_session *s, const struct bl_renewal *r)
{
	bl_buf_addf(&s->text,
	            "SELECT TIMESTAMPDIFF(MICROSECOND, '2000-01-01', " NOW "), COUNT(*) FROM %s "
	            "FORCE INDEX (PRIMARY)",
	            s->sql->table);
	bl_many_holds(&s->text, r->items, r->n, r->suffix);
	bl_buf_adds(&s->text, " AND timeout >= " END);
}

static void read_renewed(void *arg, unsigned statement, struct bl_rows *rows)
{
	struct bl_renewed *ret = arg;
	MYSQL_ROW row = statement == 2 && rows && rows->columns == 2 ? bl_rows_next(rows) : NULL;

	if (!row)
		return;
	ret->server_us = bl_rows_number(row[0]);
	ret->matched = (uint64_t)bl_rows_number(row[1]);
}

int bl_renew_many(struct bl_session *s, const struct bl_renewal *r, struct bl_renewed *ret,
                  struct bl_err *err)
{
	*ret = (struct bl_renewed){.matched = 0};
	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text, "SET " END " = " NOW " + INTERVAL %" PRId64 " MICROSECOND;",
	            (int64_t)r->lease_ms * 1000);
	add_update(s, r);
	add_count(s, r);
	return bl_session_each(s, 3, read_renewed, ret, err);
}
