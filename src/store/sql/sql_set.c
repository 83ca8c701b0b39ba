/* SQL that makes several rows: those of a set, or of a batch. */
#include <inttypes.h>
#include <string.h>

#include "store/sql/phrases.h"

static void add_row(struct bl_buf *ret, const struct bl_key *key)
{
	bl_sql_literal(ret, "_utf8mb4", key->id, key->id_len);
	bl_buf_adds(ret, ",");
	bl_sql_literal(ret, "_utf8mb4", key->type, key->type_len);
	bl_buf_addf(ret, ",%" PRIu32, key->slot);
}

void bl_sql_add_key(struct bl_buf *ret, bool first, const struct bl_key *key)
{
	bl_buf_adds(ret, first ? " WHERE (biz_id, biz_type, slot) IN ((" : ",(");
	add_row(ret, key);
	bl_buf_adds(ret, ")");
}

void bl_sql_end_keys(struct bl_buf *ret)
{
	bl_buf_adds(ret, ")");
}

void bl_sql_begin_set(const struct bl_sql *sql, struct bl_buf *ret)
{
	bl_buf_addf(
	        ret,
	        "INSERT INTO %s (biz_id, biz_type, slot, owner, reentrant, timeout, bell, note, "
	        "gmt_create, gmt_modified) VALUES ",
	        sql->table);
}

/* As in TAKE: a NULL biz_type is refused. */
static void add_type(struct bl_buf *ret, const struct bl_sql_row *row)
{
	if (row->if_bell)
		bl_buf_adds(ret, "IF(@bizlock_bell=1,");
	bl_sql_literal(ret, "_utf8mb4", row->key->type, row->key->type_len);
	if (row->if_bell)
		bl_buf_adds(ret, ",NULL)");
}

#define SET_NOW "@bizlock_now"
#define SET_END "@bizlock_end"

void bl_sql_set_times(struct bl_buf *ret, int64_t lease_us)
{
	bl_buf_addf(ret,
	            "SET " SET_NOW " = " NOW ", " SET_END " = " NOW " + INTERVAL %" PRId64
	            " MICROSECOND;",
	            lease_us);
}

static void add_end(struct bl_buf *ret, const struct bl_sql_row *row)
{
	if (row->end_is_set)
		bl_buf_adds(ret, SET_END);
	else
		bl_buf_addf(ret, NOW " + INTERVAL %" PRId64 " MICROSECOND", row->lease_us);
}

void bl_sql_add_to_set(struct bl_buf *ret, bool first, const struct bl_sql_row *row)
{
	const char *now = row->now_is_set ? SET_NOW : NOW;

	bl_buf_adds(ret, first ? "(" : ",(");
	bl_sql_literal(ret, "_utf8mb4", row->key->id, row->key->id_len);
	bl_buf_adds(ret, ",");
	add_type(ret, row);
	bl_buf_addf(ret, ",%" PRIu32 ",", row->key->slot);
	bl_sql_literal(ret, "_ascii", row->owner, strlen(row->owner));
	bl_buf_adds(ret, ",1,");
	add_end(ret, row);
	bl_buf_adds(ret, row->bell ? ",CONNECTION_ID()," : ",0,");
	bl_sql_literal(ret, "_utf8mb4", row->note ? row->note : "",
	               row->note ? strlen(row->note) : 0);
	bl_buf_addf(ret, ",%s,%s)", now, now);
}

void bl_sql_add_free_row(struct bl_buf *ret, bool first, const struct bl_key *key)
{
	bl_buf_adds(ret, first ? "(" : ",(");
	add_row(ret, key);
	bl_buf_adds(ret, ",'',0," NOW ",0,''," NOW "," NOW ")");
}

void bl_sql_end_set(struct bl_buf *ret)
{
	bl_buf_adds(ret, " ON DUPLICATE KEY UPDATE " TAKEN_OVER ";");
}

/* The condition between these two is that a row is ours. The statement is refused if one is not:
 * the lock was broken, and another owner has taken it. */
void bl_sql_begin_again(struct bl_buf *ret)
{
	bl_buf_adds(ret, " ON DUPLICATE KEY UPDATE reentrant = IF(");
}

void bl_sql_end_again(struct bl_buf *ret)
{
	bl_buf_adds(ret, ", reentrant, NULL), fence = VALUES(fence);");
}

void bl_sql_end_batch(struct bl_buf *ret)
{
	bl_buf_adds(ret, " ON DUPLICATE KEY UPDATE " IF_NEW);
}

void bl_sql_read_set(const struct bl_sql *sql, struct bl_buf *ret, bool looks)
{
	bl_buf_adds(ret, "SELECT biz_id, biz_type, fence, taken_from, ");
	if (looks)
		bl_buf_addf(ret, SHARED_BY_SOMEBODY " AND (s.timeout > " NOW " OR s.owner <> ''))",
		            sql->table);
	else
		bl_buf_adds(ret, "0");
	bl_buf_addf(ret, " FROM %s AS r", sql->table);
}
