#include "store/row/lock.h"

#include <inttypes.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/bell/sleepers.h"
#include "store/session/errclass.h"

static int64_t us(uint32_t ms)
{
	return (int64_t)ms * 1000;
}

void bl_row_describe(const struct bl_row *row, char *ret, size_t size)
{
	int64_t s = row->left_us / 1000000;
	int ms = (int)(row->left_us / 1000 % 1000);

	if (row->left_us > 0 && row->owner[0])
		snprintf(ret, size,
		         "held by %s (fence %" PRIu64 ", depth %" PRIu32 "), lease ends in %" PRId64
		         ".%03d s",
		         row->owner, row->fence, row->depth, s, ms);
	else if (row->left_us > 0)
		snprintf(ret, size, "released, and resting for %" PRId64 ".%03d s more", s, ms);
	else if (row->locked)
		snprintf(ret, size, "fenced by an open transaction of %s (fence %" PRIu64 ")",
		         row->owner, row->fence);
	else
		snprintf(ret, size, "free, but another contender is about to take it");
}

#define FAR_US (30LL * 365 * 24 * 3600 * 1000000)

int64_t bl_lock_within(int64_t left_us)
{
	if (left_us < -FAR_US)
		return -FAR_US;
	return left_us < FAR_US ? left_us : FAR_US;
}

void bl_row_read(MYSQL_ROW from, struct bl_row *ret)
{
	*ret = (struct bl_row){.found = true,
	                       .fence = bl_rows_u64(from[0]),
	                       .depth = bl_rows_u32(from[2]),
	                       .bell = bl_rows_u64(from[3]),
	                       .left_us = bl_lock_within(bl_rows_number(from[4]))};
	snprintf(ret->owner, sizeof(ret->owner), "%s", from[1] ? from[1] : "");
}

enum { LOOK_COLUMNS = 1 + BL_ROW_COLUMNS + 1 };

/* A doorbell may have an owner where there is no row. */
static void read_look(MYSQL_ROW from, struct bl_row *ret)
{
	if (from[1])
		bl_row_read(from + 1, ret);
	ret->took_over = bl_rows_u64(from[1 + BL_ROW_COLUMNS]) != 0;
	ret->bell_by = bl_rows_u64(from[0]);
}

/* MySQL takes no empty name; nobody has this one. */
#define NO_BELL "-"

int bl_lock_look(struct bl_session *s, const struct bl_key *key, const char *bell,
                 struct bl_row *ret, struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc;

	bl_params_key(&s->params, key);
	bl_params_bell(&s->params, bell ? bell : NO_BELL);
	rc = bl_session_select(s, BL_STMT_LOOK, LOOK_COLUMNS, &rows, err);
	if (rc != BIZLOCK_OK)
		return rc;
	*ret = (struct bl_row){.found = false};
	row = bl_rows_next(rows);
	if (row)
		read_look(row, ret);
	bl_rows_free(rows);
	return rc;
}

int bl_lock_catch_up(struct bl_session *s, bool *ret, struct bl_err *err)
{
	char text[512] = "SET STATEMENT wsrep_sync_wait = 1 FOR SELECT 1";
	int rc;

	if (ret)
		*ret = false;
	if (!bl_sql_in_cluster(s->sql))
		return BIZLOCK_OK;
	if (!s->sql->galera)
		snprintf(text, sizeof(text),
		         "SET @bizlock_consistency = @@group_replication_consistency, "
		         "SESSION group_replication_consistency = 'BEFORE';"
		         "SELECT 1 FROM %s LIMIT 1;"
		         "SET SESSION group_replication_consistency = @bizlock_consistency",
		         s->sql->table);
	rc = bl_session_run(s, text, strlen(text), NULL, err);
	if (ret)
		*ret = rc == BIZLOCK_OK;
	/* If this user may not wait so, this member's answer must suffice. */
	return rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_OTHER ? BIZLOCK_OK : rc;
}

