/* SQL of runs: what is remembered of jobs. */
#include <inttypes.h>
#include <string.h>

#include "store/sql/phrases.h"

/* Fences grow, so the larger one is the later run's. A beginning that was sent twice, or that
 * arrives after the beginning of a later run, changes nothing. Assignments run from left to right,
 * so that of `fence` is the last one. */
#define IF_LATER(column, value) column " = IF(VALUES(fence) > fence, " value ", " column "), "
#define TAKE(column) IF_LATER(column, "VALUES(" column ")")

/* clang-format off */
static const char later_run[] =
	" ON DUPLICATE KEY UPDATE "
	TAKE("owner") TAKE("lease_ms") TAKE("outcome") TAKE("began_at")
	IF_LATER("exit_code", "NULL") IF_LATER("exit_signal", "0") IF_LATER("ended_at", "NULL")
	IF_LATER("runs", "runs + 1") IF_LATER("since_success", "since_success + 1")
	"fence = GREATEST(fence, VALUES(fence))";
/* clang-format on */

void bl_sql_begin_run(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_key *key,
                      const char *owner, uint64_t fence, uint32_t lease_ms)
{
	bl_buf_addf(ret,
	            "INSERT INTO %s (fence, lease_ms, outcome, began_at, runs, since_success, "
	            "biz_id, biz_type, owner) VALUES (%" PRIu64 ", %" PRIu32 ", 'running', " NOW
	            ", 1, 1, ",
	            sql->run_table, fence, lease_ms);
	bl_sql_literal(ret, "_utf8mb4", key->id, key->id_len);
	bl_buf_adds(ret, ", ");
	bl_sql_literal(ret, "_utf8mb4", key->type, key->type_len);
	bl_buf_adds(ret, ", ");
	bl_sql_literal(ret, "_ascii", owner, strlen(owner));
	bl_buf_adds(ret, ")");
	bl_buf_adds(ret, later_run);
}

/* A subquery that an UPDATE assigns from locks nothing on READ COMMITTED, so nobody waits for it at
 * biz_lock. The same subquery in WHERE, or in an UPDATE of two tables, would. */
static void add_outcome(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_key *key,
                        const char *owner, uint64_t fence, const char *outcome)
{
	bl_buf_addf(ret, "IF(EXISTS(SELECT 1 FROM %s", sql->table);
	bl_sql_hold(ret, key, owner, fence);
	bl_sql_living(ret);
	bl_buf_addf(ret, "), '%s', 'lost')", outcome);
}

#define IF_DONE(column, value) column " = IF(outcome = 'done', " value ", " column ")"

void bl_sql_end_run(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_key *key,
                    const char *owner, uint64_t fence, const struct bl_run_end *end)
{
	bl_buf_addf(ret, "UPDATE %s SET outcome = ", sql->run_table);
	add_outcome(sql, ret, key, owner, fence, end->outcome);
	if (end->exit_code >= 0)
		bl_buf_addf(ret, ", exit_code = %" PRId32, end->exit_code);
	bl_buf_addf(ret,
	            ", exit_signal = %" PRIu32 ", ended_at = " NOW
	            ", " IF_DONE("succeeded_at", "ended_at") ", " IF_DONE(
	                    "successes", "successes + 1") ", " IF_DONE("since_success", "0"),
	            end->exit_signal);
	bl_sql_key(ret, key);
	bl_buf_addf(ret, " AND fence = %" PRIu64 " AND outcome = 'running'", fence);
}

/* A condition on the hold's row `l` of a run `r`. While a lock is to rest, `timeout` is the end of
 * the rest. But each renewal writes gmt_modified, from which the lease counts. */
#define LEASE_LASTS                                                                                \
	"IFNULL(l.owner <> '' AND l.timeout > " NOW                                                \
	" AND (r.lease_ms = 0 OR l.gmt_modified > " NOW                                            \
	" - INTERVAL 1000 * r.lease_ms MICROSECOND), 0)"

#define MICROSECONDS(time) "IFNULL(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " time "), 0)"

/* clang-format off */
#define RUN_READ                                                                                   \
	"r.biz_id, r.biz_type, r.owner, r.fence, r.outcome, " LEASE_LASTS                          \
	", r.exit_code, r.exit_signal, " MICROSECONDS(NOW) ", " MICROSECONDS("r.began_at")         \
	", " MICROSECONDS("r.ended_at") ", " MICROSECONDS("r.succeeded_at")                        \
	", r.runs, r.successes, r.since_success"
/* clang-format on */

/* Not (a, b) > (?, ?): MySQL reads the whole index for that. */
static void add_behind(struct bl_buf *ret, const struct bl_sql_after *after)
{
	bl_buf_adds(ret, " AND r.biz_id >= ");
	bl_sql_literal(ret, "_utf8mb4", after->id, after->id_len);
	bl_buf_adds(ret, " AND (r.biz_id > ");
	bl_sql_literal(ret, "_utf8mb4", after->id, after->id_len);
	bl_buf_adds(ret, " OR r.biz_type > ");
	bl_sql_literal(ret, "_utf8mb4", after->type, after->type_len);
	bl_buf_adds(ret, ")");
}

/* A join: an optimizer_switch of MySQL refuses a subquery with these conditions (3973). */
void bl_sql_page_runs(const struct bl_sql *sql, struct bl_buf *ret, const char *biz_type,
                      const char *biz_id, const struct bl_sql_after *after)
{
	bl_buf_addf(ret,
	            "SELECT " RUN_READ " FROM %s AS r LEFT JOIN %s AS l ON l.biz_id = r.biz_id AND "
	            "l.biz_type = r.biz_type AND l.slot = 0 AND l.fence = r.fence WHERE TRUE",
	            sql->run_table, sql->table);
	if (biz_type) {
		bl_buf_adds(ret, " AND r.biz_type = ");
		bl_sql_literal(ret, "_utf8mb4", biz_type, strlen(biz_type));
	}
	if (biz_id) {
		bl_buf_adds(ret, " AND r.biz_id = ");
		bl_sql_literal(ret, "_utf8mb4", biz_id, strlen(biz_id));
	}
	if (after)
		add_behind(ret, after);
	bl_buf_addf(ret, " ORDER BY r.biz_id, r.biz_type LIMIT %d", BL_PAGE_ROWS);
}
