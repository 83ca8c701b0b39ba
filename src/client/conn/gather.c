#include "client/conn/gather.h"

/* They have a part of the time that their batch took, counted from its end, and no longer than
 * GATHER_NS. Nobody waits for more than GATHER_MOST: with more threads some are in line by now, and
 * the server is better kept busy. */
#define GATHER_PART 4
#define GATHER_NS (BL_NS_PER_MS / 5)
#define GATHER_MOST 16

struct bl_gathering {
	unsigned wanted; /* jobs in line */
	pthread_cond_t complete;
};

void bl_gather_expect(struct bl_conn *conn, unsigned n, bl_time began)
{
	bl_time now = bl_now();

	conn->expected = n < GATHER_MOST ? n : GATHER_MOST;
	conn->expected_until = now + bl_earlier((now - began) / GATHER_PART, GATHER_NS);
}

void bl_gather(struct bizlock *b, struct bl_conn *conn)
{
	struct bl_gathering g = {.wanted = conn->expected > 0 ? conn->expected - 1 : 0};

	conn->expected = 0;
	if (conn->jobs.count >= g.wanted || bl_passed(conn->expected_until) ||
	    bl_cond_init(&g.complete) != 0)
		return;
	conn->gathering = &g;
	while (conn->jobs.count < g.wanted && !bl_passed(conn->expected_until))
		bl_cond_wait_until(&g.complete, &b->mu, conn->expected_until);
	conn->gathering = NULL;
	pthread_cond_destroy(&g.complete);
}

void bl_gather_note(const struct bl_conn *conn)
{
	if (conn->gathering && conn->jobs.count >= conn->gathering->wanted)
		pthread_cond_signal(&conn->gathering->complete);
}
