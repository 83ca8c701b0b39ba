#include "store/table/tables.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "store/table/schema.h"

/* One statement, because opening a client should not take longer than it must. Columns of this
 * schema have different collations on MySQL, which a UNION would refuse: hence the casts. */
#define OF_OURS                                                                                    \
	"WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ('%sbiz_lock', '%sbiz_row_lock', "      \
	"'%sbiz_run') "
/* clang-format off */
static const char question[] =
	"SELECT CAST(TABLE_NAME AS CHAR) AS name, 1 AS what, "
	"  0 /*M!100202 + 1 */ AS place, " /* a comment that MySQL skips */
	"  CAST(ENGINE AS CHAR), CAST(TABLE_TYPE AS CHAR), CAST(AUTO_INCREMENT AS CHAR) "
	"FROM information_schema.TABLES " OF_OURS
	"UNION ALL "
	"SELECT CAST(TABLE_NAME AS CHAR), 2, ORDINAL_POSITION, CAST(COLUMN_NAME AS CHAR), "
	"  CAST(COLUMN_TYPE AS CHAR), "
	"  CAST(IF(COLUMN_NAME = 'fence', EXTRA, COLLATION_NAME) AS CHAR) "
	"FROM information_schema.COLUMNS " OF_OURS
	"AND COLUMN_NAME IN ('biz_id', 'biz_type', 'slot', 'owner', 'fence') "
	"UNION ALL "
	"SELECT CAST(TABLE_NAME AS CHAR), 3, INDEX_NAME <> 'PRIMARY', CAST(INDEX_NAME AS CHAR), "
	"  CAST(GROUP_CONCAT(CONCAT(COLUMN_NAME, IFNULL(CONCAT('(', SUB_PART, ')'), '')) "
	"    ORDER BY SEQ_IN_INDEX) AS CHAR), "
	"  CAST(MAX(NON_UNIQUE) AS CHAR) "
	"FROM information_schema.STATISTICS " OF_OURS
	"GROUP BY TABLE_NAME, INDEX_NAME ORDER BY name, what, place, 4";
/* clang-format on */

enum { IS_TABLE = 1, IS_COLUMN, IS_INDEX };

struct looking {
	const char *prefix;
	bool mariadb;
	bl_fact_fn *fn;
	void *arg;
	struct bl_fact fact;           /* the one in hand */
	char name[64 + 1];             /* the table of that fact, "": none yet */
	bool view, key, counter, slot; /* of that table */
};

int bl_table_of(const char *prefix, const char *name)
{
	size_t len = strlen(prefix);

	for (int i = 0; i < BL_NEEDS; i++)
		if (strncasecmp(name, prefix, len) == 0 &&
		    strcasecmp(name + len, bl_needs[i].table) == 0)
			return i;
	return -1;
}

