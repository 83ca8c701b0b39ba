/* The bare floor: bizlock's INSERT and DELETE as text, on a connection for each lane, and nothing
 * else. No library that sends these statements alone can be faster. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>

#include "contender.h"
#include "mysql.h"
#include "patience.h"

#define NOW "UTC_TIMESTAMP(6)"
#define TAKEN_OVER(column) column " = IF(timeout <= " NOW ", VALUES(" column "), " column "), "
#define INSERT                                                                                     \
	"INSERT INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout, note, gmt_create,"     \
	" gmt_modified) VALUES ('%s', 'bench', '1@1.0@floor', 1, " NOW                             \
	" + INTERVAL 30000000 MICROSECOND, '', " NOW ", " NOW ") ON DUPLICATE KEY UPDATE "         \
	"fence = IF(timeout <= " NOW ", LAST_INSERT_ID(VALUES(fence)), fence + 0 * "               \
	"LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, " NOW ", timeout))), " TAKEN_OVER("owner")      \
	        TAKEN_OVER("reentrant") TAKEN_OVER("note") TAKEN_OVER("gmt_create")                \
	                TAKEN_OVER("gmt_modified") "timeout = IF(timeout <= " NOW                  \
	                                           ", VALUES(timeout), timeout)"
#define DELETE                                                                                     \
	"DELETE FROM biz_lock WHERE biz_id = '%s' AND biz_type = 'bench' AND slot = 0"             \
	" AND owner = '1@1.0@floor' AND fence = %llu"

struct lane {
	MYSQL *db;
	const char *key;
};

static void *open_lane(const char *key)
{
	struct lane *lane = malloc(sizeof(*lane));

	if (!lane)
		die("out of memory");
	*lane = (struct lane){bench_mysql_open(true), key};
	return lane;
}

static void close_lane(void *arg)
{
	struct lane *lane = arg;

	mysql_close(lane->db);
	free(lane);
}

static void acquire(void *arg)
{
	struct lane *lane = arg;

	if (bench_mysql_send(lane->db, INSERT, lane->key) != 0)
		die("floor: %s", mysql_error(lane->db));
}

static void release(void *arg)
{
	struct lane *lane = arg;
	unsigned long long fence = mysql_insert_id(lane->db);

	if (bench_mysql_send(lane->db, DELETE, lane->key, fence) != 0)
		die("floor: %s", mysql_error(lane->db));
	if (mysql_affected_rows(lane->db) != 1)
		die("floor: not deleted");
}

const struct contender contender_floor = {
        .name = "floor",
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
