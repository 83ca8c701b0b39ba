/* The limit of what batches can save: one connection sends bizlock's rows, 32 by an INSERT in a
 * transaction and the same 32 by a DELETE in another one, and nothing else: no doorbells, no looks,
 * no fences read, no check of who deletes what. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "contender.h"
#include "mysql.h"
#include "patience.h"

#define NOW "UTC_TIMESTAMP(6)"

enum { KEYS = 32, TEXT_MAX = 64 * 1024 };

struct lane {
	MYSQL *db;
	struct bl_buf insert, delete;
};

/* Owners as long as a thread's, literals as bizlock writes them. */
static void write_texts(struct lane *lane, const char *key)
{
	bl_buf_adds(&lane->insert,
	            "START TRANSACTION;INSERT INTO biz_lock (biz_id, biz_type, owner,"
	            " reentrant, timeout, bell, note, gmt_create, gmt_modified) VALUES ");
	bl_buf_adds(&lane->delete,
	            "START TRANSACTION;DELETE FROM biz_lock WHERE (biz_id, biz_type, slot) IN (");
	for (unsigned i = 0; i < KEYS; i++) {
		const char *comma = i ? "," : "";

		bl_buf_addf(&lane->insert,
		            "%s('%s-%02u','bench','%u@1981.1390ecc9f03debef@limit',1," NOW
		            " + INTERVAL 30000000 MICROSECOND,CONNECTION_ID(),''," NOW "," NOW ")",
		            comma, key, i, 2000 + i);
		bl_buf_addf(&lane->delete, "%s('%s-%02u','bench',0)", comma, key, i);
	}
	bl_buf_adds(&lane->insert, ";COMMIT");
	bl_buf_adds(&lane->delete, ");COMMIT");
	if (lane->insert.failed || lane->delete.failed)
		die("out of memory");
}

static void *open_lane(const char *key)
{
	struct lane *lane = malloc(sizeof(*lane));

	if (!lane)
		die("out of memory");
	*lane = (struct lane){bench_mysql_open(true), BL_BUF_INIT(TEXT_MAX), BL_BUF_INIT(TEXT_MAX)};
	write_texts(lane, key);
	return lane;
}

static void close_lane(void *arg)
{
	struct lane *lane = arg;

	mysql_close(lane->db);
	bl_buf_free(&lane->insert);
	bl_buf_free(&lane->delete);
	free(lane);
}

/* Three statements, of which the second changes all the rows. */
static void send_text(struct lane *lane, const struct bl_buf *text)
{
	my_ulonglong changed = 0;
	int more = mysql_real_query(lane->db, text->data, text->len);

	while (more == 0) {
		changed += mysql_affected_rows(lane->db);
		more = mysql_next_result(lane->db);
	}
	if (more > 0 || changed != KEYS)
		die("limit: %llu rows: %s", (unsigned long long)changed, mysql_error(lane->db));
}

static void acquire(void *arg)
{
	struct lane *lane = arg;

	send_text(lane, &lane->insert);
}

static void release(void *arg)
{
	struct lane *lane = arg;

	send_text(lane, &lane->delete);
}

const struct contender contender_limit = {
        .name = "limit",
        .keys = KEYS,
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