/* Begins the fact in hand: what it is of, and its text. */
static void begin(struct looking *l, enum bl_fact_of of, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static void begin(struct looking *l, enum bl_fact_of of, const char *fmt, ...)
{
	va_list args;

	l->fact.of = of;
	l->fact.remedy[0] = '\0';
	va_start(args, fmt);
	vsnprintf(l->fact.text, sizeof(l->fact.text), fmt, args);
	va_end(args);
}

/* Gives the fact in hand a remedy: it is not as it must be. */
static void mend(struct looking *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void mend(struct looking *l, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(l->fact.remedy, sizeof(l->fact.remedy), fmt, args);
	va_end(args);
}

static void tell(struct looking *l)
{
	l->fn(l->arg, &l->fact);
}

/* ---- engine ------------------------------------------------------------------------------ */

static void judge_engine(struct looking *l, const char *engine, const char *type)
{
	l->view = strcasecmp(type, "VIEW") == 0;
	begin(l, BL_FACT_ENGINE, "%s: %s", l->name, l->view ? "a view" : engine);
	if (l->view)
		mend(l,
		     "name the table that %s shows, by the options database and table_prefix, or "
		     "drop the view and rename the table to %s",
		     l->name, l->name);
	else if (strcasecmp(engine, "InnoDB") != 0)
		mend(l, "ALTER TABLE `%s` ENGINE=InnoDB", l->name);
	tell(l);
}

/* ---- columns ----------------------------------------------------------------------------- */

/* A collation that does not compare bytes would make one lock of keys that differ. */
static void judge_collation(struct looking *l, const char *column, const char *type,
                            const char *collation)
{
	const char *right = l->mariadb ? "utf8mb4_nopad_bin" : "utf8mb4_0900_bin";

	if (strcasecmp(column, "owner") == 0)
		right = "ascii_bin";
	begin(l, BL_FACT_COLLATION, "%s.%s: %s", l->name, column, collation);
	if (strcasecmp(collation, right) != 0)
		mend(l, "ALTER TABLE `%s` MODIFY `%s` %s CHARACTER SET %.*s COLLATE %s NOT NULL",
		     l->name, column, type, (int)strcspn(right, "_"), right, right);
	tell(l);
}

static void judge_counter(struct looking *l, const char *type, const char *extra)
{
	l->counter = true;
	begin(l, BL_FACT_COUNTER, "%s.fence %s %s", l->name, type, extra);
	if (strncasecmp(type, "bigint", 6) != 0 || !strcasestr(type, "unsigned") ||
	    !strcasestr(extra, "auto_increment"))
		mend(l,
		     "ALTER TABLE `%s` MODIFY `fence` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT: "
		     "without it fences do not grow",
		     l->name);
	else if (l->fact.counter >= BL_SQL_FENCES)
		mend(l,
		     "fences have to be less than %" PRIu64 ", and the next one is %" PRIu64
		     ": delete rows that have larger ones, and ALTER TABLE `%s` AUTO_INCREMENT=1",
		     (uint64_t)BL_SQL_FENCES, l->fact.counter, l->name);
	tell(l);
}

static void judge_column(struct looking *l, const char *column, const char *type, const char *more)
{
	if (strcasecmp(column, "slot") == 0)
		l->slot = true;
	else if (strcasecmp(column, "fence") != 0)
		judge_collation(l, column, type, *more ? more : "none");
	else if (l->fact.table == BL_TABLE_LOCK)
		judge_counter(l, type, more);
}

/* ---- indexes ----------------------------------------------------------------------------- */

static const char *key_of(enum bl_table table)
{
	return table == BL_TABLE_LOCK ? "biz_id,biz_type,slot" : "biz_id,biz_type";
}

static void judge_index(struct looking *l, const char *index, const char *columns, bool duplicates)
{
	if (strcmp(index, "PRIMARY") == 0 && strcmp(columns, key_of(l->fact.table)) == 0) {
		l->key = true;
		begin(l, BL_FACT_KEY, "%s: PRIMARY KEY (%s)", l->name, columns);
		tell(l);
	} else if (strcmp(index, "PRIMARY") != 0 &&
	           !(l->fact.table == BL_TABLE_LOCK && duplicates &&
	             strcmp(columns, "fence") == 0)) {
		begin(l, BL_FACT_INDEX, "%s: one more index, %s (%s)", l->name, index, columns);
		mend(l, "drop it: with more indexes statements may deadlock");
		tell(l);
	}
}

/* ---- what is not there --------------------------------------------------------------------- */

static void lack_column(struct looking *l, enum bl_fact_of of, const char *column)
{
	begin(l, of, "%s: no column %s", l->name, column);
	mend(l, "drop `%s`, and " BL_SCHEMA_ADVICE, l->name);
	tell(l);
}

static void end_table(struct looking *l)
{
	const char *key = key_of(l->fact.table);
	bool locks = l->fact.table == BL_TABLE_LOCK;

	if (!l->name[0] || l->view)
		return;
	if (locks && !l->slot) {
		lack_column(l, BL_FACT_KEY, "slot");
	} else if (!l->key) {
		begin(l, BL_FACT_KEY, "%s: not the PRIMARY KEY (%s)", l->name, key);
		mend(l,
		     "give `%s` the PRIMARY KEY (%s), whole columns in this order: it is the lock",
		     l->name, key);
		tell(l);
	}
	if (locks && !l->counter)
		lack_column(l, BL_FACT_COUNTER, "fence");
}

/* MySQL says nothing of a counter that has not counted yet. */
static uint64_t next_fence(const char *field)
{
	return *field ? strtoull(field, NULL, 10) : 1;
}

static void judge(struct looking *l, MYSQL_ROW row)
{
	const char *a = row[3] ? row[3] : "none", *b = row[4] ? row[4] : "",
	           *c = row[5] ? row[5] : "";
	long what = row[1] ? strtol(row[1], NULL, 10) : 0;
	int table = row[0] ? bl_table_of(l->prefix, row[0]) : -1;

	if (table < 0)
		return;
	if (what == IS_TABLE || strcmp(l->name, row[0]) != 0) {
		end_table(l);
		snprintf(l->name, sizeof(l->name), "%s", row[0]);
		l->fact.table = (enum bl_table)table;
		l->fact.counter = what == IS_TABLE ? next_fence(c) : 0;
		l->view = l->key = l->counter = l->slot = false;
	}
	if (what == IS_TABLE) {
		l->mariadb = row[2] && strcmp(row[2], "1") == 0;
		judge_engine(l, a, b);
	} else if (what == IS_COLUMN && !l->view)
		judge_column(l, a, b, c);
	else if (what == IS_INDEX && !l->view)
		judge_index(l, a, b, strcmp(c, "1") == 0);
}

void bl_tables_ask(struct bl_buf *to, const char *prefix)
{
	bl_buf_addf(to, question, prefix, prefix, prefix, prefix, prefix, prefix, prefix, prefix,
	            prefix);
}

void bl_tables_judge(struct bl_rows *rows, const char *prefix, bl_fact_fn *fn, void *arg)
{
	struct looking l = {.prefix = prefix, .fn = fn, .arg = arg};
	MYSQL_ROW row;

	while ((row = bl_rows_next(rows)) != NULL)
		judge(&l, row);
	end_table(&l);
}

int bl_tables_look(struct bl_session *s, const char *prefix, bl_fact_fn *fn, void *arg,
                   struct bl_err *err)
{
	struct bl_rows *rows;
	int rc;

	bl_buf_reset(&s->text);
	bl_tables_ask(&s->text, prefix);
	rc = bl_session_query_text(s, BL_TABLES_COLUMNS, &rows, err);
	if (rc != BIZLOCK_OK)
		return rc;
	bl_tables_judge(rows, prefix, fn, arg);
	bl_rows_free(rows);
	return rc;
}