int bl_lock_find(struct bl_session *s, const struct bl_key *key, uint64_t fence, struct bl_row *ret,
                 struct bl_err *err)
{
	bool again = false;
	int rc = bl_lock_look(s, key, NULL, ret, err);

	if (rc == BIZLOCK_OK && (!ret->found || ret->fence != fence || ret->left_us <= 0))
		rc = bl_lock_catch_up(s, &again, err);
	return again ? bl_lock_look(s, key, NULL, ret, err) : rc;
}

int bl_lock_probe(struct bl_session *s, const struct bl_key *key, bool *ret_locked,
                  struct bl_err *err)
{
	struct bl_rows *rows;
	int rc;

	bl_params_key(&s->params, key);
	rc = bl_session_select(s, BL_STMT_PROBE, 1, &rows, err);
	if (rc != BIZLOCK_OK)
		return rc;
	*ret_locked = rows->count == 0;
	bl_rows_free(rows);
	return rc;
}

enum { ASK_MS = 100, MOST_ASK_MS = 400 };

/* Can a statement use the table without a wait? It reads no row. MySQL knows no shorter wait for a
 * table than a second, but can end a SELECT. A server whose processors are busy may need as long
 * for a SELECT that waits for nothing, and then somebody would be blamed who is not there: so the
 * end of the first makes the second, and that one decides. How much longer it may take follows
 * from how late the end of the first came: hundreds of requests may ask about a locked table, and
 * each has to wait for the answer. */
static int try_table(struct bl_session *s, const char *table, const char *how, bool *ret_locked,
                     struct bl_err *err)
{
	int64_t end_ms = ASK_MS, late_ms;
	bl_time start;
	bool stopped = true;
	int rc = BIZLOCK_OK;

	for (int i = 0; stopped && i < 2; i++) {
		bl_buf_reset(&s->text);
		if (s->sql->mariadb)
			bl_buf_adds(&s->text, "SET STATEMENT lock_wait_timeout = 0 FOR ");
		bl_buf_addf(&s->text,
		            "SELECT /*+ MAX_EXECUTION_TIME(%d) */ 1 FROM %s WHERE FALSE%s",
		            (int)end_ms, table, how);
		start = bl_now();
		rc = bl_session_run_text(s, NULL, err);
		late_ms = (bl_now() - start) / BL_NS_PER_MS - end_ms;
		end_ms = late_ms < 3 ? ASK_MS : late_ms < 10 ? 40 * late_ms : MOST_ASK_MS;
		stopped = rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_STOPPED;
	}
	*ret_locked = stopped || (rc == BIZLOCK_DB && bl_waited_in_vain(err));
	return *ret_locked ? BIZLOCK_OK : rc;
}

int bl_lock_ask_table(struct bl_session *s, bool *ret_reads, struct bl_err *err)
{
	const char *table = s->sql->lock_table;
	bool locked = false, hidden = false;
	int rc = try_table(s, table, " FOR UPDATE", &locked, err);

	*ret_reads = true;
	if (rc != BIZLOCK_OK || !locked)
		return rc;
	rc = try_table(s, table, "", &hidden, err);
	if (rc != BIZLOCK_OK)
		return rc;
	*ret_reads = !hidden;
	return bl_err_locked(err, BIZLOCK_DB, table, true);
}

void bl_lock_name(struct bl_session *s, struct bl_err *err)
{
	struct bl_err why;
	bool reads;

	if (bl_lock_ask_table(s, &reads, &why) == BIZLOCK_DB && bl_table_locked(&why))
		*err = why;
}

static int run_matching(struct bl_session *s, enum bl_stmt stmt, struct bl_ref hold,
                        bool *ret_matched, struct bl_err *err)
{
	struct bl_done done = {0, 0};
	bool again = false;
	int rc;

	bl_params_key(&s->params, hold.key);
	bl_params_owner(&s->params, hold.owner);
	s->params.fence = hold.fence;
	rc = bl_session_exec(s, stmt, &done, err);
	if (rc == BIZLOCK_OK && done.affected == 0)
		rc = bl_lock_catch_up(s, &again, err);
	if (again)
		rc = bl_session_exec(s, stmt, &done, err);
	if (rc == BIZLOCK_OK)
		*ret_matched = done.affected > 0;
	return rc;
}

