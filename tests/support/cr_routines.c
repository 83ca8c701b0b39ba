#define _GNU_SOURCE 1
#include "cr_routines.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#define CALLERS_MAX 32 /* of one test */

static MYSQL *callers[CALLERS_MAX];
static atomic_uint caller_count;

void routines_begin(void)
{
	world_begin_empty();
	world_migrate_routines(&world);
}

void routines_end(void)
{
	for (unsigned i = 0; i < caller_count; i++)
		mysql_close(callers[i]);
	world_end();
}

MYSQL *caller(void)
{
	unsigned i = atomic_fetch_add(&caller_count, 1);

	if (i >= CALLERS_MAX)
		die("more callers than there is room for");
	callers[i] = db_open(&world.at, world.schema);
	return callers[i];
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
