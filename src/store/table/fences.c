#include "store/table/fences.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "store/sql/phrases.h"

/* Never old enough for the reaper. */
#define FLOOR_TIME "'9999-12-31'"
#define FLOOR_TYPE "'" BIZLOCK_REAPER_TYPE "'"
#define FLOOR_ID "'fences of biz_lock: " /* then 20 digits: the texts sort as the numbers do */
#define FLOOR_ID_END "'fences of biz_lock;'"
#define IS_FLOOR "biz_type = " FLOOR_TYPE " AND biz_id >= " FLOOR_ID "' AND biz_id < "

/* ---- reading -------------------------------------------------------------------------------- */

static void note_counter(void *arg, const struct bl_fact *fact)
{
	struct bl_fence_counter *counter = arg;

	if (fact->table == BL_TABLE_LOCK)
		counter->next = fact->counter;
}

int bl_fences_read(struct bl_session *s, const char *prefix, struct bl_fence_counter *ret,
                   struct bl_err *err)
{
	int64_t floor = 0;
	int rc;

	*ret = (struct bl_fence_counter){.next = 0};
	rc = bl_tables_look(s, prefix, note_counter, ret, err);
	if (rc != BIZLOCK_OK)
		return rc;
	bl_buf_reset(&s->text);
	bl_buf_addf(
	        &s->text,
	        "SELECT RIGHT(MAX(biz_id), 20) FROM `%sbiz_row_lock` WHERE " IS_FLOOR FLOOR_ID_END,
	        prefix);
	rc = bl_session_ask_text(s, NULL, &floor, err);
	ret->floor = (uint64_t)floor;
	return rc;
}

/* ---- the floor ------------------------------------------------------------------------------ */

static int raise_floor(struct bl_session *s, const char *prefix, uint64_t floor, struct bl_err *err)
{
	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text,
	            "INSERT INTO `%sbiz_row_lock` (biz_id, biz_type, gmt_create) VALUES (" FLOOR_ID
	            "%020" PRIu64 "', " FLOOR_TYPE ", " FLOOR_TIME
	            ") ON DUPLICATE KEY UPDATE gmt_create = " FLOOR_TIME
	            ";DELETE FROM `%sbiz_row_lock` WHERE " IS_FLOOR FLOOR_ID "%020" PRIu64 "'",
	            prefix, floor, prefix, floor);
	return bl_session_run_text(s, NULL, err);
}

int bl_fences_note(struct bl_session *s, const char *prefix, struct bl_err *err)
{
	struct bl_fence_counter counter;
	int rc = bl_fences_read(s, prefix, &counter, err);

	if (rc == BIZLOCK_OK && counter.next > counter.floor)
		rc = raise_floor(s, prefix, counter.next, err);
	return rc;
}

/* ---- the counter ---------------------------------------------------------------------------- */

/* The microseconds since 1970 are more than anybody has drawn. There is no other way to cover the
 * fences that a lost database has given. */
static int find_top(struct bl_session *s, const char *prefix,
                    const struct bl_fence_counter *counter, uint64_t *ret, struct bl_err *err)
{
	int64_t largest = 0;
	int rc;

	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text,
	            "SELECT GREATEST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " NOW
	            "), IFNULL((SELECT MAX(fence) FROM `%sbiz_lock`), 0))",
	            prefix);
	rc = bl_session_ask_text(s, NULL, &largest, err);
	*ret = (uint64_t)largest > counter->next ? (uint64_t)largest : counter->next;
	*ret = counter->floor > *ret ? counter->floor : *ret;
	return rc;
}

/* A row with that fence takes the counter along, and the counter stays there when the row is gone.
 * The row needs no privilege that locks do not need, and nobody waits for it. */
static int raise_counter(struct bl_session *s, const char *prefix, uint64_t fence,
                         struct bl_err *err)
{
	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text,
	            "SET @bizlock_raised = UUID();INSERT INTO `%sbiz_lock` (biz_id, biz_type, "
	            "slot, fence, "
	            "owner, reentrant, timeout, gmt_create, gmt_modified) VALUES "
	            "(@bizlock_raised, " FLOOR_TYPE ", 0, %" PRIu64 ", '', 0, " NOW ", " NOW
	            ", " NOW
	            ");DELETE FROM `%sbiz_lock` WHERE biz_id = @bizlock_raised AND biz_type "
	            "= " FLOOR_TYPE " AND slot = 0",
	            prefix, fence, prefix);
	return bl_session_run_text(s, NULL, err);
}

int bl_fences_raise(struct bl_session *s, const char *prefix, uint64_t *ret, struct bl_err *err)
{
	struct bl_fence_counter counter;
	int rc = bl_fences_read(s, prefix, &counter, err);

	if (rc == BIZLOCK_OK)
		rc = find_top(s, prefix, &counter, ret, err);
	if (rc == BIZLOCK_OK && *ret >= BL_SQL_FENCES - 1)
		rc = bl_err_set(err, BIZLOCK_SCHEMA,
		                "a fence is %" PRIu64 " already, and has to be less than %" PRIu64,
		                *ret, (uint64_t)BL_SQL_FENCES);
	if (rc == BIZLOCK_OK)
		rc = raise_counter(s, prefix, *ret, err);
	return rc == BIZLOCK_OK ? raise_floor(s, prefix, *ret + 1, err) : rc;
}
