/* A client with one connection loses it while its request to acquire is still on the way. It loses
 * the next connection, too, while it cleans up after the first. */
#define _GNU_SOURCE 1
#include "cr_behind.h"
#include "cr_test.h"

TestSuite(ghosts, .init = world_begin, .fini = world_end, .timeout = 240);

/* The second loss comes at the answer to the handshake, at the settings, at the mark, or at the
 * statement that ends the first connection. */
#define SECOND_LOSS_AT(n)                                                                          \
	Test(ghosts, none_is_forgotten_when_packet_##n##_is_late_too)                              \
	{                                                                                          \
		take_comes_late(&world.at, n);                                                     \
	}

SECOND_LOSS_AT(1)
SECOND_LOSS_AT(2)
SECOND_LOSS_AT(3)
SECOND_LOSS_AT(4)
SECOND_LOSS_AT(5)

/* The acquire that was answered UNKNOWN is still running when its client begins to clean up: its
 * row is locked, and cannot be read yet. Here a foreign transaction stands for it. */
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
	/* The DELETE that cleans up waits for the row, a second at a time. */
	steadily(locks_there(&world) == 0, 3000);
	db_run(tx, "COMMIT");
	eventually(!row_of(&world, KEY("k")).there);
	expect(OK, b, acquire_as(b, "k", "task-1"));
	mysql_close(tx);
	proxy_stop(p);
}
