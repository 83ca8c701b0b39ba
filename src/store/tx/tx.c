#include "store/tx/tx.h"

#include <errmsg.h>
#include <inttypes.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <string.h>

#include "store/session/errclass.h"

#define TEXT_MAX 4096
#define ANSWER_MS 100000 /* for the end of an answer that has begun to come */

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

/* Only XA COMMIT and XA ROLLBACK end an XA transaction, and they need its name. */
static int tx_error(const struct bl_tx *tx, struct bl_err *err)
{
	int rc = bl_err_native(err, mysql_errno(tx->mysql), mysql_error(tx->mysql));

	if (err->native != ER_XAER_RMFAIL)
		return rc;
	bl_err_set(err, BIZLOCK_MISUSE, "tx is in an XA transaction, which is still open: %s (%u)",
	           mysql_error(tx->mysql), ER_XAER_RMFAIL);
	return err->code;
}

/* Begins a statement with this verb; settings: further settings for MariaDB, or "". Some settings
 * of the caller's session would spoil statements, and each server can override them for one
 * statement. A `timestamp` of the session's own stops the clock by which a lease is judged. MariaDB
 * may refuse to lock a row that was changed since the snapshot was taken, and each renewal changes
 * the row. Where MariaDB refuses to set the clock, nobody can have stopped it. */
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

/* Looks before it sends, as bl_session_ready() does, and for the same reasons. */
static int tx_query(const struct bl_tx *tx, const char *sql, size_t len, struct bl_err *err)
{
	if (bl_connector_speaks(tx->mysql)) {
		bl_connector_cut(tx->mysql);
		return bl_err_native(err, CR_SERVER_GONE_ERROR,
		                     "the server has ended the connection");
	}
	return mysql_real_query(tx->mysql, sql, (unsigned long)len) ? tx_error(tx, err)
	                                                            : BIZLOCK_OK;
}

/* Sends, and frees the text. */
static int tx_send(const struct bl_tx *tx, struct bl_buf *text, struct bl_err *err)
{
	int rc = BIZLOCK_OK;

	if (text->failed)
		rc = bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	else
		rc = tx_query(tx, text->data, text->len, err);
	bl_buf_free(text);
	return rc;
}

