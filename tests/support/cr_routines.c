#define _GNU_SOURCE 1
#include "cr_routines.h"

#include <stdarg.h>
#include <stdio.h>

void routines_begin(void)
{
	world_begin_empty();
	world_migrate_routines(&world);
}

MYSQL *caller(void)
{
	return db_open(&world.at, world.schema);
}

void expect_refused(MYSQL *db, const char *sqlstate, const char *word, const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	cr_assert_gt(vasprintf(&text, fmt, args), 0);
	va_end(args);
	cr_assert(!db_try(db, "%s", text), "%s", text);
	cr_assert_str_eq(mysql_sqlstate(db), sqlstate, "%s: %s", text, mysql_error(db));
	cr_assert(strstr(mysql_error(db), word), "\"%s\" not in: %s", word, mysql_error(db));
	free(text);
}
