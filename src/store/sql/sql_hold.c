/* SQL for one hold: the conditions that select its row, and how the row is given away or
 * dropped. */
#include <inttypes.h>
#include <string.h>

#include "store/sql/phrases.h"

void bl_sql_key(struct bl_buf *ret, const struct bl_key *key)
{
	bl_buf_adds(ret, " WHERE biz_id = ");
	bl_sql_literal(ret, "_utf8mb4", key->id, key->id_len);
	bl_buf_adds(ret, " AND biz_type = ");
	bl_sql_literal(ret, "_utf8mb4", key->type, key->type_len);
}

static void add_row(struct bl_buf *ret, const struct bl_key *key, const char *owner)
{
	bl_sql_key(ret, key);
	bl_buf_addf(ret, " AND slot = %" PRIu32, key->slot);
	if (!owner)
		return;
	bl_buf_adds(ret, " AND owner = ");
	bl_sql_literal(ret, "_ascii", owner, strlen(owner));
}

void bl_sql_hold(struct bl_buf *ret, const struct bl_key *key, const char *owner, uint64_t fence)
{
	add_row(ret, key, owner);
	bl_buf_addf(ret, " AND fence = %" PRIu64, fence);
}

void bl_sql_living(struct bl_buf *ret)
{
	bl_buf_adds(ret, " AND timeout > " NOW);
}

/* STRAIGHT_JOIN: the other way round the server would lock the whole table. LIMIT: without one
 * MySQL merges the two tables into one, which is then refused. */
void bl_sql_join_selected(struct bl_buf *ret, const char *table, bool slots, uint32_t n,
                          bool skip_locked)
{
	bl_buf_addf(ret,
	            " LIMIT %" PRIu32 " FOR UPDATE%s) AS old STRAIGHT_JOIN %s AS l ON "
	            "l.biz_id = old.biz_id AND l.biz_type = old.biz_type%s",
	            n, skip_locked ? " SKIP LOCKED" : "", table,
	            slots ? " AND l.slot = old.slot" : "");
}

void bl_sql_give(const struct bl_sql *sql, struct bl_buf *ret, const char *new_owner,
                 uint32_t depth, int64_t lease_us)
{
	bl_buf_addf(ret, "UPDATE %s SET owner = ", sql->table);
	bl_sql_literal(ret, "_ascii", new_owner, strlen(new_owner));
	bl_buf_addf(ret,
	            ", bell = 0, reentrant = %" PRIu32 ", timeout = GREATEST(timeout, " NOW
	            " + INTERVAL %" PRId64 " MICROSECOND), gmt_modified = " NOW,
	            depth, lease_us);
}

/* bl_sql_give() made the lease lease_us, unless it was longer already. */
void bl_sql_exported(struct bl_buf *ret, uint32_t depth, int64_t lease_us)
{
	bl_buf_addf(ret,
	            " AND reentrant = %" PRIu32 " AND timeout >= gmt_modified + INTERVAL %" PRId64
	            " MICROSECOND",
	            depth, lease_us);
}

/* A resting row has no owner; its `timeout` is the end of the rest. */
static void add_end(const struct bl_sql *sql, struct bl_buf *ret, bool forgets, int64_t rest_us)
{
	if (rest_us == 0) {
		bl_buf_addf(ret, "DELETE FROM %s", sql->table);
		return;
	}
	bl_buf_addf(ret,
	            "UPDATE %s SET %sowner = '', reentrant = 0, bell = 0, gmt_modified = " NOW
	            ", timeout = ",
	            sql->table, forgets ? "taken_from = 0, " : "");
	if (rest_us > 0)
		bl_buf_addf(ret, "gmt_create + INTERVAL %" PRId64 " MICROSECOND", rest_us);
	else
		bl_buf_adds(ret, NOW);
}

int64_t bl_sql_rest_of_others(const struct bl_key *key)
{
	return key->slot == 0 ? BL_ROW_STAYS : 0;
}

void bl_sql_drop(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_key *key,
                 const char *owner, uint64_t fence, int64_t rest_us)
{
	add_end(sql, ret, !owner || rest_us > 0, rest_us);
	bl_sql_hold(ret, key, owner, fence);
	/* The row may be a header by now, with the same fence. */
	if (!owner)
		bl_buf_adds(ret, " AND " TAKEN);
}

/* The SELECT reads the row without a lock, so the row of slot 0 is compared once more when it is
 * locked and changed. Both tables have these columns, so the names of the one that is changed are
 * qualified. */
void bl_sql_downgrade(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_key *key,
                      const char *owner, uint64_t fence, uint32_t slot)
{
	const char *t = sql->table;

	bl_buf_addf(
	        ret,
	        "INSERT INTO %s (biz_id, biz_type, slot, fence, owner, reentrant, timeout, "
	        "bell, note, gmt_create, gmt_modified) SELECT biz_id, biz_type, to_slot, fence, "
	        "owner, reentrant, timeout, 0, note, gmt_create, " NOW
	        " FROM %s AS h CROSS JOIN (SELECT 0 AS to_slot UNION ALL SELECT %" PRIu32
	        ") AS slots",
	        t, t, slot);
	bl_sql_hold(ret, key, owner, fence);
	bl_sql_living(ret);
	bl_buf_addf(ret,
	            " ON DUPLICATE KEY UPDATE reentrant = IF(%s.slot = 0 AND %s.fence = "
	            "VALUES(fence) AND %s.owner = VALUES(owner) AND %s.timeout > " NOW
	            ", 0, NULL), owner = '', bell = 0, taken_from = 0, gmt_modified = " NOW
	            ", timeout = " NOW,
	            t, t, t, t);
}

void bl_sql_sweep(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_key *key,
                  const char *owner, uint64_t but_fence)
{
	add_end(sql, ret, false, bl_sql_rest_of_others(key));
	add_row(ret, key, owner);
	bl_buf_addf(ret, " AND fence <> %" PRIu64, but_fence);
}
