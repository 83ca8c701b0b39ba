#include "store/table/routines.h"

#include <stdio.h>
#include <string.h>

#include "store/table/grants.h"
#include "store/table/migrations.h"
#include "store/table/schema.h"

static const struct {
	const char *name; /* without the prefix */
	bool for_users;   /* else only other routines call it */
} procedures[] = {
        {"biz_lock_try", true},     {"biz_lock_wait", true},    {"biz_lock_renew", true},
        {"biz_lock_release", true}, {"biz_lock_unring", false}, {"biz_lock_args", false},
        {"biz_lock_nap", false},    {"biz_lock_wake", false},
};

#define COUNT (sizeof(procedures) / sizeof(procedures[0]))
#define VIEW "biz_locks"

static int run(struct bl_session *s, struct bl_err *err)
{
	struct bl_rows *none;

	return bl_session_query_text(s, 0, &none, err);
}

/* ---- making ------------------------------------------------------------------------------ */

/* In the file a line of two slashes ends each statement, and lines with DELIMITER tell clients so:
 * statements have semicolons inside. */
#define END "\n//\n"
#define WORD "DELIMITER "

static const char *skip_delimiter(const char *text)
{
	const char *at = strstr(text, WORD);
	const char *end = at ? strchr(at, '\n') : NULL;

	return end ? end + 1 : text;
}

int bl_routines_make(struct bl_session *s, const char *prefix, struct bl_err *err)
{
	const char *at = skip_delimiter(bl_routines_sql), *end;
	int rc = BIZLOCK_OK;

	for (; rc == BIZLOCK_OK && (end = strstr(at, END)) != NULL; at = end + strlen(END)) {
		bl_buf_reset(&s->text);
		bl_schema_prefix(at, (size_t)(end - at), prefix, &s->text);
		rc = run(s, err);
	}
	return rc == BIZLOCK_OK ? rc : bl_err_wrap(err, "apply routines.sql");
}

int bl_routines_drop(struct bl_session *s, const char *prefix, struct bl_err *err)
{
	int rc = BIZLOCK_OK;

	for (size_t i = 0; rc == BIZLOCK_OK && i < COUNT; i++) {
		bl_buf_reset(&s->text);
		bl_buf_addf(&s->text, "DROP PROCEDURE IF EXISTS `%s%s`", prefix,
		            procedures[i].name);
		rc = run(s, err);
	}
	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text, "DROP VIEW IF EXISTS `%s" VIEW "`", prefix);
	if (rc == BIZLOCK_OK)
		rc = run(s, err);
	return rc == BIZLOCK_OK ? rc : bl_err_wrap(err, "drop the routines");
}

/* ---- privileges --------------------------------------------------------------------------- */

static void add_grant(struct bl_buf *ret, const char *what, const struct bl_config *config,
                      const char *name, const char *account)
{
	bl_buf_addf(ret, "GRANT %s ", what);
	bl_sql_name(ret, config->database, strlen(config->database));
	bl_buf_addf(ret, ".`%s%s` TO ", config->table_prefix, name);
	bl_grants_account(ret, account);
	bl_buf_adds(ret, ";\n");
}

void bl_routines_grant(struct bl_buf *ret, const struct bl_config *config, const char *account)
{
	for (size_t i = 0; i < COUNT; i++)
		if (procedures[i].for_users)
			add_grant(ret, "EXECUTE ON PROCEDURE", config, procedures[i].name, account);
	add_grant(ret, "SELECT ON", config, VIEW, account);
}

/* ---- looking ------------------------------------------------------------------------------ */

unsigned bl_routines_count(void)
{
	return COUNT;
}

/* The comment of a routine has its number, as it stands in the file. */
static bool is_ours(const char *comment)
{
	char text[128];

	snprintf(text, sizeof(text), "COMMENT '%s'", comment ? comment : "");
	return strstr(bl_routines_sql, text) != NULL;
}

int bl_routines_look(struct bl_session *s, const char *prefix, struct bl_routines *ret,
                     struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc;

	*ret = (struct bl_routines){.there = 0};
	bl_buf_reset(&s->text);
	bl_buf_adds(&s->text, "SELECT ROUTINE_COMMENT, DEFINER FROM information_schema.ROUTINES "
	                      "WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME IN (''");
	for (size_t i = 0; i < COUNT; i++)
		bl_buf_addf(&s->text, ", '%s%s'", prefix, procedures[i].name);
	bl_buf_adds(&s->text, ")");
	rc = bl_session_query_text(s, 2, &rows, err);
	if (rc != BIZLOCK_OK)
		return rc;
	while ((row = bl_rows_next(rows)) != NULL) {
		ret->there++;
		ret->old += !is_ours(row[0]);
		snprintf(ret->definer, sizeof(ret->definer), "%s", row[1] ? row[1] : "");
	}
	bl_rows_free(rows);
	return rc;
}
