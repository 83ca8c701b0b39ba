/* The doctor's checks of the tables. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "store/doctor_checks.h"
#include "store/errclass.h"
#include "store/grants.h"
#include "store/schema.h"

/* select: its first column is TABLE_NAME. */
static int query(struct bl_doctor *d, unsigned columns, struct bl_rows **ret, struct bl_err *err,
                 const char *select, const char *tail)
{
	const char *prefix = d->config->table_prefix;

	return bl_doctor_query(d, columns, ret, err,
	                       "%s WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN "
	                       "('%sbiz_lock', '%sbiz_row_lock', '%sbiz_shared_lock', "
	                       "'%sbiz_lock_schema')%s",
	                       select, prefix, prefix, prefix, prefix, tail);
}

/* Its place in bl_needs[], whatever case the server keeps names in; -1: none of ours. */
static int table_of(const struct bl_doctor *d, const char *name)
{
	size_t len = strlen(d->config->table_prefix);

	for (int i = 0; name && i < BL_NEEDS; i++)
		if (strncasecmp(name, d->config->table_prefix, len) == 0 &&
		    strcasecmp(name + len, bl_needs[i].table) == 0)
			return i;
	return -1;
}

static bool has_locks(int table)
{
	return table >= 0 && table != BL_TABLE_SCHEMA;
}

static const char *comma(const struct bl_finding *f)
{
	return f->text.len > 0 ? ", " : "";
}

/* ---- tables ---------------------------------------------------------------------- */

static int find_tables(struct bl_doctor *d, bool there[BL_NEEDS], struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc = query(d, 1, &rows, err, "SELECT TABLE_NAME FROM information_schema.TABLES", "");

	if (rc != BIZLOCK_OK)
		return rc;
	while ((row = bl_rows_next(rows)) != NULL)
		if (table_of(d, row[0]) >= 0)
			there[table_of(d, row[0])] = true;
	bl_rows_free(rows);
	return rc;
}

/* Plain locks work with tables of version 1. */
int bl_check_tables(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	bool there[BL_NEEDS] = {false};
	unsigned version = 0, newest = bl_schema_newest();
	int rc = find_tables(d, there, err);

	if (rc == BIZLOCK_OK && there[BL_TABLE_SCHEMA])
		rc = bl_schema_version(&d->session, d->config->table_prefix, &version, err);
	if (rc != BIZLOCK_OK)
		return rc;
	for (size_t i = 0; i < BL_NEEDS; i++)
		if (!there[i] && !(i == BL_TABLE_SHARED_LOCK && version == 1))
			bl_buf_addf(&f->text, "%s%s%s", comma(f), d->config->table_prefix,
			            bl_needs[i].table);
	if (f->text.len > 0) {
		bl_buf_adds(&f->text, ": missing, or this user may not see it");
		bl_advise(f, BIZLOCK_BAD, BL_SCHEMA_ADVICE);
		return rc;
	}
	d->fit = version > 0 && version <= newest;
	bl_buf_addf(&f->text, "all there, of version %u; this library knows %u", version, newest);
	if (version > 0 && version < newest)
		bl_advise(f, BIZLOCK_WARN, "shared locks need it: " BL_SCHEMA_ADVICE);
	else if (version == 0)
		bl_advise(f, BIZLOCK_BAD, BL_SCHEMA_ADVICE);
	else if (version > newest)
		bl_advise(f, BIZLOCK_BAD, "upgrade bizlock");
	return rc;
}

/* ---- engine -------------------------------------------------------------------------- */

int bl_check_engine(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc = query(d, 2, &rows, err, "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES",
	               " ORDER BY TABLE_NAME");

	if (rc != BIZLOCK_OK)
		return rc;
	while ((row = bl_rows_next(rows)) != NULL) {
		const char *engine = row[1] ? row[1] : "none";
		int table = table_of(d, row[0]);

		if (!has_locks(table))
			continue;
		bl_buf_addf(&f->text, "%s%s: %s", comma(f), row[0], engine);
		if (strcasecmp(engine, "InnoDB") != 0)
			bl_advise(f, BIZLOCK_BAD, "ALTER TABLE `%s` ENGINE=InnoDB", row[0]);
	}
	bl_rows_free(rows);
	return rc;
}

/* ---- indexes ------------------------------------------------------------------------- */

