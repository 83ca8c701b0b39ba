/* A client with one connection, which loses it with a take that is still on its way; and
 * the next one, too, while it cleans up behind the first. */
#define _GNU_SOURCE 1
#include "cr_test.h"

TestSuite(ghosts, .init = world_begin, .fini = world_end, .timeout = 120);

#define LATE_MS 5000 /* when the take arrives, after two timeouts of a second */
#define WAIT_MS 30000

/* The second loss is `again` packets after the first. */
static void take_comes_late(unsigned again)
{
	struct fault fault = {
	        .what = FAULT_DELAY, .side = FAULT_REQUESTS, .delay_ms = LATE_MS, .again = again};
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("max_connections", "1", "io_timeout_ms", "1000",
	                                       "connect_timeout_ms", "1000"));

	for (int i = 0; i < 3; i++)
		works(b);
	proxy_arm(p, &fault);
	expect(OK, b, acquire(b, "k", .wait_ms = WAIT_MS, .lease_ms = 600000));
	cr_assert_gt(proxy_fired(p), 0);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	eventually(!proxy_is_late(p));
	steadily(!row_of(&world, KEY("k")).there, 300);
	works(b);
	proxy_stop(p);
}

/* The answer to the handshake, the settings, the mark, and what ends the first one. */
#define SECOND_LOSS_AT(n)                                                                          \
	Test(ghosts, none_is_forgotten_when_packet_##n##_is_late_too)                              \
	{                                                                                          \
		take_comes_late(n);                                                                \
	}

SECOND_LOSS_AT(1)
SECOND_LOSS_AT(2)
SECOND_LOSS_AT(3)
SECOND_LOSS_AT(4)
SECOND_LOSS_AT(5)

/* The take is still at work when its client, which calls it UNKNOWN, begins to clean up: its row
 * cannot be seen yet, only that it is locked. Here somebody else's transaction has it. */
Test(ghosts, whose_row_cannot_be_seen_yet_leave_none_behind)
{
	struct fault fault = {.what = FAULT_CUT, .side = FAULT_REPLIES, .for_ever = true};
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	MYSQL *tx = db_open(&world.at, world.schema);

	works(b);
	proxy_arm(p, &fault);
	expect(UNKNOWN, b, acquire_as(b, "k", "task-1"));
	db_run(tx, "CREATE TEMPORARY TABLE late AS SELECT * FROM biz_lock WHERE %s",
	       row_where(KEY("k")));
	db_run(tx, "DELETE FROM biz_lock WHERE %s", row_where(KEY("k")));
	db_run(tx, "BEGIN");
	db_run(tx, "INSERT INTO biz_lock SELECT * FROM late");
	proxy_arm(p, NULL);
	/* The janitor's DELETE waits for the row, a second at a time. */
	steadily(db_number(world.admin, "SELECT COUNT(*) FROM biz_lock") == 0, 3000);
	db_run(tx, "COMMIT");
	eventually(!row_of(&world, KEY("k")).there);
	expect(OK, b, acquire_as(b, "k", "task-1"));
	mysql_close(tx);
	proxy_stop(p);
}
