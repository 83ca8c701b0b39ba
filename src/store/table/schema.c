#include "store/table/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/session/errclass.h"
#include "store/table/tables.h"

#define TRIES 20 /* after the first */

int bl_err_missing(struct bl_err *err, int rc)
{
	unsigned native = err->native;

	if (rc != BIZLOCK_DB || bl_classify(native) != BL_CLASS_MISSING)
		return rc;
	rc = bl_err_set(err, BIZLOCK_SCHEMA, "%s; " BL_SCHEMA_ADVICE, err->msg);
	err->native = native;
	return rc;
}

unsigned bl_schema_newest(void)
{
	return bl_migrations[bl_migration_count - 1].version;
}

/* *ret NULL: the table with the list is missing. */
static int query_applied(struct bl_session *s, const char *prefix, const char *columns,
                         struct bl_rows **ret, struct bl_err *err)
{
	char query[256];
	int rc;

	snprintf(query, sizeof(query), "SELECT %s FROM `%sbiz_lock_schema`", columns, prefix);
	*ret = NULL;
	rc = bl_session_query(s, query, 2, ret, err);
	if (rc != BIZLOCK_OK && bl_classify(err->native) == BL_CLASS_MISSING)
		return BIZLOCK_OK;
	return rc == BIZLOCK_OK ? rc : bl_err_wrap(err, "read which migrations were applied");
}

#define VERSION_COLUMNS "MAX(version), MAX(needs_client)"

static struct bl_version read_version(MYSQL_ROW row)
{
	return (struct bl_version){.version = row ? bl_rows_u32(row[0]) : 0,
	                           .needs_client = row ? bl_rows_u32(row[1]) : 0};
}

int bl_schema_version(struct bl_session *s, const char *prefix, struct bl_version *ret,
                      struct bl_err *err)
{
	struct bl_rows *rows;
	int rc = query_applied(s, prefix, VERSION_COLUMNS, &rows, err);

	if (rc != BIZLOCK_OK)
		return rc;
	*ret = read_version(rows ? bl_rows_next(rows) : NULL);
	bl_rows_free(rows);
	return rc;
}

static int judge_version(struct bl_version at, const char *prefix, struct bl_err *err)
{
	if (at.version == 0)
		return bl_err_set(err, BIZLOCK_SCHEMA,
		                  "no bizlock tables here (table_prefix \"%s\"): " BL_SCHEMA_ADVICE,
		                  prefix);
	if (at.needs_client > bl_schema_newest())
		return bl_err_set(
		        err, BIZLOCK_SCHEMA,
		        "the tables, of version %u, need a library that knows version %u, "
		        "and this one knows %u at most: upgrade bizlock",
		        at.version, at.needs_client, bl_schema_newest());
	return BIZLOCK_OK;
}

struct checking {
	const char *prefix;
	unsigned read; /* answers that fit their questions */
	struct bl_version at;
	bool there[BL_NEEDS];
	enum bl_fact_of of;
	struct bl_err flaw; /* the worst one */
};

static void check_fact(void *arg, const struct bl_fact *fact)
{
	struct checking *c = arg;

	c->there[fact->table] = true;
	if (!fact->remedy[0] || fact->of == BL_FACT_INDEX || !bl_needs[fact->table].for_locks ||
	    (c->flaw.code != BIZLOCK_OK && c->of <= fact->of))
		return;
	c->of = fact->of;
	bl_err_set(&c->flaw, BIZLOCK_SCHEMA, "table %s: %s", fact->text, fact->remedy);
}

/* Without the primary key, or with a collation that does not compare bytes, two owners would have
 * one lock. Without InnoDB nothing is locked, and without a counter all fences are 0. */
static int judge_tables(const struct checking *c, struct bl_err *err)
{
	if (!c->there[BL_TABLE_LOCK] || !c->there[BL_TABLE_ROW_LOCK])
		return bl_err_set(
		        err, BIZLOCK_SCHEMA,
		        "a table is missing, or this user may not see it: " BL_SCHEMA_ADVICE);
	if (c->flaw.code != BIZLOCK_OK)
		*err = c->flaw;
	return c->flaw.code;
}

static void read_check(void *arg, unsigned statement, struct bl_rows *rows)
{
	struct checking *c = arg;

	if (!rows || rows->columns != (statement == 0 ? 2u : (unsigned)BL_TABLES_COLUMNS))
		return;
	c->read++;
	if (statement == 0)
		c->at = read_version(bl_rows_next(rows));
	else
		bl_tables_judge(rows, c->prefix, check_fact, c);
}

/* In one packet: a program may live for one lock only. */
static int ask_schema(struct bl_session *s, struct checking *c, struct bl_err *err)
{
	int rc;

	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text, "SELECT " VERSION_COLUMNS " FROM `%sbiz_lock_schema`;", c->prefix);
	bl_tables_ask(&s->text, c->prefix);
	rc = bl_session_each(s, 2, read_check, c, err);
	if (rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_MISSING) {
		bl_err_clear(err);
		return BIZLOCK_OK;
	}
	if (rc == BIZLOCK_OK && c->read != 2)
		rc = bl_session_refuse(s, err, "not the columns that were asked for");
	return rc == BIZLOCK_OK ? rc : bl_err_wrap(err, "read what the tables are like");
}

