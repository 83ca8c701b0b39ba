#define _GNU_SOURCE 1
#include "mysql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"

struct world bench_world;

void bench_mysql_set_up(void)
{
	struct server at = server_from_env();

	world_make(&bench_world, &at);
	world_migrate(&bench_world);
}

void bench_mysql_tear_down(void)
{
	world_drop(&bench_world);
}

unsigned bench_mysql_port(void)
{
	return bench_world.at.port;
}

/* It counts each statement of a packet, each run of a prepared one, and each KILL; not the
 * preparing, nor pings. */
long long bench_mysql_requests(void)
{
	char *status = db_text(bench_world.admin, "SHOW GLOBAL STATUS LIKE 'Questions'");
	char *value = strchr(status, '|');
	long long n = value ? strtoll(value + 1, NULL, 10) : -1;

	free(status);
	return n;
}

MYSQL *bench_mysql_open(bool read_committed)
{
	MYSQL *db = db_open(&bench_world.at, bench_world.schema);

	if (read_committed)
		db_run(db, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
	return db;
}

unsigned bench_mysql_vsend(MYSQL *db, const char *fmt, va_list args)
{
	char text[2048];
	int length = vsnprintf(text, sizeof(text), fmt, args);

	if (length < 0 || (size_t)length >= sizeof(text))
		die("a statement is too long");
	return mysql_real_query(db, text, (unsigned long)length) == 0 ? 0 : mysql_errno(db);
}

unsigned bench_mysql_send(MYSQL *db, const char *fmt, ...)
{
	va_list args;
	unsigned error;

	va_start(args, fmt);
	error = bench_mysql_vsend(db, fmt, args);
	va_end(args);
	return error;
}