static const char *const primary_keys[BL_NEEDS] = {
        [BL_TABLE_LOCK] = "biz_id,biz_type",
        [BL_TABLE_ROW_LOCK] = "biz_id,biz_type",
        [BL_TABLE_SHARED_LOCK] = "biz_id,biz_type,slot",
};

struct indexes {
	bool there[BL_NEEDS], right[BL_NEEDS];
};

/* row: table, index (NULL: it has none), columns, and whether it takes duplicates. */
static void judge_index(const struct bl_doctor *d, struct bl_finding *f, MYSQL_ROW row,
                        struct indexes *ret)
{
	const char *index = row[1] ? row[1] : "", *columns = row[2] ? row[2] : "";
	bool duplicates = row[3] && strcmp(row[3], "1") == 0;
	int table = table_of(d, row[0]);

	if (!has_locks(table))
		return;
	ret->there[table] = true;
	if (strcmp(index, "PRIMARY") == 0) {
		ret->right[table] = strcmp(columns, primary_keys[table]) == 0;
		bl_buf_addf(&f->text, "%s%s: PRIMARY KEY (%s)", comma(f), row[0], columns);
	} else if (index[0] &&
	           !(table != BL_TABLE_ROW_LOCK && duplicates && strcmp(columns, "fence") == 0)) {
		bl_buf_addf(&f->text, "%s%s: one more index, %s (%s)", comma(f), row[0], index,
		            columns);
		bl_advise(f, BIZLOCK_WARN, "drop it: with more indexes statements may deadlock");
	}
}

int bl_check_primary_key(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	struct indexes found = {{false}, {false}};
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc = query(d, 4, &rows, err,
	               "SELECT TABLE_NAME, INDEX_NAME, GROUP_CONCAT(CONCAT(COLUMN_NAME, "
	               "IFNULL(CONCAT('(', SUB_PART, ')'), '')) ORDER BY SEQ_IN_INDEX), "
	               "MAX(NON_UNIQUE) FROM information_schema.TABLES LEFT JOIN "
	               "information_schema.STATISTICS USING (TABLE_SCHEMA, TABLE_NAME)",
	               " GROUP BY TABLE_NAME, INDEX_NAME ORDER BY TABLE_NAME, INDEX_NAME");

	if (rc != BIZLOCK_OK)
		return rc;
	while ((row = bl_rows_next(rows)) != NULL)
		judge_index(d, f, row, &found);
	bl_rows_free(rows);
	for (int i = 0; i < BL_NEEDS; i++) {
		const char *prefix = d->config->table_prefix, *table = bl_needs[i].table;

		if (!found.there[i] || found.right[i])
			continue;
		bl_buf_addf(&f->text, "%s%s%s: not the PRIMARY KEY (%s)", comma(f), prefix, table,
		            primary_keys[i]);
		bl_advise(f, BIZLOCK_BAD,
		          "give `%s%s` the PRIMARY KEY (%s), whole columns in this order: it is "
		          "the lock",
		          prefix, table, primary_keys[i]);
	}
	return rc;
}

/* ---- columns --------------------------------------------------------------------------- */

static const char *right_collation(const struct bl_doctor *d, const char *column)
{
	if (strcasecmp(column, "owner") == 0)
		return "ascii_bin";
	return d->server.mariadb ? "utf8mb4_nopad_bin" : "utf8mb4_0900_bin";
}

static void judge_column(const struct bl_doctor *d, struct bl_finding *f, MYSQL_ROW row)
{
	const char *column = row[1] ? row[1] : "", *collation = row[2] ? row[2] : "none";
	const char *right = right_collation(d, column);

	if (strcasecmp(collation, right) == 0)
		return;
	bl_buf_addf(&f->text, "%s%s.%s: %s", comma(f), row[0], column, collation);
	bl_advise(f, BIZLOCK_BAD,
	          "ALTER TABLE `%s` MODIFY `%s` %s CHARACTER SET %.*s COLLATE %s NOT NULL", row[0],
	          column, row[3] ? row[3] : "", (int)strcspn(right, "_"), right, right);
}

