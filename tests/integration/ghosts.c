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
	expect(OK, b, acquire(b, "k", WAIT_MS, 600000, NULL));
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
