#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/sql/phrases.h"

#define SQL_MAX 4096

/* In the templates @T is the table, and @BELL the connection that has the doorbell.
 *
 * A lease is over exactly when timeout <= now, in every statement. An acquisition that does not get
 * the row is told so by an error; without an error it has the row. The number of affected rows is
 * not reliable: it differs where a proxy has set CLIENT_FOUND_ROWS, and where the table has system
 * versioning or triggers. With triggers the value of LAST_INSERT_ID(x) is lost, too. An error
 * arrives as it is. VALUES() is deprecated on MySQL in favour of a row alias, which MariaDB does
 * not know; VALUES() is what both understand. */
#define NEW_ROW(type, bell)                                                                        \
	"INSERT INTO @T (biz_id, biz_type, slot, owner, reentrant, timeout, bell, note, "          \
	"gmt_create, gmt_modified) VALUES (?, " type ", 0, ?, 1, " NOW                             \
	" + INTERVAL ? MICROSECOND, " bell ", ?, " NOW ", " NOW ") ON DUPLICATE KEY UPDATE "
/* If a row is there, the error tells whether its lease is over (bl_told_over()) or not
 * (bl_told_held()). The statement takes no row over: most keys are free, and the assignments of a
 * takeover would cost a tenth of the statement even then. */
#define TAKE_FREE(type, bell)                                                                      \
	NEW_ROW(type, bell) "reentrant = IF(" OVER ", 4294967296, EXP(999 + reentrant))"

#define HAND_OVER                                                                                  \
	NEW_ROW("?", "IF(? = '', 0, CONNECTION_ID())")                                             \
	"reentrant = IF(owner = ? AND fence = ?" HANDED_OVER

#define KEY "biz_id = ? AND biz_type = ?"
#define SLOT KEY " AND slot = ?"
#define MINE " AND owner = ? AND fence = ?"

#define DROP "DELETE FROM @T WHERE " SLOT MINE
/* The question of bl_sleepers_add_rings(), for one of the watchers' names of a doorbell. */
#define WATCHED(slot) "IS_USED_LOCK(INSERT(?,1,7,'bizwat" slot "'))/0"

/* Leaves out rows that are free: nobody has them. */
#define PAGE(filter)                                                                               \
	"SELECT biz_id, biz_type, owner, note, fence, reentrant, "                                 \
	"TIMESTAMPDIFF(MICROSECOND, " NOW ", timeout), "                                           \
	"TIMESTAMPDIFF(MICROSECOND, gmt_create, " NOW "), slot, at_most FROM @T WHERE " filter     \
	" AND (owner <> '' OR timeout > " NOW                                                      \
	") ORDER BY biz_id, biz_type, slot LIMIT 256" /* BL_PAGE_ROWS */