/* The row must be the one that contenders see. */
static int check_server(const struct bl_tx *tx, const char *identity, struct bl_err *err)
{
	if (!tx->identity[0] || strcmp(identity, tx->identity) == 0)
		return BIZLOCK_OK;
	return bl_err_set(err, BIZLOCK_MISUSE, "tx is connected to %s, bizlock to %s", identity,
	                  tx->identity);
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

/* The caller's connection is of no use to the caller either once its answers do not fit. */
static int tx_refuse(const struct bl_tx *tx, struct bl_err *err)
{
	bl_connector_cut(tx->mysql);
	return bl_err_set(err, BIZLOCK_DB, "tx answers what it was not asked");
}

/* The answer to a query for one row at most. last: nothing follows. */
static int tx_read(const struct bl_tx *tx, bool last, unsigned columns, struct bl_rows **ret,
                   struct bl_err *err)
{
	struct bl_rows *rows;
	int rc = bl_rows_read(tx->mysql, bl_deadline_in_ms(ANSWER_MS), &rows, err);

	if (rc != BIZLOCK_OK)
		return rc;
	if (rows && rows->columns == columns && rows->count <= 1 &&
	    last == !mysql_more_results(tx->mysql)) {
		*ret = rows;
		return BIZLOCK_OK;
	}
	bl_rows_free(rows);
	tx_refuse(tx, err);
	return BIZLOCK_DB;
}

/* The answer to a statement that is no query. */
static int tx_done(const struct bl_tx *tx, struct bl_err *err)
{
	bool fits = mysql_field_count(tx->mysql) == 0 && !mysql_more_results(tx->mysql);

	return fits ? BIZLOCK_OK : tx_refuse(tx, err);
}

int bl_tx_ask_server(const struct bl_tx *tx, struct bl_err *err)
{
	static const char query[] = "SELECT " BL_IDENTITY " LIMIT 1";
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc = tx_query(tx, query, strlen(query), err);

	if (rc == BIZLOCK_OK)
		rc = tx_read(tx, true, 1, &rows, err);
	if (rc != BIZLOCK_OK)
		return rc;
	row = bl_rows_next(rows);
	rc = check_server(tx, row && row[0] ? row[0] : "", err);
	bl_rows_free(rows);
	return rc;
}

/* Reads a result of one row at most, whose first field is the server's identity, and whose other n
 * are 0 or 1: they are written to ret_flags. MISUSE if it is another server's, or if no transaction
 * is open. */
static int tx_find(const struct bl_tx *tx, bool *ret_any, bool *ret_flags, unsigned n,
                   struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	bool any;
	int rc = tx_read(tx, true, 1 + n, &rows, err);

	if (rc != BIZLOCK_OK)
		return rc;
	row = bl_rows_next(rows);
	any = row != NULL;
	for (unsigned i = 0; i < n; i++)
		ret_flags[i] = any && row[1 + i] && row[1 + i][0] == '1';
	rc = any ? check_server(tx, row[0] ? row[0] : "", err) : BIZLOCK_OK;
	bl_rows_free(rows);
	if (rc == BIZLOCK_OK)
		rc = check_still_open(tx, err);
	/* No row was found: was it at least the right server? */
	if (rc == BIZLOCK_OK && !any)
		rc = bl_tx_ask_server(tx, err);
	*ret_any = any;
	return rc;
}

/* ---- holds --------------------------------------------------------------------------------- */

/* Changes the row. Only this member of a cluster knows of a share lock, but a change goes to all
 * members: of two transactions that have changed the same row at different members, one is rolled
 * back. */
static int touch(const struct bl_tx *tx, struct bl_ref hold, enum bl_fenced *ret,
                 struct bl_err *err)
{
	struct bl_buf text;
	int rc;

	tx_begin(tx, &text, "UPDATE", "");
	bl_buf_addf(&text, "%s SET gmt_modified = UTC_TIMESTAMP(6)", tx->sql->lock_table);
	add_fenced(&text, hold);
	rc = tx_send(tx, &text, err);
	if (rc == BIZLOCK_OK)
		rc = tx_done(tx, err);
	if (rc == BIZLOCK_OK && mysql_affected_rows(tx->mysql) != 1)
		*ret = BL_FENCED_NOT;
	return rc == BIZLOCK_OK ? check_still_open(tx, err) : rc;
}

/* A condition: the transaction's snapshot does not show this hold. InnoDB reads the subquery's
 * table from the snapshot, because nothing locks it there, although the statement around it reads
 * the same row as it is now. The owner is compared, too, because a hold that was imported has kept
 * its fence. */
static void add_stale(const struct bl_tx *tx, struct bl_buf *text, struct bl_ref hold)
{
	bl_buf_addf(text, "NOT EXISTS(SELECT 1 FROM %s", tx->sql->lock_table);
	bl_sql_hold(text, hold.key, hold.owner, hold.fence);
	bl_buf_adds(text, ")");
}

/* *ret_several, before: several members are known to take writes. Then the row is locked as touch()
 * needs it: two transactions of one holder that lock the row in share mode first would wait for
 * each other in a circle. After: also if the group has gone over from one primary to several, as it
 * may while the client is open; the group waits for the transactions that are open then. */
static int look(const struct bl_tx *tx, struct bl_ref hold, enum bl_fenced *ret, bool *ret_several,
                struct bl_err *err)
{
	bool group = tx->server->group, any, flags[2] = {false, false};
	struct bl_buf text;
	int rc;

	tx_begin(tx, &text, "SELECT", "");
	bl_buf_adds(&text, BL_IDENTITY ", ");
	add_stale(tx, &text, hold);
	bl_buf_addf(&text, "%s FROM %s",
	            group ? ", NOT @@group_replication_single_primary_mode" : "",
	            tx->sql->lock_table);
	add_fenced(&text, hold);
	bl_buf_addf(&text, " LIMIT 1 %s", *ret_several ? "FOR UPDATE" : "LOCK IN SHARE MODE");
	rc = tx_send(tx, &text, err);
	if (rc == BIZLOCK_OK)
		rc = tx_find(tx, &any, flags, group ? 2 : 1, err);
	if (rc != BIZLOCK_OK)
		return rc;
	*ret = !any ? BL_FENCED_NOT : flags[0] ? BL_FENCED_STALE : BL_FENCED;
	*ret_several |= flags[1];
	return rc;
}

/* The change comes last: after it, the transaction would read its own version of the row. */
int bl_tx_fence(const struct bl_tx *tx, struct bl_ref hold, enum bl_fenced *ret, struct bl_err *err)
{
	bool several = tx->server->several_primaries;
	int rc = look(tx, hold, ret, &several, err);

	return rc == BIZLOCK_OK && *ret == BL_FENCED && several ? touch(tx, hold, ret, err) : rc;
}

/* Overrides the caller's completion_type: after COMMIT no next transaction is open (CHAIN), and the
 * connection is not gone (RELEASE). */
#define TO_THE_END " AND NO CHAIN NO RELEASE"

int bl_tx_rollback(const struct bl_tx *tx, int rc, struct bl_err *err)
{
	static const char rollback[] = "ROLLBACK" TO_THE_END;
	struct bl_err failed; /* a lost connection rolls back, too */

	if (tx_query(tx, rollback, strlen(rollback), &failed) != BIZLOCK_MISUSE)
		return rc;
	*err = failed;
	return err->code;
}

static int commit(const struct bl_tx *tx, struct bl_err *err)
{
	static const char text[] = "COMMIT" TO_THE_END;
	int rc = tx_query(tx, text, strlen(text), err);

	if (rc == BIZLOCK_OK)
		return tx_done(tx, err) == BIZLOCK_OK ? BIZLOCK_OK : (err->code = BIZLOCK_UNKNOWN);
	return bl_may_have_run(err) ? err->code = BIZLOCK_UNKNOWN : rc;
}

static int commit_in_two(const struct bl_tx *tx, struct bl_ref hold, enum bl_fenced *ret,
                         struct bl_err *err)
{
	int rc = bl_tx_fence(tx, hold, ret, err);

	return rc == BIZLOCK_OK && *ret == BL_FENCED ? commit(tx, err) : rc;
}

/* The SELECT fails, by a number out of range, unless it finds the one row on the
 * right server, and a snapshot that shows it: then the server does not go on to the COMMIT. */
static int send_both(const struct bl_tx *tx, struct bl_ref hold, struct bl_err *err)
{
	struct bl_buf text;

	tx_begin(tx, &text, "SELECT", "");
	bl_buf_adds(&text, "18446744073709551615 + (COUNT(*) <> 1 OR ");
	add_stale(tx, &text, hold);
	if (tx->identity[0]) {
		bl_buf_adds(&text, " OR " BL_IDENTITY " <> ");
		bl_sql_literal(&text, "_utf8mb4", tx->identity, strlen(tx->identity));
	}
	bl_buf_addf(&text, ") FROM %s", tx->sql->lock_table);
	add_fenced(&text, hold);
	bl_buf_adds(&text, " LIMIT 1 LOCK IN SHARE MODE;COMMIT" TO_THE_END);
	return tx_send(tx, &text, err);
}

static int read_both(const struct bl_tx *tx, struct bl_err *err)
{
	struct bl_rows *rows;
	bool open;
	int rc = tx_read(tx, false, 1, &rows, err);

	/* The COMMIT was sent, and an answer that does not fit says nothing about it. */
	if (rc != BIZLOCK_OK && !err->native)
		err->code = BIZLOCK_UNKNOWN;
	if (rc != BIZLOCK_OK)
		return err->code;
	bl_rows_free(rows);
	open = tx->mysql->server_status & SERVER_STATUS_IN_TRANS;
	if (mysql_next_result(tx->mysql) != 0)
		return tx_error(tx, err);
	if (tx_done(tx, err) != BIZLOCK_OK)
		return err->code = BIZLOCK_UNKNOWN;
	return open ? BIZLOCK_OK : check_still_open(tx, err); /* there was nothing to commit */
}

/* The packet failed: the statements one by one tell why. */
static int find_out(const struct bl_tx *tx, struct bl_ref hold, enum bl_fenced *ret,
                    struct bl_err *err)
{
	int rc = bl_tx_fence(tx, hold, ret, err);

	if (*ret == BL_FENCED)
		*ret = BL_FENCED_NOT; /* it may be held now, but nothing was committed */
	return rc;
}

static int commit_in_one(const struct bl_tx *tx, struct bl_ref hold, enum bl_fenced *ret,
                         struct bl_err *err)
{
	int rc = send_both(tx, hold, err);

	if (rc == BIZLOCK_OK)
		rc = read_both(tx, err);
	*ret = rc == BIZLOCK_OK ? BL_FENCED : BL_FENCED_NOT;
	if (err->native == ER_DATA_OUT_OF_RANGE)
		return find_out(tx, hold, ret, err);
	return rc != BIZLOCK_OK && bl_may_have_run(err) ? err->code = BIZLOCK_UNKNOWN : rc;
}

int bl_tx_commit(const struct bl_tx *tx, struct bl_ref hold, enum bl_fenced *ret,
                 struct bl_err *err)
{
	bool one = tx->mysql->client_flag & CLIENT_MULTI_STATEMENTS &&
	           !bl_server_in_cluster(tx->server);
	int rc = one ? commit_in_one(tx, hold, ret, err) : commit_in_two(tx, hold, ret, err);

	/* A server that takes no writes now has kept the connection, and with it the transaction.
	 */
	if (rc == BIZLOCK_DB || rc == BIZLOCK_NOMEM || (rc == BIZLOCK_OK && *ret != BL_FENCED) ||
	    (rc == BIZLOCK_CONN && !bl_may_have_run(err)))
		rc = bl_tx_rollback(tx, rc, err);
	return rc;
}

/* ---- row locks: in the caller's transaction, and the rows that they lock ------------------- */

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

	tx_begin(tx, &text, "SELECT", "");
	bl_buf_addf(&text, BL_IDENTITY " FROM %s", tx->sql->row_table);
	bl_sql_key(&text, key);
	bl_buf_addf(&text, " LIMIT 1 FOR UPDATE%s", ends[how]);
	rc = tx_send(tx, &text, err);
	if (rc == BIZLOCK_OK)
		rc = tx_find(tx, &any, NULL, 0, err);
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
	         ", innodb_lock_wait_timeout = 0"); /* not the caller's time limit */
	add_row_insert(&text, tx->sql->row_table, key);
	rc = tx_send(tx, &text, err);
	if (rc == BIZLOCK_OK)
		rc = tx_done(tx, err);
	if (rc == BIZLOCK_OK)
		*ret = BL_ROW_LOCKED;
	if (rc != BIZLOCK_DB || (!refused(err->native) && err->native != ER_DUP_ENTRY))
		return rc;
	*ret = BL_ROW_BUSY; /* somebody was quicker */
	return BIZLOCK_OK;
}

/* *ret_stale: the row is there, and its last known use is BL_SQL_USED_US ago or more. */
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

/* Notes for the reaper that the row is used. A locked row is left out: the use by that transaction
 * has been noted. A refusal only means that the row may have to be made anew some day. */
static int note_use(struct bl_session *s, const struct bl_key *key, struct bl_err *err)
{
	int rc;

	bl_buf_reset(&s->text);
	bl_sql_use_row_lock(s->sql, &s->text, key);
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
