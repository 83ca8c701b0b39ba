/* Row locks: in the caller's transaction, and the rows that they lock. */
#include <inttypes.h>
#include <mysqld_error.h>

#include "store/errclass.h"
#include "store/tx_parts.h"

#define NOWAIT_REFUSED 3572 /* MySQL's ER_LOCK_NOWAIT; MariaDB says 1205 */

static bool refused(unsigned native)
{
	return native == NOWAIT_REFUSED || native == ER_LOCK_WAIT_TIMEOUT;
}

int bl_tx_lock_row(const struct bl_tx *tx, const struct bl_key *key, enum bl_row_how how,
                   enum bl_row_got *ret, struct bl_err *err)
{
	static const char *const ends[] = {" NOWAIT", "", " SKIP LOCKED"};
	struct bl_buf text;
	bool any = false;
	int rc;

	bl_tx_begin(tx, &text, "SELECT", "");
	bl_buf_addf(&text, BL_IDENTITY " FROM %s", tx->sql->row_table);
	bl_sql_key(&text, key);
	bl_buf_addf(&text, " LIMIT 1 FOR UPDATE%s", ends[how]);
	rc = bl_tx_send(tx, &text, err);
	if (rc == BIZLOCK_OK)
		rc = bl_tx_find(tx, &any, NULL, 0, err);
	if (rc == BIZLOCK_OK)
		*ret = any ? BL_ROW_LOCKED : BL_ROW_MISSING;
	if (rc != BIZLOCK_DB || !refused(err->native))
		return rc;
	*ret = BL_ROW_BUSY;
	return BIZLOCK_OK;
}

/* What follows INSERT. */
static void add_row_insert(struct bl_buf *text, const char *table, const struct bl_key *key)
{
	bl_buf_addf(text, "INTO %s (biz_id, biz_type, gmt_create) VALUES (", table);
	bl_sql_literal(text, "_utf8mb4", key->id, key->id_len);
	bl_buf_adds(text, ", ");
	bl_sql_literal(text, "_utf8mb4", key->type, key->type_len);
	bl_buf_adds(text, ", UTC_TIMESTAMP(6))");
}

int bl_tx_make_row(const struct bl_tx *tx, const struct bl_key *key, enum bl_row_got *ret,
                   struct bl_err *err)
{
	struct bl_buf text;
	int rc;

	bl_tx_begin(tx, &text, "INSERT",
	            ", innodb_lock_wait_timeout = 0"); /* not the caller's patience */
	add_row_insert(&text, tx->sql->row_table, key);
	rc = bl_tx_send(tx, &text, err);
	if (rc == BIZLOCK_OK)
		rc = bl_tx_done(tx, err);
	if (rc == BIZLOCK_OK)
		*ret = BL_ROW_LOCKED;
	if (rc != BIZLOCK_DB || (!refused(err->native) && err->native != ER_DUP_ENTRY))
		return rc;
	*ret = BL_ROW_BUSY; /* somebody was quicker */
	return BIZLOCK_OK;
}

/* *ret_stale: it is there, and says nothing of a use in a while. */
static int look_at_row(struct bl_session *s, const struct bl_key *key, bool *ret_there,
                       bool *ret_stale, struct bl_err *err)
{
	int64_t found = 0;
	int rc;

	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text,
	            "SELECT 1 + (gmt_create <= UTC_TIMESTAMP(6) - INTERVAL %" PRId64
	            " MICROSECOND) FROM %s",
	            BL_SQL_USED_US, s->sql->row_table);
	bl_sql_key(&s->text, key);
	rc = bl_session_ask_text(s, NULL, &found, err);
	*ret_there = found > 0;
	*ret_stale = found > 1;
	return rc;
}

int bl_row_look(struct bl_session *s, const struct bl_key *key, bool *ret, struct bl_err *err)
{
	bool ignored;

	return look_at_row(s, key, ret, &ignored, err);
}

/* Says that the row is used, for the reaper. One that is locked is left out: the
 * transaction that has it has said so. A refusal only means that the row may have to be made anew
 * some day. */
static int note_use(struct bl_session *s, const struct bl_key *key, struct bl_err *err)
{
	int rc;

	bl_buf_reset(&s->text);
	bl_sql_begin_used(s->sql, &s->text);
	bl_sql_key(&s->text, key);
	bl_sql_end_used(s->sql, &s->text);
	rc = bl_session_run_text(s, NULL, err);
	return rc == BIZLOCK_DB ? BIZLOCK_OK : rc;
}

/* Looks first, without a lock: an INSERT would wait for a transaction that has the row. */
int bl_row_provide(struct bl_session *s, const struct bl_key *key, bool *ret_there,
                   struct bl_err *err)
{
	bool there = false, stale = false;
	int rc = look_at_row(s, key, &there, &stale, err);

	*ret_there = there;
	if (rc == BIZLOCK_OK && stale)
		return note_use(s, key, err);
	if (rc != BIZLOCK_OK || there)
		return rc;
	bl_buf_reset(&s->text);
	bl_buf_adds(&s->text, "INSERT ");
	add_row_insert(&s->text, s->sql->row_table, key);
	rc = bl_session_run_text(s, NULL, err);
	if (rc == BIZLOCK_DB && (refused(err->native) || err->native == ER_DUP_ENTRY))
		rc = BIZLOCK_OK; /* somebody else made it meanwhile, and may have locked it */
	return rc;
}
