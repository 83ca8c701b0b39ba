#include "store/fences.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "store/sql_parts.h"

/* Not old, whenever the reaper looks. */
#define FLOOR_TIME "'9999-12-31'"
#define FLOOR_TYPE "'" BIZLOCK_REAPER_TYPE "'"
#define FLOOR_ID "'fences of %s: " /* and the number, as long as all others, so that they sort */
#define FLOOR_ID_END "'fences of %s;'"

static int run(struct bl_session *s, int64_t *ret, struct bl_err *err)
{
	if (s->text.failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	return bl_session_ask(s, s->text.data, s->text.len, NULL, ret, err);
}

/* ---- reading -------------------------------------------------------------------------------- */

static void note_counter(void *arg, const struct bl_fact *fact)
{
	struct bl_fence_counter *counters = arg;

	for (int i = 0; i < BL_FENCE_COUNTERS; i++)
		if (counters[i].table == fact->table) {
			counters[i].there = true;
			counters[i].next = fact->counter;
		}
}

static int read_floor(struct bl_session *s, const char *prefix, struct bl_fence_counter *counter,
                      struct bl_err *err)
{
	const char *table = bl_needs[counter->table].table;
	int64_t floor = 0;
	int rc;

	bl_buf_reset(&s->text);
	bl_buf_addf(
	        &s->text,
	        "SELECT RIGHT(MAX(biz_id), 20) FROM `%sbiz_row_lock` WHERE biz_type = " FLOOR_TYPE
	        " AND biz_id >= " FLOOR_ID "' AND biz_id < " FLOOR_ID_END,
	        prefix, table, table);
	rc = run(s, &floor, err);
	counter->floor = (uint64_t)floor;
	return rc;
}

int bl_fences_read(struct bl_session *s, const char *prefix,
                   struct bl_fence_counter ret[BL_FENCE_COUNTERS], struct bl_err *err)
{
	int rc;

	ret[0] = (struct bl_fence_counter){.table = BL_TABLE_LOCK};
	ret[1] = (struct bl_fence_counter){.table = BL_TABLE_SHARED_LOCK};
	rc = bl_tables_look(s, prefix, note_counter, ret, err);
	for (int i = 0; i < BL_FENCE_COUNTERS && rc == BIZLOCK_OK; i++)
		rc = read_floor(s, prefix, &ret[i], err);
	return rc;
}

/* ---- floors --------------------------------------------------------------------------------- */

static int raise_floor(struct bl_session *s, const char *prefix, enum bl_table which,
                       uint64_t floor, struct bl_err *err)
{
	const char *table = bl_needs[which].table;

	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text,
	            "INSERT INTO `%sbiz_row_lock` (biz_id, biz_type, gmt_create) VALUES (" FLOOR_ID
	            "%020" PRIu64 "', " FLOOR_TYPE ", " FLOOR_TIME
	            ") ON DUPLICATE KEY UPDATE gmt_create = " FLOOR_TIME
	            ";DELETE FROM `%sbiz_row_lock` WHERE biz_type = " FLOOR_TYPE
	            " AND biz_id >= " FLOOR_ID "' AND biz_id < " FLOOR_ID "%020" PRIu64 "'",
	            prefix, table, floor, prefix, table, table, floor);
	return run(s, NULL, err);
}

int bl_fences_note(struct bl_session *s, const char *prefix, struct bl_err *err)
{
	struct bl_fence_counter counters[BL_FENCE_COUNTERS];
	int rc = bl_fences_read(s, prefix, counters, err);

	for (int i = 0; i < BL_FENCE_COUNTERS && rc == BIZLOCK_OK; i++)
		if (counters[i].next > counters[i].floor)
			rc = raise_floor(s, prefix, counters[i].table, counters[i].next, err);
	return rc;
}

/* ---- counters ------------------------------------------------------------------------------- */

/* The microseconds since 1970 are more than anybody has drawn, and what was given by a database
 * that is not there any more is not to be found otherwise. */
static int find_top(struct bl_session *s, const char *prefix,
                    const struct bl_fence_counter *counters, uint64_t *ret, struct bl_err *err)
{
	int64_t largest = 0;
	int rc = BIZLOCK_OK;

	*ret = 0;
	for (int i = 0; i < BL_FENCE_COUNTERS && rc == BIZLOCK_OK; i++) {
		if (!counters[i].there)
			continue;
		bl_buf_reset(&s->text);
		bl_buf_addf(&s->text,
		            "SELECT GREATEST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " NOW
		            "), IFNULL((SELECT MAX(fence) FROM `%s%s`), 0))",
		            prefix, bl_needs[counters[i].table].table);
		rc = run(s, &largest, err);
		*ret = (uint64_t)largest > *ret ? (uint64_t)largest : *ret;
		*ret = counters[i].next > *ret ? counters[i].next : *ret;
		*ret = counters[i].floor > *ret ? counters[i].floor : *ret;
	}
	return rc;
}

/* A row with that fence takes the counter along, and stays there when the row is gone. It needs no
 * privilege that locks do not need, and nobody waits for it. */
static int raise_counter(struct bl_session *s, const char *prefix, enum bl_table which,
                         uint64_t fence, struct bl_err *err)
{
	const char *table = bl_needs[which].table;
	bool shared = which == BL_TABLE_SHARED_LOCK;

	bl_buf_reset(&s->text);
	bl_buf_addf(
	        &s->text,
	        "SET @bizlock_raised = UUID();INSERT INTO `%s%s` (biz_id, biz_type%s, fence, "
	        "owner, reentrant, timeout, gmt_create, gmt_modified) VALUES "
	        "(@bizlock_raised, " FLOOR_TYPE "%s, %" PRIu64 ", '', 0, " NOW ", " NOW ", " NOW
	        ");DELETE FROM `%s%s` WHERE biz_id = @bizlock_raised AND biz_type = " FLOOR_TYPE,
	        prefix, table, shared ? ", slot" : "", shared ? ", 0" : "", fence, prefix, table);
	return run(s, NULL, err);
}

int bl_fences_raise(struct bl_session *s, const char *prefix, uint64_t *ret, struct bl_err *err)
{
	struct bl_fence_counter counters[BL_FENCE_COUNTERS];
	int rc = bl_fences_read(s, prefix, counters, err);

	if (rc == BIZLOCK_OK)
		rc = find_top(s, prefix, counters, ret, err);
	if (rc == BIZLOCK_OK && *ret >= BL_SQL_FENCES - 1)
		rc = bl_err_set(err, BIZLOCK_SCHEMA,
		                "a fence is %" PRIu64 " already, and has to be less than %" PRIu64,
		                *ret, (uint64_t)BL_SQL_FENCES);
	for (int i = 0; i < BL_FENCE_COUNTERS && rc == BIZLOCK_OK; i++) {
		if (!counters[i].there)
			continue;
		rc = raise_counter(s, prefix, counters[i].table, *ret, err);
		if (rc == BIZLOCK_OK)
			rc = raise_floor(s, prefix, counters[i].table, *ret + 1, err);
	}
	return rc;
}