int bl_schema_check(struct bl_session *s, const char *prefix, struct bl_err *err)
{
	struct checking c = {.prefix = prefix};
	int rc;

	bl_err_clear(&c.flaw);
	rc = ask_schema(s, &c, err);
	if (rc == BIZLOCK_OK)
		rc = judge_version(c.at, prefix, err);
	return rc == BIZLOCK_OK ? judge_tables(&c, err) : rc;
}

/* Puts the prefix in by text alone: in the files table names stand in backquotes, and no column
 * name begins like one. */
void bl_schema_prefix(const char *text, size_t len, const char *prefix, struct bl_buf *ret)
{
	static const char *const names[] = {"`biz_lock", "`biz_row_lock", "`biz_run"};
	const size_t count = sizeof(names) / sizeof(names[0]);

	for (const char *end = text + len; text < end; text++) {
		size_t i = 0;

		while (i < count && strncmp(text, names[i], strlen(names[i])) != 0)
			i++;
		if (i < count)
			bl_buf_addf(ret, "`%s", prefix);
		else
			bl_buf_add(ret, text, 1);
	}
}

void bl_schema_text(const struct bl_migration *m, const char *prefix, struct bl_buf *ret)
{
	bl_schema_prefix(m->text, strlen(m->text), prefix, ret);
}

static int apply(struct bl_session *s, const struct bl_migration *m, const char *prefix,
                 struct bl_err *err)
{
	int rc;

	bl_buf_reset(&s->text);
	bl_schema_text(m, prefix, &s->text);
	rc = bl_session_run_text(s, NULL, err);
	return rc == BIZLOCK_OK ? rc : bl_err_wrap(err, "apply %s", m->name);
}

/* Asks for the table itself: information_schema does not show a table on which this user has no
 * privilege, and a program that migrates at its start would fail then. */
static int ask_for_runs(struct bl_session *s, const char *prefix, bool *ret_missing,
                        struct bl_err *err)
{
	int rc;

	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text, "SELECT 1 FROM `%sbiz_run` LIMIT 0", prefix);
	rc = bl_session_run_text(s, NULL, err);
	*ret_missing = rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_MISSING;
	return *ret_missing || (rc == BIZLOCK_DB && bl_no_table(err)) ? BIZLOCK_OK : rc;
}

/* *ret: all migrations after this version have to be applied. A table that is missing although its
 * version says otherwise was dropped by hand. The files do not change tables that are there, so all
 * files are applied again. */
static int find_start(struct bl_session *s, const char *prefix, unsigned *ret, struct bl_err *err)
{
	struct bl_version at = {0, 0};
	int rc = bl_schema_version(s, prefix, &at, err);
	bool missing;

	if (rc != BIZLOCK_OK)
		return rc;
	*ret = at.version;
	rc = bl_schema_check(s, prefix, err);
	missing = rc == BIZLOCK_SCHEMA && at.needs_client <= bl_schema_newest();
	if (rc == BIZLOCK_OK && at.version >= bl_schema_newest())
		rc = ask_for_runs(s, prefix, &missing, err);
	if (!missing)
		return rc;
	*ret = 0;
	return BIZLOCK_OK;
}

static int migrate(struct bl_session *s, const char *prefix, struct bl_err *err)
{
	unsigned start = 0;
	int rc = find_start(s, prefix, &start, err);

	if (rc != BIZLOCK_OK || start >= bl_schema_newest())
		return rc;
	for (size_t i = 0; rc == BIZLOCK_OK && i < bl_migration_count; i++)
		if (bl_migrations[i].version > start)
			rc = apply(s, &bl_migrations[i], prefix, err);
	return rc == BIZLOCK_OK ? bl_schema_check(s, prefix, err) : rc;
}

/* Clients that migrate the same database at once meet in the data dictionary, and MySQL ends some
 * of them as deadlocks. The files may be applied again; each time one of the clients gets further.
 */
int bl_schema_migrate(struct bl_session *s, const char *prefix, struct bl_err *err)
{
	int rc = migrate(s, prefix, err);

	for (int again = 0;
	     rc == BIZLOCK_DB && again < TRIES && bl_classify(err->native) == BL_CLASS_RETRY;
	     again++) {
		bl_err_clear(err);
		rc = migrate(s, prefix, err);
	}
	return rc;
}

static void note_applied(const char *version, const char *at, struct bl_applied *ret)
{
	unsigned long number = strtoul(version, NULL, 10);

	for (size_t i = 0; i < bl_migration_count; i++)
		if (bl_migrations[i].version == number)
			snprintf(ret[i].at, sizeof(ret[i].at), "%s", at);
}

static int read_applied(struct bl_session *s, const char *prefix, struct bl_applied *ret,
                        struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc = query_applied(s, prefix, "version, applied_at", &rows, err);

	if (rc != BIZLOCK_OK || !rows)
		return rc;
	while ((row = bl_rows_next(rows)) != NULL)
		note_applied(row[0] ? row[0] : "", row[1] ? row[1] : "", ret);
	bl_rows_free(rows);
	return rc;
}

int bl_schema_status(struct bl_session *s, const char *prefix, struct bl_applied *ret,
                     struct bl_err *err)
{
	unsigned start = 0;
	int rc;

	memset(ret, 0, bl_migration_count * sizeof(*ret));
	rc = read_applied(s, prefix, ret, err);
	if (rc == BIZLOCK_OK)
		rc = find_start(s, prefix, &start, err);
	for (size_t i = 0; rc == BIZLOCK_OK && i < bl_migration_count; i++)
		ret[i].pending = bl_migrations[i].version > start;
	return rc;
}
