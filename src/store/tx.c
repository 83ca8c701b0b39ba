#include "store/tx.h"

#include <inttypes.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <string.h>

#include "store/errclass.h"

#define TEXT_MAX 4096
#define NOWAIT_REFUSED 3572 /* MySQL's ER_LOCK_NOWAIT; MariaDB says 1205 */

/* Which server it is: the row must be the one that contenders see. */
#define IDENTITY "CONCAT(@@hostname, ':', @@port, ':', @@server_id)"

int bl_tx_check(MYSQL *mysql, struct bl_err *err)
{
	if (!mysql)
		return bl_err_set(err, BIZLOCK_INVALID, "tx is NULL");
	if (mysql->status != MYSQL_STATUS_READY || mysql_more_results(mysql))
		return bl_err_set(err, BIZLOCK_MISUSE, "tx has results that were not read");
	if (bl_connector_reconnects(mysql))
		return bl_err_set(
		        err, BIZLOCK_MISUSE,
		        "tx reconnects automatically: a transaction would be lost unseen");
	if (!(mysql->server_status & SERVER_STATUS_IN_TRANS))
		return bl_err_set(err, BIZLOCK_MISUSE, "tx has no open transaction");
	return BIZLOCK_OK;
}

static int tx_error(const struct bl_tx *tx, struct bl_err *err)
{
	return bl_err_native(err, mysql_errno(tx->mysql), mysql_error(tx->mysql));
}

/* Begins a statement with this verb; `settings` are more of MariaDB's, or "". What the caller's
 * session has set would spoil some, and each server can do without for one statement: a `timestamp`
 * of the session's own stops the clock by which a lease is judged; and MariaDB may refuse to lock a
 * row that was changed since the snapshot was taken, as each renewal does. Where MariaDB refuses to
 * set the clock, nobody can have stopped it. */
static void tx_begin(const struct bl_tx *tx, struct bl_buf *text, const char *verb,
                     const char *settings)
{
	const struct bl_server *server = tx->server;

	*text = (struct bl_buf)BL_BUF_INIT(TEXT_MAX);
	if (!server->mariadb) {
		bl_buf_addf(text, "%s /*+ SET_VAR(timestamp = 0) */ ", verb);
		return;
	}
	bl_buf_addf(text, "SET STATEMENT sql_safe_updates = 0%s%s%s FOR %s ",
	            server->secure_timestamp ? "" : ", timestamp = 0",
	            server->snapshot_isolation ? ", innodb_snapshot_isolation = OFF" : "", settings,
	            verb);
}

static void add_fenced(struct bl_buf *text, struct bl_ref hold)
{
	bl_sql_hold(text, hold.key, hold.owner, hold.fence);
	bl_sql_living(text);
}

/* Sends, and frees the text. */
static int tx_send(const struct bl_tx *tx, struct bl_buf *text, struct bl_err *err)
{
	int rc = BIZLOCK_OK;

	if (text->failed)
		rc = bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	else if (mysql_real_query(tx->mysql, text->data, (unsigned long)text->len) != 0)
		rc = tx_error(tx, err);
	bl_buf_free(text);
	return rc;
}

static int check_server(const struct bl_tx *tx, const char *identity, struct bl_err *err)
{
	if (!tx->server->identity[0] || strcmp(identity, tx->server->identity) == 0)
		return BIZLOCK_OK;
	return bl_err_set(err, BIZLOCK_MISUSE, "tx is connected to %s, bizlock to %s", identity,
	                  tx->server->identity);
}

/* An error may have ended the transaction before, and the connector does not know
 * yet: then nothing is locked. The reply tells. */
static int check_still_open(const struct bl_tx *tx, struct bl_err *err)
{
	if (tx->mysql->server_status & SERVER_STATUS_IN_TRANS)
		return BIZLOCK_OK;
	return bl_err_set(err, BIZLOCK_MISUSE,
	                  "the transaction of tx is over: an earlier error has rolled it back");
}

/* Nothing was found: at least on the right server? */
static int ask_server(const struct bl_tx *tx, struct bl_err *err)
{
	MYSQL_RES *rows = NULL;
	MYSQL_ROW row;
	int rc;

	if (mysql_query(tx->mysql, "SELECT " IDENTITY " LIMIT 1") == 0)
		rows = mysql_store_result(tx->mysql);
	if (!rows)
		return tx_error(tx, err);
	row = mysql_fetch_row(rows);
	rc = check_server(tx, row && row[0] ? row[0] : "", err);
	mysql_free_result(rows);
	return rc;
}