static const struct {
	const char *text;
	enum bl_param params[BL_PARAMS_MAX];
	unsigned rows;
} templates[BL_STMT_COUNT] = {
        /* A NULL biz_type is refused (1048) before any row is touched. */
        [BL_STMT_TAKE_BELL] = {TAKE_FREE("IF(GET_LOCK(?, 0) = 1, ?, NULL)", "CONNECTION_ID()"),
                               {BL_P_ID, BL_P_BELL, BL_P_TYPE, BL_P_OWNER, BL_P_LEASE, BL_P_NOTE},
                               0},
        [BL_STMT_TAKE] = {TAKE_FREE("?", "IF(? = '', 0, CONNECTION_ID())"),
                          {BL_P_ID, BL_P_TYPE, BL_P_OWNER, BL_P_LEASE, BL_P_BELL, BL_P_NOTE},
                          0},
        [BL_STMT_HAND_OVER] = {HAND_OVER,
                               {BL_P_ID, BL_P_TYPE, BL_P_OWNER, BL_P_LEASE, BL_P_BELL, BL_P_NOTE,
                                BL_P_GIVER, BL_P_FENCE},
                               0},
        [BL_STMT_LOOK] = {"SELECT @BELL, " ROW_READ
                          ", l.taken_from FROM (SELECT 1) AS one LEFT JOIN @T AS l ON " SLOT,
                          {BL_P_BELL, BL_P_ID, BL_P_TYPE, BL_P_SLOT},
                          1},
        [BL_STMT_PROBE] = {"SELECT 1 FROM @T WHERE " SLOT " FOR UPDATE SKIP LOCKED",
                           {BL_P_ID, BL_P_TYPE, BL_P_SLOT},
                           1},
        /* GREATEST: a level more or less never shortens the lease. */
        [BL_STMT_DEPTH] = {"UPDATE @T SET reentrant = ?, gmt_modified = " NOW
                           ", timeout = GREATEST(timeout, " NOW
                           " + INTERVAL ? MICROSECOND) WHERE " SLOT MINE " AND timeout > " NOW,
                           {BL_P_DEPTH, BL_P_LEASE, BL_P_ID, BL_P_TYPE, BL_P_SLOT, BL_P_OWNER,
                            BL_P_FENCE},
                           0},
        [BL_STMT_RENEW] = {"UPDATE @T SET gmt_modified = " NOW ", timeout = " NOW
                           " + INTERVAL ? MICROSECOND WHERE " SLOT MINE " AND timeout > " NOW,
                           {BL_P_LEASE, BL_P_ID, BL_P_TYPE, BL_P_SLOT, BL_P_OWNER, BL_P_FENCE},
                           0},
        [BL_STMT_DROP] = {DROP, {BL_P_ID, BL_P_TYPE, BL_P_SLOT, BL_P_OWNER, BL_P_FENCE}, 0},
        [BL_STMT_DROP_RING] = {"BEGIN NOT ATOMIC " DROP
                               ";DO RELEASE_LOCK(?)," WATCHED("0") "," WATCHED("1") ";END",
                               {BL_P_ID, BL_P_TYPE, BL_P_SLOT, BL_P_OWNER, BL_P_FENCE, BL_P_BELL,
                                BL_P_BELL, BL_P_BELL},
                               0},
        [BL_STMT_SHARED_TAKE] =
                {"INSERT INTO @T (biz_id, biz_type, slot, owner, reentrant, timeout, "
                 "note, gmt_create, gmt_modified) VALUES (?, ?, ?, ?, 1, " NOW
                 " + INTERVAL ? MICROSECOND, ?, " NOW ", " NOW ") ON DUPLICATE KEY UPDATE " IF_NEW,
                 {BL_P_ID, BL_P_TYPE, BL_P_SLOT, BL_P_OWNER, BL_P_LEASE, BL_P_NOTE},
                 0},
        /* Not (a, b) > (?, ?): MySQL reads the whole index for that. */
        [BL_STMT_PAGE] = {PAGE("biz_id >= ? AND (biz_id > ? OR biz_type > ? OR (biz_type = ? AND "
                               "slot >= ?))"),
                          {BL_P_ID, BL_P_ID, BL_P_TYPE, BL_P_TYPE, BL_P_SLOT},
                          BL_PAGE_ROWS},
        [BL_STMT_PAGE_TYPE] = {PAGE("biz_type = ? AND biz_id >= ? AND (biz_id > ? OR slot >= ?)"),
                               {BL_P_TYPE, BL_P_ID, BL_P_ID, BL_P_SLOT},
                               BL_PAGE_ROWS},
        [BL_STMT_PAGE_KEY] = {PAGE(KEY " AND slot >= ?"),
                              {BL_P_ID, BL_P_TYPE, BL_P_SLOT},
                              BL_PAGE_ROWS},
};

const enum bl_param *bl_sql_params(enum bl_stmt stmt)
{
	return templates[stmt].params;
}

unsigned bl_sql_rows(enum bl_stmt stmt)
{
	return templates[stmt].rows;
}

/* The end of what begins at `at`: a text in quotes, a comment, or one character. */
static const char *skip(const char *at, const char *end)
{
	const char *close = NULL;

	if (*at == '\'' || *at == '`')
		close = memchr(at + 1, *at, (size_t)(end - at - 1));
	else if (*at == '-' && end - at > 1 && at[1] == '-')
		close = memchr(at, '\n', (size_t)(end - at));
	else
		close = at;
	return close ? close + 1 : end;
}

unsigned bl_sql_statements(const char *sql, size_t len)
{
	const char *end = sql + len;
	bool begun = false;
	unsigned n = 0;

	while (sql < end) {
		if (*sql == ';')
			begun = false;
		else if (!begun && !strchr(" \n\t", *sql) && *sql != '-')
			n += begun = true;
		sql = skip(sql, end);
	}
	return n;
}

static void expand(struct bl_buf *ret, const char *text, const struct bl_sql *sql, bool bells)
{
	/* The parameter is there even where there are no doorbells. */
	const char *bell = bells ? "IS_USED_LOCK(?)" : "IF(? = '', 0, 0)";

	for (const char *at; (at = strchr(text, '@')) != NULL;) {
		bool is_bell = at[1] == 'B';

		bl_buf_add(ret, text, (size_t)(at - text));
		bl_buf_adds(ret, is_bell ? bell : sql->table);
		text = at + (is_bell ? strlen("@BELL") : strlen("@T"));
	}
	bl_buf_adds(ret, text);
}

static void qualify(char ret[BL_TABLE_MAX], const char *database, const char *prefix,
                    const char *name)
{
	size_t len = 0;

	ret[len++] = '`';
	for (; *database && len < BL_TABLE_MAX / 2 + 256; database++) {
		if (*database == '`')
			ret[len++] = '`';
		ret[len++] = *database;
	}
	snprintf(ret + len, BL_TABLE_MAX - len, "`.`%s%s`", prefix, name);
}