int bl_lock_depth(struct bl_session *s, struct bl_ref hold, uint32_t depth, uint32_t lease_ms,
                  bool *ret_matched, struct bl_err *err)
{
	s->params.depth = depth;
	s->params.lease_us = us(lease_ms);
	return run_matching(s, BL_STMT_DEPTH, hold, ret_matched, err);
}

int bl_lock_renew(struct bl_session *s, struct bl_ref hold, uint32_t lease_ms, bool *ret_matched,
                  struct bl_err *err)
{
	s->params.lease_us = us(lease_ms);
	return run_matching(s, BL_STMT_RENEW, hold, ret_matched, err);
}

/* One packet frees row and doorbell, and so wakes the waiters at the doorbell. Watchers of the key,
 * and the first in line, are woken by another packet, which is sent only if there are any. */
static int drop_and_tell(struct bl_session *s, struct bl_ref hold, const char *bell,
                         uint64_t *ret_affected, struct bl_err *err)
{
	enum bl_sleepers whom = hold.key->slot > 0 ? BL_SLEEPERS_FIRST : BL_SLEEPERS_ALL;
	int rc;

	bl_buf_adds(&s->text, ";");
	if (bell)
		bl_sleepers_add_rings(s, &bell, 1);
	else
		bl_sleepers_add_question(&s->text, &hold.bell, 1, whom);
	rc = bl_session_run_first(s, ret_affected, err);
	if (rc == BIZLOCK_OK)
		bl_sleepers_wake(s, bell ? &bell : &hold.bell, 1,
		                 bell ? BL_SLEEPERS_WATCHING : whom);
	s->woke &= hold.key->slot == 0;
	return rc;
}

/* Errors that can end a compound after its DELETE. A refusal of writes is none of them: it comes
 * before the DELETE. */
static bool may_have_ended_between(const struct bl_err *err)
{
	enum bl_class class = bl_classify(err->native);

	return class == BL_CLASS_STOPPED || class == BL_CLASS_KILLED ||
	       err->native == ER_SERVER_SHUTDOWN || err->native == ER_UNKNOWN_COM_ERROR;
}

/* The same as a compound statement, which MariaDB prepares. Its parts have no answers of their own:
 * when it is ended from outside, the row may be gone, or not. */
static int drop_and_ring(struct bl_session *s, struct bl_ref hold, const char *bell,
                         uint64_t *ret_affected, struct bl_err *err)
{
	struct bl_done done;
	int rc;

	_Static_assert(BL_WATCHER_NAMES == 2, "the statement asks for as many names");
	bl_params_key(&s->params, hold.key);
	bl_params_owner(&s->params, hold.owner);
	bl_params_bell(&s->params, bell);
	s->params.fence = hold.fence;
	rc = bl_session_exec(s, BL_STMT_DROP_RING, &done, err);
	if (rc != BIZLOCK_OK)
		return may_have_ended_between(err)
		               ? bl_session_lost(s, err, "the release was ended from outside")
		               : rc;
	*ret_affected = done.affected;
	s->warnings = mysql_warning_count(s->mysql);
	bl_sleepers_wake(s, &bell, 1, BL_SLEEPERS_WATCHING);
	return rc;
}

static int drop_once(struct bl_session *s, struct bl_ref hold, const char *bell, int64_t rest_us,
                     bool *ret_matched, struct bl_err *err)
{
	bool at_once = bell && s->sql->compound && hold.owner && rest_us == 0;
	uint64_t affected = 0;
	int rc;

	if (at_once) {
		rc = drop_and_ring(s, hold, bell, &affected, err);
		*ret_matched = rc == BIZLOCK_OK && affected > 0;
		return rc;
	}
	bl_buf_reset(&s->text);
	bl_sql_drop(s->sql, &s->text, hold.key, hold.owner, hold.fence, rest_us);
	if (bell || hold.bell)
		rc = drop_and_tell(s, hold, bell, &affected, err);
	else
		rc = bl_session_run_text(s, &affected, err);
	if (rc == BIZLOCK_OK)
		*ret_matched = affected > 0;
	return rc;
}