/* Reads a result whose first field is the server's identity. */
static int read_result(const struct bl_tx *tx, bool *ret_any, struct bl_err *err)
{
	MYSQL_RES *rows = mysql_store_result(tx->mysql);
	MYSQL_ROW row;
	bool any;
	int rc;

	if (!rows)
		return tx_error(tx, err);
	row = mysql_fetch_row(rows);
	any = row != NULL;
	rc = any ? check_server(tx, row[0] ? row[0] : "", err) : BIZLOCK_OK;
	mysql_free_result(rows);
	if (rc == BIZLOCK_OK)
		rc = check_still_open(tx, err);
	if (rc == BIZLOCK_OK && !any)
		rc = ask_server(tx, err);
	if (rc == BIZLOCK_OK)
		*ret_any = any;
	return rc;
}

/* Share locks of one node mean nothing to the others of a cluster; a change does. */
static int touch(const struct bl_tx *tx, struct bl_ref hold, bool *ret_held, struct bl_err *err)
{
	struct bl_buf text;
	int rc;

	tx_begin(tx, &text, "UPDATE", "");
	bl_buf_addf(&text, "%s SET gmt_modified = UTC_TIMESTAMP(6)", tx->sql->lock_table);
	add_fenced(&text, hold);
	rc = tx_send(tx, &text, err);
	if (rc == BIZLOCK_OK)
		*ret_held = mysql_affected_rows(tx->mysql) == 1;
	return rc;
}

int bl_tx_fence(const struct bl_tx *tx, struct bl_ref hold, bool *ret_held, struct bl_err *err)
{
	struct bl_buf text;
	int rc;

	if (tx->server->galera)
		return touch(tx, hold, ret_held, err);
	tx_begin(tx, &text, "SELECT", "");
	bl_buf_addf(&text, IDENTITY " FROM %s", tx->sql->lock_table);
	add_fenced(&text, hold);
	bl_buf_adds(&text, " LIMIT 1 LOCK IN SHARE MODE");
	rc = tx_send(tx, &text, err);
	return rc == BIZLOCK_OK ? read_result(tx, ret_held, err) : rc;
}

/* Whatever the caller's completion_type: COMMIT means that the transaction is over, not that the
 * next one is open (CHAIN) or the connection gone (RELEASE). */
#define TO_THE_END " AND NO CHAIN NO RELEASE"

void bl_tx_rollback(const struct bl_tx *tx)
{
	mysql_query(tx->mysql, "ROLLBACK" TO_THE_END); /* lost, it is rolled back all the same */
}

static int commit(const struct bl_tx *tx, struct bl_err *err)
{
	int rc;

	if (mysql_query(tx->mysql, "COMMIT" TO_THE_END) == 0)
		return BIZLOCK_OK;
	rc = tx_error(tx, err);
	return bl_may_have_run(err) ? err->code = BIZLOCK_UNKNOWN : rc;
}

static int commit_in_two(const struct bl_tx *tx, struct bl_ref hold, bool *ret_held,
                         struct bl_err *err)
{
	int rc = bl_tx_fence(tx, hold, ret_held, err);

	return rc == BIZLOCK_OK && *ret_held ? commit(tx, err) : rc;
}

/* The SELECT fails, by a number out of range, unless it finds the one row on the
 * right server: then the server does not go on to the COMMIT. */
static int send_both(const struct bl_tx *tx, struct bl_ref hold, struct bl_err *err)
{
	struct bl_buf text;

	tx_begin(tx, &text, "SELECT", "");
	bl_buf_adds(&text, "18446744073709551615 + (COUNT(*) <> 1");
	if (tx->server->identity[0]) {
		bl_buf_adds(&text, " OR " IDENTITY " <> ");
		bl_sql_literal(&text, "_utf8mb4", tx->server->identity,
		               strlen(tx->server->identity));
	}
	bl_buf_addf(&text, ") FROM %s", tx->sql->lock_table);
	add_fenced(&text, hold);
	bl_buf_adds(&text, " LIMIT 1 LOCK IN SHARE MODE;COMMIT" TO_THE_END);
	return tx_send(tx, &text, err);
}

