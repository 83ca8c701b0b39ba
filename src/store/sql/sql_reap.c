/* SQL of the reaper. */
#include <inttypes.h>
#include <string.h>

#include "store/sql/phrases.h"

const char *bl_sql_reap_table(const struct bl_sql *sql, enum bl_reap_table table)
{
	return table == BL_REAP_LOCKS ? sql->lock_table : sql->row_table;
}

#define BEGAN "CAST(@bizlock_began AS DATETIME(6))"

/* A condition: at the time `now` the row has been over for older_us. A row lock, whose last use is
 * not known exactly, gets BL_SQL_USED_US more. */
static void add_old(struct bl_buf *ret, enum bl_reap_table table, int64_t older_us, const char *now)
{
	bool row_lock = table == BL_REAP_OF_ROW_LOCKS;

	bl_buf_addf(ret, "%s <= %s - INTERVAL %" PRId64 " MICROSECOND",
	            row_lock ? "gmt_create" : "timeout", now,
	            older_us + (row_lock ? BL_SQL_USED_US : 0));
}

void bl_sql_use_row_lock(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_key *key)
{
	bl_buf_addf(ret, "UPDATE (SELECT biz_id, biz_type FROM %s", sql->row_table);
	bl_sql_key(ret, key);
	bl_sql_join_selected(ret, sql->row_table, false, 1, true);
	bl_buf_adds(ret, " SET l.gmt_create = " NOW);
}

/* Not (a, b) > (?, ?): MySQL reads the whole index for that. */
void bl_sql_reap_page(const struct bl_sql *sql, struct bl_buf *ret, enum bl_reap_table table,
                      int64_t older_us, const char *after_id, const char *after_type,
                      uint32_t after_slot, uint32_t n)
{
	const char *slot = table == BL_REAP_LOCKS ? ", slot" : "";

	bl_buf_adds(ret, "SELECT biz_id, biz_type, IF(");
	add_old(ret, table, older_us, NOW);
	if (*slot)
		bl_buf_addf(ret, " AND NOT (slot = 0 AND " SHARED_BY_SOMEBODY "))",
		            sql->lock_table);
	if (table == BL_REAP_OF_ROW_LOCKS)
		bl_buf_addf(ret, ", %d", BL_REAP_ROW_LOCKS);
	else
		bl_buf_addf(ret, ", IF(owner = '', %d, %d)", BL_REAP_RESTS, BL_REAP_LEASES);
	bl_buf_addf(ret, ", %d)%s FROM %s AS r", BL_REAP_NONE, slot, bl_sql_reap_table(sql, table));
	if (after_id)
		bl_buf_addf(ret, " WHERE biz_id >= %s AND (biz_id > %s OR biz_type > %s", after_id,
		            after_id, after_type);
	if (after_id && *slot)
		bl_buf_addf(ret, " OR (biz_type = %s AND slot > %" PRIu32 ")", after_type,
		            after_slot);
	bl_buf_addf(ret, "%s ORDER BY biz_id, biz_type%s LIMIT %" PRIu32, after_id ? ")" : "", slot,
	            n);
}

static void add_mark(struct bl_buf *ret, const char *owner)
{
	bl_buf_adds(ret, "slot = 0 AND owner = ");
	bl_sql_literal(ret, "_ascii", owner, strlen(owner));
}

static void add_keys(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_sql_keys *keys)
{
	bl_buf_addf(ret, " FROM %s WHERE (biz_id, biz_type, slot) IN (%s) AND ", sql->lock_table,
	            keys->text.data);
}

static void begin_marks(const struct bl_sql *sql, struct bl_buf *ret,
                        const struct bl_sql_keys *keys)
{
	bl_buf_adds(ret, "UPDATE (SELECT biz_id, biz_type, slot");
	add_keys(sql, ret, keys);
}

static void end_marks(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_sql_keys *keys,
                      const char *owner)
{
	bl_sql_join_selected(ret, sql->lock_table, true, keys->n, true);
	bl_buf_adds(ret, " SET l.owner = ");
	bl_sql_literal(ret, "_ascii", owner, strlen(owner));
	bl_buf_adds(ret, ", l.gmt_modified = " NOW ", l.timeout = " NOW);
}

void bl_sql_mark(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_sql_keys *keys,
                 int64_t older_us, const char *owner)
{
	begin_marks(sql, ret, keys);
	bl_buf_adds(ret, "slot = 0 AND owner = '' AND ");
	add_old(ret, BL_REAP_LOCKS, older_us, NOW);
	end_marks(sql, ret, keys, owner);
}

void bl_sql_reap_locks(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_sql_keys *keys,
                       int64_t older_us, const char *owner)
{
	bl_buf_adds(ret, "SET @bizlock_began = " NOW ";"
	                 "SELECT COUNT(*) FROM (SELECT biz_id, biz_type");
	add_keys(sql, ret, keys);
	bl_buf_addf(ret, "slot = 0) AS r WHERE " SHARED_BY_SOMEBODY ") INTO @bizlock_met;",
	            sql->lock_table);
	/* Marked rows that stay become free again: a mark would keep sharers out until it is
	 * cleared. */
	begin_marks(sql, ret, keys);
	add_mark(ret, owner);
	bl_buf_adds(ret, " AND @bizlock_met > 0");
	end_marks(sql, ret, keys, "");
	bl_buf_adds(ret, ";DELETE l FROM (SELECT biz_id, biz_type, slot");
	add_keys(sql, ret, keys);
	bl_buf_adds(ret, "IF(slot = 0, @bizlock_met = 0 AND IF(");
	add_mark(ret, owner);
	bl_buf_adds(ret, ", TRUE, owner <> '' AND ");
	add_old(ret, BL_REAP_LOCKS, older_us, BEGAN);
	bl_buf_adds(ret, "), ");
	add_old(ret, BL_REAP_LOCKS, older_us, BEGAN);
	bl_buf_adds(ret, ")");
	bl_sql_join_selected(ret, sql->lock_table, true, keys->n, true);
	bl_buf_adds(ret, ";SELECT TIMESTAMPDIFF(MICROSECOND, " BEGAN ", " NOW ")");
}

void bl_sql_reap_row_locks(const struct bl_sql *sql, struct bl_buf *ret,
                           const struct bl_sql_keys *keys, int64_t older_us)
{
	bl_buf_addf(ret,
	            "SET @bizlock_began = " NOW ";"
	            "DELETE l FROM (SELECT biz_id, biz_type FROM %s WHERE (biz_id, biz_type) IN "
	            "(%s) AND ",
	            sql->row_table, keys->text.data);
	add_old(ret, BL_REAP_OF_ROW_LOCKS, older_us, NOW);
	bl_sql_join_selected(ret, sql->row_table, false, keys->n, true);
	bl_buf_adds(ret, ";SELECT TIMESTAMPDIFF(MICROSECOND, " BEGAN ", " NOW ")");
}
