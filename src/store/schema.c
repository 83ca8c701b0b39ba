#include "store/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "store/errclass.h"
#include "store/migrations.h"

#define ADVICE "apply the files of sql/ to this database, or call bizlock_migrate()"

static unsigned newest_known(void)
{
	return bl_migrations[bl_migration_count - 1].version;
}

/* 0: none applied. */
static int read_version(struct bl_session *s, const char *prefix, unsigned *ret, struct bl_err *err)
{
	char query[128];
	MYSQL_RES *rows;
	MYSQL_ROW row;
	int rc;

	snprintf(query, sizeof(query), "SELECT MAX(version) FROM `%sbiz_lock_schema`", prefix);
	rc = bl_session_query(s, query, &rows, err);
	if (rc != BIZLOCK_OK && bl_classify(err->native) == BL_CLASS_MISSING) {
		*ret = 0;
		return BIZLOCK_OK;
	}
	if (rc != BIZLOCK_OK)
		return bl_err_wrap(err, "read the schema's version");
	row = mysql_fetch_row(rows);
	*ret = row && row[0] ? (unsigned)strtoul(row[0], NULL, 10) : 0;
	mysql_free_result(rows);
	return BIZLOCK_OK;
}

static int check_version(struct bl_session *s, const char *prefix, struct bl_err *err)
{
	unsigned version = 0;
	int rc = read_version(s, prefix, &version, err);

	if (rc != BIZLOCK_OK)
		return rc;
	if (version == 0)
		return bl_err_set(err, BIZLOCK_SCHEMA,
		                  "no bizlock tables here (table_prefix \"%s\"): " ADVICE, prefix);
	if (version < newest_known())
		return bl_err_set(err, BIZLOCK_SCHEMA,
		                  "the tables are of version %u, this library needs %u: " ADVICE,
		                  version, newest_known());
	if (version > newest_known())
		return bl_err_set(err, BIZLOCK_SCHEMA,
		                  "the tables are of version %u, this library knows %u at most: "
		                  "upgrade bizlock",
		                  version, newest_known());
	return BIZLOCK_OK;
}

/* Only a table that row locks and transactions work on can hold locks. */
static int check_engines(struct bl_session *s, const char *prefix, struct bl_err *err)
{
	char query[384];
	MYSQL_RES *rows;
	MYSQL_ROW row;
	int rc, tables = 0;

	snprintf(query, sizeof(query),
	         "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = "
	         "DATABASE() AND TABLE_NAME IN ('%sbiz_lock', '%sbiz_row_lock')",
	         prefix, prefix);
	rc = bl_session_query(s, query, &rows, err);
	if (rc != BIZLOCK_OK)
		return bl_err_wrap(err, "read the tables' engines");
	while (rc == BIZLOCK_OK && (row = mysql_fetch_row(rows)) != NULL) {
		const char *engine = row[1] ? row[1] : "none";

		tables++;
		if (strcasecmp(engine, "InnoDB") != 0)
			rc = bl_err_set(err, BIZLOCK_SCHEMA,
			                "table %s has the engine %s: ALTER TABLE %s ENGINE=InnoDB",
			                row[0], engine, row[0]);
	}
	mysql_free_result(rows);
	if (rc == BIZLOCK_OK && tables != 2)
		rc = bl_err_set(err, BIZLOCK_SCHEMA,
		                "a table is missing, or this user may not see it: " ADVICE);
	return rc;
}

int bl_schema_check(struct bl_session *s, const char *prefix, struct bl_err *err)
{
	int rc = check_version(s, prefix, err);

	return rc == BIZLOCK_OK ? check_engines(s, prefix, err) : rc;
}

/* Table names stand in backquotes in the files, column names do not begin like
 * them: that is all there is to putting the prefix in. */
static void add_prefixed(struct bl_buf *ret, const char *text, const char *prefix)
{
	static const char *const names[] = {"`biz_lock", "`biz_row_lock"};

	while (*text) {
		size_t i = 0;

		while (i < 2 && strncmp(text, names[i], strlen(names[i])) != 0)
			i++;
		if (i < 2)
			bl_buf_addf(ret, "`%s", prefix);
		else
			bl_buf_add(ret, text, 1);
		text++;
	}
}

static int apply(struct bl_session *s, const struct bl_migration *m, const char *prefix,
                 struct bl_err *err)
{
	struct bl_buf text = BL_BUF_INIT(1u << 20);
	int rc;

	add_prefixed(&text, m->text, prefix);
	if (text.failed)
		rc = bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	else
		rc = bl_session_run(s, text.data, text.len, NULL, err);
	bl_buf_free(&text);
	return rc == BIZLOCK_OK ? rc : bl_err_wrap(err, "apply %s", m->name);
}

/* A table that is missing although its version says otherwise was dropped by
 * hand; the files leave alone what is there, so all of them are applied again. */
int bl_schema_migrate(struct bl_session *s, const char *prefix, struct bl_err *err)
{
	unsigned version = 0;
	int rc = read_version(s, prefix, &version, err);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_schema_check(s, prefix, err);
	if (rc != BIZLOCK_SCHEMA || version > newest_known())
		return rc;
	if (version == newest_known())
		version = 0;
	rc = BIZLOCK_OK;
	for (size_t i = 0; rc == BIZLOCK_OK && i < bl_migration_count; i++)
		if (bl_migrations[i].version > version)
			rc = apply(s, &bl_migrations[i], prefix, err);
	return rc == BIZLOCK_OK ? bl_schema_check(s, prefix, err) : rc;
}
