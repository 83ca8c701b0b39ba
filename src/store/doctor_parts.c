#include "store/doctor_parts.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void bl_worse(struct bl_finding *f, enum bizlock_level level)
{
	if (f->level < level)
		f->level = level;
	if (f->remedy.len > 0)
		bl_buf_adds(&f->remedy, "; ");
}

void bl_advise(struct bl_finding *f, enum bizlock_level level, const char *fmt, ...)
{
	va_list args;

	bl_worse(f, level);
	va_start(args, fmt);
	bl_buf_addv(&f->remedy, fmt, args);
	va_end(args);
}

const char *bl_variable(const struct bl_doctor *d, const char *name)
{
	MYSQL_ROW row;

	bl_rows_rewind(d->variables);
	while ((row = bl_rows_next(d->variables)) != NULL)
		if (row[0] && strcasecmp(row[0], name) == 0)
			return row[1] ? row[1] : "";
	return "";
}

long long bl_variable_number(const struct bl_doctor *d, const char *name)
{
	return bl_rows_number(bl_variable(d, name));
}

bool bl_variable_on(const struct bl_doctor *d, const char *name)
{
	const char *value = bl_variable(d, name);

	return value[0] && strcasecmp(value, "OFF") != 0 && strcmp(value, "0") != 0;
}

int bl_doctor_query(struct bl_doctor *d, unsigned columns, struct bl_rows **ret, struct bl_err *err,
                    const char *fmt, ...)
{
	struct bl_buf *text = &d->session.text;
	va_list args;

	bl_buf_reset(text);
	va_start(args, fmt);
	bl_buf_addv(text, fmt, args);
	va_end(args);
	return bl_session_query_text(&d->session, columns, ret, err);
}