int bl_lock_drop(struct bl_session *s, struct bl_ref hold, const char *bell, int64_t rest_us,
                 bool *ret_matched, struct bl_err *err)
{
	bool again = false;
	int rc;

	if (hold.owner && !bell && !hold.bell && rest_us == 0)
		return run_matching(s, BL_STMT_DROP, hold, ret_matched, err);
	rc = drop_once(s, hold, bell, rest_us, ret_matched, err);
	if (rc == BIZLOCK_OK && !*ret_matched)
		rc = bl_lock_catch_up(s, &again, err);
	return again ? drop_once(s, hold, NULL, rest_us, ret_matched, err) : rc;
}

static int downgrade_once(struct bl_session *s, struct bl_ref hold, uint32_t slot, const char *bell,
                          bool *ret_matched, struct bl_err *err)
{
	uint64_t affected = 0;
	int rc;

	bl_buf_reset(&s->text);
	bl_sql_downgrade(s->sql, &s->text, hold.key, hold.owner, hold.fence, slot);
	if (bell || hold.bell)
		rc = drop_and_tell(s, hold, bell, &affected, err);
	else
		rc = bl_session_run_text(s, &affected, err);
	if (rc == BIZLOCK_OK)
		*ret_matched = affected > 0;
	return rc;
}

int bl_lock_downgrade(struct bl_session *s, struct bl_ref hold, uint32_t slot, const char *bell,
                      bool *ret_matched, struct bl_err *err)
{
	bool again = false;
	int rc = downgrade_once(s, hold, slot, bell, ret_matched, err);

	if (rc == BIZLOCK_OK && !*ret_matched)
		rc = bl_lock_catch_up(s, &again, err);
	return again ? downgrade_once(s, hold, slot, NULL, ret_matched, err) : rc;
}

int bl_lock_give(struct bl_session *s, struct bl_ref hold, const char *new_owner, uint32_t depth,
                 uint32_t lease_ms, bool exported, bool *ret_matched, struct bl_err *err)
{
	uint64_t affected = 0;
	bool again = false;
	int rc;

	bl_buf_reset(&s->text);
	bl_sql_give(s->sql, &s->text, new_owner, depth, us(lease_ms));
	bl_sql_hold(&s->text, hold.key, hold.owner, hold.fence);
	bl_sql_living(&s->text);
	if (exported)
		bl_sql_exported(&s->text, depth, us(lease_ms));
	rc = bl_session_run_text(s, &affected, err);
	if (rc == BIZLOCK_OK && affected == 0)
		rc = bl_lock_catch_up(s, &again, err);
	if (again)
		rc = bl_session_run_text(s, &affected, err);
	if (rc == BIZLOCK_OK)
		*ret_matched = affected > 0;
	return rc;
}

int bl_lock_sweep_row(struct bl_session *s, struct bl_ref hold, bool *ret_matched,
                      struct bl_err *err)
{
	uint64_t affected = 0;
	int rc;

	bl_buf_reset(&s->text);
	bl_sql_sweep(s->sql, &s->text, hold.key, hold.owner, hold.fence);
	rc = bl_session_run_text(s, &affected, err);
	if (rc == BIZLOCK_OK)
		*ret_matched = affected > 0;
	return rc;
}

int bl_lock_break(struct bl_session *s, struct bl_ref hold, bool *ret_matched, struct bl_err *err)
{
	hold.owner = NULL;
	return bl_lock_drop(s, hold, NULL, bl_sql_rest_of_others(hold.key), ret_matched, err);
}
