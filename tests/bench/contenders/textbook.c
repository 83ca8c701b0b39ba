/* The recipe with which most locks on a table begin: a surrogate key and a unique one; INSERT, and
 * on a duplicate an UPDATE that re-enters or takes over; for the release an UPDATE of the count, a
 * SELECT and a DELETE. It is done with care: after errors of the deadlock family it tries again,
 * and waiters poll at growing, random intervals. */
#define _GNU_SOURCE 1
#include <mysqld_error.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "contender.h"
#include "mysql.h"
#include "patience.h"

#define TABLE                                                                                      \
	"CREATE TABLE textbook (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,"           \
	" biz_id VARCHAR(128) NOT NULL, biz_type VARCHAR(64) NOT NULL,"                            \
	" owner VARCHAR(191) NOT NULL, reentrant INT UNSIGNED NOT NULL,"                           \
	" timeout DATETIME(6) NOT NULL, UNIQUE KEY (biz_id, biz_type)) ENGINE = InnoDB"

#define WHERE " WHERE biz_id = '%s' AND biz_type = 'bench'"
#define LEASE "UTC_TIMESTAMP(6) + INTERVAL 30 SECOND"
#define INSERT                                                                                     \
	"INSERT INTO textbook (biz_id, biz_type, owner, reentrant, timeout)"                       \
	" VALUES ('%s', 'bench', '%s', 1, " LEASE ")"
#define TAKE                                                                                       \
	"UPDATE textbook SET reentrant = IF(owner = '%s', reentrant + 1, 1), owner = '%s',"        \
	" timeout = " LEASE WHERE " AND (owner = '%s' OR timeout < UTC_TIMESTAMP(6))"
#define LEAVE "UPDATE textbook SET reentrant = reentrant - 1" WHERE " AND owner = '%s'"
#define LOOK "SELECT reentrant FROM textbook" WHERE " AND owner = '%s'"
#define DELETE "DELETE FROM textbook" WHERE " AND owner = '%s'"

#define PAUSE_MIN_US 10000u /* between two looks: doubled up to the longest */
#define PAUSE_MAX_US 100000u

struct lane {
	MYSQL *db;
	const char *key;
	char owner[64];
	unsigned random;
};

static void set_up(void)
{
	bench_mysql_set_up();
	db_run(bench_world.admin, TABLE);
}

static void *open_lane(const char *key)
{
	static atomic_uint lanes;
	struct lane *lane = malloc(sizeof(*lane));

	if (!lane)
		die("out of memory");
	*lane = (struct lane){.db = bench_mysql_open(false), .key = key};
	lane->random = (unsigned)getpid() * 64 + atomic_fetch_add(&lanes, 1);
	snprintf(lane->owner, sizeof(lane->owner), "%u@textbook", lane->random);
	return lane;
}

static void close_lane(void *arg)
{
	struct lane *lane = arg;

	mysql_close(lane->db);
	free(lane);
}

/* At least half of the pause, and random, so that threads that collided do not meet again. */
static void pause_about(struct lane *lane, unsigned us)
{
	usleep(us / 2 + (unsigned)rand_r(&lane->random) % (us / 2));
}

/* Repeats the statement until it ends neither in a deadlock nor in a lock wait. False: a
 * duplicate. */
__attribute__((format(printf, 2, 3))) static bool endure(struct lane *lane, const char *fmt, ...)
{
	unsigned error;

	for (;;) {
		va_list args;

		va_start(args, fmt);
		error = bench_mysql_vsend(lane->db, fmt, args);
		va_end(args);
		if (error != ER_LOCK_DEADLOCK && error != ER_LOCK_WAIT_TIMEOUT)
			break;
		pause_about(lane, 1000);
	}
	if (error && error != ER_DUP_ENTRY)
		die("textbook: %s", mysql_error(lane->db));
	return !error;
}

static bool take(struct lane *lane)
{
	const char *owner = lane->owner;

	return endure(lane, INSERT, lane->key, owner) ||
	       (endure(lane, TAKE, owner, owner, lane->key, owner) &&
	        mysql_affected_rows(lane->db) == 1);
}

static void acquire(void *arg)
{
	struct lane *lane = arg;

	for (unsigned us = PAUSE_MIN_US; !take(lane); us *= us < PAUSE_MAX_US ? 2 : 1)
		pause_about(lane, us < PAUSE_MAX_US ? us : PAUSE_MAX_US);
}

static long number(MYSQL *db)
{
	MYSQL_RES *rows = mysql_store_result(db);
	MYSQL_ROW row = rows ? mysql_fetch_row(rows) : NULL;
	long n = row && row[0] ? strtol(row[0], NULL, 10) : -1;

	mysql_free_result(rows);
	return n;
}

static void release(void *arg)
{
	struct lane *lane = arg;

	endure(lane, LEAVE, lane->key, lane->owner);
	endure(lane, LOOK, lane->key, lane->owner);
	if (number(lane->db) != 0)
		die("textbook: not mine");
	endure(lane, DELETE, lane->key, lane->owner);
}

const struct contender contender_textbook = {
        .name = "textbook",
        .wakes = "polls",
        .set_up = set_up,
        .tear_down = bench_mysql_tear_down,
        .begin = contender_idle_begin,
        .end = contender_idle,
        .open = open_lane,
        .acquire = acquire,
        .release = release,
        .close = close_lane,
        .requests = bench_mysql_requests,
};
