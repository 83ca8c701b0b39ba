/* GET_LOCK and RELEASE_LOCK alone: in the server's memory, ended by the connection. */
#define _GNU_SOURCE 1
#include <stdlib.h>
#include <string.h>

#include "contender.h"
#include "mysql.h"
#include "patience.h"

struct lane {
	MYSQL *db;
	const char *key;
};

static void *open_lane(const char *key)
{
	struct lane *lane = malloc(sizeof(*lane));

	if (!lane)
		die("out of memory");
	*lane = (struct lane){bench_mysql_open(false), key};
	return lane;
}

static void close_lane(void *arg)
{
	struct lane *lane = arg;

	mysql_close(lane->db);
	free(lane);
}

/* A SELECT of one function, which must say 1. */
static void must(struct lane *lane, const char *call)
{
	MYSQL_RES *rows = NULL;
	MYSQL_ROW row;

	if (bench_mysql_send(lane->db, call, bench_world.schema, lane->key) == 0)
		rows = mysql_store_result(lane->db);
	row = rows ? mysql_fetch_row(rows) : NULL;
	if (!row || !row[0] || strcmp(row[0], "1") != 0)
		die("get_lock: %s", mysql_error(lane->db));
	mysql_free_result(rows);
}

static void acquire(void *arg)
{
	must(arg, "SELECT GET_LOCK('%s.%s', 60)");
}

static void release(void *arg)
{
	must(arg, "SELECT RELEASE_LOCK('%s.%s')");
}

const struct contender contender_get_lock = {
        .name = "get_lock",
        .wakes = "by the server",
        .set_up = bench_mysql_set_up,
        .tear_down = bench_mysql_tear_down,
        .begin = contender_idle_begin,
        .end = contender_idle,
        .open = open_lane,
        .acquire = acquire,
        .release = release,
        .close = close_lane,
        .requests = bench_mysql_requests,
};
