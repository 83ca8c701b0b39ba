/* The doctor's checks of what an administrator has put around the tables: triggers, foreign keys,
 * system versioning, and filters that leave them out of the binary log. */
#include <mysqld_error.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "store/doctor/doctor_checks.h"

/* In the order of the query below. */
static const struct {
	const char *word;
	enum bizlock_level level;
	const char *before, *after; /* of the name, in the remedy */
} additions[] = {
        {"trigger", BIZLOCK_WARN, "DROP TRIGGER `",
         "`: each lock waits for what it does, and fails with it"},
        {"foreign key", BIZLOCK_BAD, "drop the foreign key `",
         "`: it refuses locks or releases, and waits for rows of others"},
        {"system versioning of", BIZLOCK_WARN, "ALTER TABLE `",
         "` DROP SYSTEM VERSIONING: each acquisition, renewal and release leaves a row for ever"},
};

static int note_addition(struct bl_doctor *d, struct bl_finding *f, MYSQL_ROW row,
                         struct bl_err *err)
{
	uint32_t kind = bl_rows_u32(row[0]);
	const char *name = row[1] ? row[1] : "", *table = row[2] ? row[2] : "";

	if (kind >= sizeof(additions) / sizeof(additions[0]))
		return bl_session_refuse(&d->session, err, "an addition that was not asked for");
	bl_buf_addf(&f->text, "%s%s %s", f->text.len > 0 ? ", " : "", additions[kind].word, name);
	if (strcmp(name, table) != 0)
		bl_buf_addf(&f->text, " of %s", table);
	bl_advise(f, additions[kind].level, "%s%s%s", additions[kind].before, name,
	          additions[kind].after);
	return BIZLOCK_OK;
}

int bl_check_additions(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	const char *prefix = d->config->table_prefix;
	struct bl_rows *rows;
	MYSQL_ROW row;
	char ours[256];
	int rc;

	snprintf(ours, sizeof(ours), "('%sbiz_lock', '%sbiz_row_lock', '%sbiz_run')", prefix,
	         prefix, prefix);
	rc = bl_doctor_query(
	        d, 3, &rows, err,
	        "SELECT 0, TRIGGER_NAME, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS "
	        "WHERE EVENT_OBJECT_SCHEMA = DATABASE() AND EVENT_OBJECT_TABLE IN %s "
	        "UNION ALL SELECT 1, CONSTRAINT_NAME, TABLE_NAME FROM "
	        "information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = DATABASE() "
	        "AND (TABLE_NAME IN %s OR REFERENCED_TABLE_NAME IN %s) "
	        "UNION ALL SELECT 2, TABLE_NAME, TABLE_NAME FROM information_schema.TABLES WHERE "
	        "TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'SYSTEM VERSIONED' AND TABLE_NAME IN "
	        "%s",
	        ours, ours, ours, ours);
	if (rc != BIZLOCK_OK)
		return rc;
	while (rc == BIZLOCK_OK && (row = bl_rows_next(rows)) != NULL)
		rc = note_addition(d, f, row, err);
	bl_rows_free(rows);
	if (f->text.len == 0)
		bl_buf_adds(&f->text, "no trigger, foreign key or system versioning that this user "
		                      "may see");
	return rc;
}

/* ---- the binary log -------------------------------------------------------------------- */

/* Does a list of names, "a,b,c", have this one? The case of letters may differ: the list is as
 * somebody has configured it. */
static bool has_name(const char *list, const char *name)
{
	size_t len = strlen(name);

	while (list[0]) {
		size_t part = strcspn(list, ",");

		if (part == len && strncasecmp(list, name, len) == 0)
			return true;
		list += part + (list[part] == ',');
	}
	return false;
}

static void judge_filters(struct bl_doctor *d, struct bl_finding *f, MYSQL_ROW row)
{
	const char *only = row[2] ? row[2] : "", *ignored = row[3] ? row[3] : "";
	const char *database = d->config->database;

	bl_buf_adds(&f->text, only[0] || ignored[0] ? "" : "none in the binary log");
	if (only[0])
		bl_buf_addf(&f->text, "binlog_do_db=%s", only);
	if (ignored[0])
		bl_buf_addf(&f->text, "%sbinlog_ignore_db=%s", only[0] ? ", " : "", ignored);
	if ((only[0] && !has_name(only, database)) || has_name(ignored, database))
		bl_advise(
		        f, BIZLOCK_WARN,
		        "let the binary log have the database %s: a replica that takes over, and a "
		        "restore to a moment, know nothing of the locks, and give them again",
		        database);
}

static const char *status_query(const struct bl_server *server)
{
	if (!server->mariadb && server->version >= 80200)
		return "SHOW BINARY LOG STATUS";
	return "SHOW MASTER STATUS";
}

int bl_check_filters(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc;

	if (!bl_variable_on(d, "log_bin")) {
		bl_buf_adds(&f->text, "no binary log");
		return BIZLOCK_OK;
	}
	rc = bl_doctor_query(d, d->server.mariadb ? 4 : 5, &rows, err, "%s",
	                     status_query(&d->server));
	if (rc == BIZLOCK_DB && err->native == ER_SPECIFIC_ACCESS_DENIED_ERROR) {
		bl_buf_adds(&f->text, "those of the binary log are not for this user to see");
		return BIZLOCK_OK;
	}
	if (rc != BIZLOCK_OK)
		return rc;
	row = bl_rows_next(rows);
	if (row)
		judge_filters(d, f, row);
	else
		bl_buf_adds(&f->text, "no binary log");
	bl_rows_free(rows);
	return rc;
}