/* Anything but bytes would make one lock of keys that differ. */
int bl_check_collation(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc = query(d, 4, &rows, err,
	               "SELECT TABLE_NAME, COLUMN_NAME, COLLATION_NAME, COLUMN_TYPE FROM "
	               "information_schema.COLUMNS",
	               " AND COLUMN_NAME IN ('biz_id', 'biz_type', 'owner') ORDER BY TABLE_NAME, "
	               "ORDINAL_POSITION");

	if (rc != BIZLOCK_OK)
		return rc;
	while ((row = bl_rows_next(rows)) != NULL)
		if (table_of(d, row[0]) >= 0)
			judge_column(d, f, row);
	if (f->text.len == 0 && rows->count > 0)
		bl_buf_addf(&f->text, "%s, byte for byte", right_collation(d, "biz_id"));
	bl_rows_free(rows);
	return rc;
}

/* Which servers keep the counter through a restart: a fence must never come twice. */
static bool counter_is_kept(const struct bl_server *server)
{
	return server->version >= (server->mariadb ? 100204u : 80000u);
}

static void judge_counter(struct bl_finding *f, MYSQL_ROW row)
{
	const char *type = row[1] ? row[1] : "", *extra = row[2] ? row[2] : "";

	bl_buf_addf(&f->text, "%s%s.fence %s %s", comma(f), row[0], type, extra);
	if (strncasecmp(type, "bigint", 6) != 0 || !strcasestr(type, "unsigned") ||
	    !strcasestr(extra, "auto_increment"))
		bl_advise(
		        f, BIZLOCK_BAD,
		        "ALTER TABLE `%s` MODIFY `fence` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT: "
		        "without it fences do not grow",
		        row[0]);
}

static void judge_server(const struct bl_doctor *d, struct bl_finding *f)
{
	long long mode = bl_variable_number(d, "innodb_autoinc_lock_mode");

	bl_buf_addf(&f->text, ", %s by this server; innodb_autoinc_lock_mode=%lld",
	            counter_is_kept(&d->server) ? "kept" : "not kept", mode);
	if (!counter_is_kept(&d->server))
		bl_advise(f, BIZLOCK_BAD,
		          "use " BL_SERVER_NEEDED ": after a restart fences may come again");
	if (mode == 0)
		bl_advise(f, BIZLOCK_WARN,
		          "start the server with innodb_autoinc_lock_mode=1 or 2: with 0 "
		          "acquisitions of all keys wait for each other");
}

int bl_check_auto_increment(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc = query(d, 3, &rows, err,
	               "SELECT TABLE_NAME, COLUMN_TYPE, EXTRA FROM information_schema.COLUMNS",
	               " AND COLUMN_NAME = 'fence' ORDER BY TABLE_NAME");

	if (rc != BIZLOCK_OK)
		return rc;
	while ((row = bl_rows_next(rows)) != NULL)
		if (has_locks(table_of(d, row[0])))
			judge_counter(f, row);
	if (f->text.len > 0)
		judge_server(d, f);
	bl_rows_free(rows);
	return rc;
}

/* ---- limits of shared locks ---------------------------------------------------------------- */

#define DIFFER                                                                                     \
	"SELECT biz_type, biz_id, MIN(at_most), MAX(at_most) FROM `%sbiz_shared_lock` WHERE slot " \
	"> 0 AND timeout > UTC_TIMESTAMP(6) GROUP BY biz_id, biz_type HAVING MIN(at_most) <> "     \
	"MAX(at_most) LIMIT 1"

/* Where shared locks are not used, their table may not be there. */
int bl_check_shared_limits(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc = bl_doctor_query(d, 4, &rows, err, DIFFER, d->config->table_prefix);

	if (rc != BIZLOCK_OK)
		return rc == BIZLOCK_DB && bl_no_table(err) ? BIZLOCK_OK : rc;
	row = bl_rows_next(rows);
	if (!row) {
		bl_buf_adds(&f->text, "each shared lock is held with one limit");
	} else {
		bl_buf_addf(&f->text, "%s/%s is held with limits from %s to %s",
		            row[0] ? row[0] : "", row[1] ? row[1] : "", row[2] ? row[2] : "",
		            row[3] ? row[3] : "");
		bl_advise(f, BIZLOCK_WARN,
		          "pass one limit wherever this lock is acquired: each call counts those "
		          "of all limits, and lets in as many as its own allows");
	}
	bl_rows_free(rows);
	return rc;
}