int bl_sql_make(struct bl_sql *ret, const char *prefix, const char *database, bool mariadb,
                bool bells, struct bl_err *err)
{
	struct bl_sql sql = {.mariadb = mariadb};
	struct bl_buf buf;

	snprintf(sql.table, sizeof(sql.table), "`%sbiz_lock`", prefix);
	snprintf(sql.run_table, sizeof(sql.run_table), "`%sbiz_run`", prefix);
	qualify(sql.lock_table, database, prefix, "biz_lock");
	qualify(sql.row_table, database, prefix, "biz_row_lock");
	for (size_t i = 0; i < BL_STMT_COUNT; i++) {
		buf = (struct bl_buf)BL_BUF_INIT(SQL_MAX);
		expand(&buf, templates[i].text, &sql, bells);
		if (buf.failed) {
			bl_buf_free(&buf);
			bl_sql_free(&sql);
			return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
		}
		sql.text[i] = buf.data;
	}
	*ret = sql;
	return BIZLOCK_OK;
}

void bl_sql_free(struct bl_sql *sql)
{
	for (size_t i = 0; i < BL_STMT_COUNT; i++) {
		free(sql->text[i]);
		sql->text[i] = NULL;
	}
}

/* MariaDB takes fractions of a second. MySQL rounds them, but can end a SELECT after a number of
 * milliseconds. The hint is a comment to MariaDB. */
void bl_sql_wait_bell(const struct bl_sql *sql, struct bl_buf *ret, const char *bell, int64_t ms)
{
	if (sql->mariadb)
		bl_buf_addf(ret, "SELECT GET_LOCK('%s', %" PRId64 ".%03d)", bell, ms / 1000,
		            (int)(ms % 1000));
	else
		bl_buf_addf(ret,
		            "SELECT /*+ MAX_EXECUTION_TIME(%" PRId64 ") */ GET_LOCK('%s', %" PRId64
		            ")",
		            ms, bell, ms / 1000 + 1);
}

/* All connections in SLEEP() on MariaDB share one mutex. With several of them, a KILL QUERY is
 * stuck for 2 s now and then. So only one connection is in SLEEP(), and all others wait for a named
 * lock that it has. MySQL does not have this fault, and its GET_LOCK knows no fractions of a
 * second.
 *
 * A session that keeps the named lock has it for its next sleep: its sleep is over when it gets the
 * lock. A session that does not keep it goes on to SLEEP(), so a quarter of the time is left for
 * that. */
void bl_sql_sleep(const struct bl_sql *sql, struct bl_buf *ret, int64_t ms, bool keeps)
{
	char s[32];

	snprintf(s, sizeof(s), "%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000));
	if (sql->mariadb && !keeps)
		bl_buf_addf(ret,
		            "IF(GET_LOCK('" BL_SLEEP_LOCK "',0),SLEEP(%s),IF((@bizlock_slept:="
		            "GET_LOCK('" BL_SLEEP_LOCK "',0.75*%s))=1,SLEEP(0.25*%s),"
		            "@bizlock_slept))",
		            s, s, s);
	else if (sql->mariadb)
		bl_buf_addf(ret,
		            "IF(IS_USED_LOCK('" BL_SLEEP_LOCK "') <=> CONNECTION_ID(),SLEEP(%s),"
		            "0*GET_LOCK('" BL_SLEEP_LOCK "',%s))",
		            s, s);
	else
		bl_buf_addf(ret, "SLEEP(%s)", s);
}

#define AT_A_BELL "STATE = 'User lock' AND INFO LIKE 'SELECT%%GET_LOCK(''bizlock:%%'"

/* The bell stands between the first two quotes of bl_sql_wait_bell()'s text. MySQL knows no finer
 * time than seconds there. */
void bl_sql_waiters(const struct bl_sql *sql, struct bl_buf *ret, const char *schema,
                    const char *others)
{
	const char *ms = sql->mariadb ? "FLOOR(TIME_MS)" : "TIME * 1000";

	bl_buf_addf(ret,
	            "SELECT ID, USER, HOST, %s, IF(" AT_A_BELL
	            ", SUBSTRING_INDEX(SUBSTRING_INDEX(INFO, '''', 2), '''', -1), '') AS at_bell "
	            "FROM %s.processlist WHERE " AT_A_BELL " OR ID IN (%s0) "
	            "ORDER BY at_bell = '', %s DESC, ID",
	            ms, schema, others, ms);
}

void bl_sql_name(struct bl_buf *ret, const char *name, size_t len)
{
	bl_buf_adds(ret, "`");
	for (size_t i = 0; i < len; i++)
		bl_buf_add(ret, name[i] == '`' ? "``" : name + i, name[i] == '`' ? 2 : 1);
	bl_buf_adds(ret, "`");
}

void bl_sql_literal(struct bl_buf *ret, const char *charset, const char *text, size_t len)
{
	bl_buf_adds(ret, charset);
	bl_buf_adds(ret, " x'");
	bl_buf_add_hex(ret, text, len);
	bl_buf_adds(ret, "'");
}
