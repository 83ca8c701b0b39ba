/* The texts of the reaper. */
#include <inttypes.h>

#include "store/sql_parts.h"

const char *bl_sql_reap_table(const struct bl_sql *sql, enum bl_reap_table table)
{
	return table == BL_REAP_LOCKS ? sql->lock_table : sql->row_table;
}

/* A row in slot 0 tells sharers that somebody has had the lock alone since their fences were drawn.
 * It has to stay for as long as one of them may believe in its row: the longest lease there is. */
#define TRACE_US (BIZLOCK_LEASE_MAX_MS * INT64_C(1000))

/* Is it over, and has been for long enough? Rounded in the row's favour. */
static void add_old(struct bl_buf *ret, enum bl_reap_table table, int64_t older_us)
{
	if (table == BL_REAP_OF_ROW_LOCKS)
		bl_buf_addf(ret, "gmt_create <= " NOW " - INTERVAL %" PRId64 " MICROSECOND",
		            older_us + BL_SQL_USED_US);
	else
		bl_buf_addf(ret,
		            "timeout <= " NOW " - INTERVAL IF(slot = 0, %" PRId64 ", %" PRId64
		            ") MICROSECOND",
		            older_us > TRACE_US ? older_us : TRACE_US, older_us);
}

void bl_sql_begin_used(const struct bl_sql *sql, struct bl_buf *ret)
{
	bl_buf_addf(ret, "UPDATE (SELECT biz_id, biz_type FROM %s", sql->row_table);
}

void bl_sql_end_used(const struct bl_sql *sql, struct bl_buf *ret)
{
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
	add_old(ret, table, older_us);
	if (table == BL_REAP_OF_ROW_LOCKS)
		bl_buf_addf(ret, ", %d", BL_REAP_ROW_LOCKS);
	else
		bl_buf_addf(ret, ", IF(owner = '', %d, %d)", BL_REAP_RESTS, BL_REAP_LEASES);
	bl_buf_addf(ret, ", %d)%s FROM %s", BL_REAP_NONE, slot, bl_sql_reap_table(sql, table));
	if (after_id)
		bl_buf_addf(ret, " WHERE biz_id >= %s AND (biz_id > %s OR biz_type > %s", after_id,
		            after_id, after_type);
	if (after_id && *slot)
		bl_buf_addf(ret, " OR (biz_type = %s AND slot > %" PRIu32 ")", after_type,
		            after_slot);
	bl_buf_addf(ret, "%s ORDER BY biz_id, biz_type%s LIMIT %" PRIu32, after_id ? ")" : "", slot,
	            n);
}

void bl_sql_begin_reap(const struct bl_sql *sql, struct bl_buf *ret, enum bl_reap_table table)
{
	const char *slot = table == BL_REAP_LOCKS ? ", slot" : "";

	bl_buf_addf(
	        ret,
	        "SET @bizlock_began = " NOW ";"
	        "DELETE l FROM (SELECT biz_id, biz_type%s FROM %s WHERE (biz_id, biz_type%s) IN (",
	        slot, bl_sql_reap_table(sql, table), slot);
}

void bl_sql_end_reap(const struct bl_sql *sql, struct bl_buf *ret, enum bl_reap_table table,
                     int64_t older_us, uint32_t n)
{
	bl_buf_adds(ret, ") AND ");
	add_old(ret, table, older_us);
	bl_sql_join_selected(ret, bl_sql_reap_table(sql, table), table == BL_REAP_LOCKS, n, true);
	bl_buf_adds(ret, ";SELECT TIMESTAMPDIFF(MICROSECOND, @bizlock_began, " NOW ")");
}
