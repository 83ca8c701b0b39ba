#include "client/conn/gather.h"

/* It waits for a part of the time that the last batch took, for no longer than GATHER_NS, and for
 * no more than GATHER_MOST: with more threads some are in line by now, and the server is better
 * kept busy. */
#define GATHER_PART 4
#define GATHER_NS (BL_NS_PER_MS / 5)
#define GATHER_MOST 16

struct bl_gathering {
	unsigned wanted; /* jobs in line */
	pthread_cond_t complete;
};

void bl_gather(struct bizlock *b, struct bl_conn *conn)
{
	unsigned last = conn->last_batch < GATHER_MOST ? conn->last_batch : GATHER_MOST;
	struct bl_gathering g = {.wanted = last > 0 ? last - 1 : 0};
	bl_time end = bl_now() + bl_earlier(conn->took / GATHER_PART, GATHER_NS);

	if (conn->jobs.count >= g.wanted || bl_cond_init(&g.complete) != 0)
		return;
	conn->gathering = &g;
	while (conn->jobs.count < g.wanted && !bl_passed(end))
		bl_cond_wait_until(&g.complete, &b->mu, end);
	conn->gathering = NULL;
	pthread_cond_destroy(&g.complete);
}

void bl_gather_note(const struct bl_conn *conn)
{
	if (conn->gathering && conn->jobs.count >= conn->gathering->wanted)
		pthread_cond_signal(&conn->gathering->complete);
}