static int read_both(const struct bl_tx *tx, struct bl_err *err)
{
	MYSQL_RES *rows = mysql_store_result(tx->mysql);
	bool open;

	if (!rows)
		return tx_error(tx, err);
	mysql_free_result(rows);
	open = tx->mysql->server_status & SERVER_STATUS_IN_TRANS;
	if (mysql_next_result(tx->mysql) != 0)
		return tx_error(tx, err);
	return open ? BIZLOCK_OK : check_still_open(tx, err); /* there was nothing to commit */
}

/* What was the matter? The long way tells. */
static int find_out(const struct bl_tx *tx, struct bl_ref hold, bool *ret_held, struct bl_err *err)
{
	int rc = bl_tx_fence(tx, hold, ret_held, err);

	*ret_held = false; /* whatever it is now: it was not, and nothing was committed */
	return rc;
}

static int commit_in_one(const struct bl_tx *tx, struct bl_ref hold, bool *ret_held,
                         struct bl_err *err)
{
	int rc = send_both(tx, hold, err);

	if (rc == BIZLOCK_OK)
		rc = read_both(tx, err);
	*ret_held = rc == BIZLOCK_OK;
	if (err->native == ER_DATA_OUT_OF_RANGE)
		return find_out(tx, hold, ret_held, err);
	return rc != BIZLOCK_OK && bl_may_have_run(err) ? err->code = BIZLOCK_UNKNOWN : rc;
}

int bl_tx_commit(const struct bl_tx *tx, struct bl_ref hold, bool *ret_held, struct bl_err *err)
{
	bool one = tx->mysql->client_flag & CLIENT_MULTI_STATEMENTS && !tx->server->galera;
	int rc = one ? commit_in_one(tx, hold, ret_held, err)
	             : commit_in_two(tx, hold, ret_held, err);

	/* A server that takes no writes now has kept the connection, and with it the transaction.
	 */
	if (rc == BIZLOCK_DB || rc == BIZLOCK_NOMEM || (rc == BIZLOCK_OK && !*ret_held) ||
	    (rc == BIZLOCK_CONN && !bl_may_have_run(err)))
		bl_tx_rollback(tx);
	return rc;
}

/* ---- row locks ------------------------------------------------------------------ */

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

	tx_begin(tx, &text, "SELECT", "");
	bl_buf_addf(&text, IDENTITY " FROM %s", tx->sql->row_table);
	bl_sql_key(&text, key);
	bl_buf_addf(&text, " LIMIT 1 FOR UPDATE%s", ends[how]);
	rc = tx_send(tx, &text, err);
	if (rc == BIZLOCK_OK)
		rc = read_result(tx, &any, err);
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

	tx_begin(tx, &text, "INSERT",
	         ", innodb_lock_wait_timeout = 0"); /* not the caller's patience */
	add_row_insert(&text, tx->sql->row_table, key);
	rc = tx_send(tx, &text, err);
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
	if (s->text.failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	rc = bl_session_ask(s, s->text.data, s->text.len, NULL, &found, err);
	*ret_there = found > 0;
	*ret_stale = found > 1;
	return rc;
}

int bl_row_look(struct bl_session *s, const struct bl_key *key, bool *ret, struct bl_err *err)
{
	bool ignored;

	return look_at_row(s, key, ret, &ignored, err);
}

/* Says that the row is used, for the reaper. One that is locked is left out: whoever
 * has it has said so. A refusal would only mean that the row may have to be made
 * anew some day. */
static int note_use(struct bl_session *s, const struct bl_key *key, struct bl_err *err)
{
	int rc;

	bl_buf_reset(&s->text);
	bl_sql_begin_used(s->sql, &s->text);
	bl_sql_key(&s->text, key);
	bl_sql_end_used(&s->text);
	if (s->text.failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	rc = bl_session_run(s, s->text.data, s->text.len, NULL, err);
	return rc == BIZLOCK_DB ? BIZLOCK_OK : rc;
}

/* Looks first, without a lock: an INSERT would wait for whoever has the row. */
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
	if (s->text.failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	rc = bl_session_run(s, s->text.data, s->text.len, NULL, err);
	if (rc == BIZLOCK_DB && (refused(err->native) || err->native == ER_DUP_ENTRY))
		rc = BIZLOCK_OK; /* somebody else made it meanwhile, and may have locked it */
	return rc;
}
