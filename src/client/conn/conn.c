/* One connection of the pool: since when it does not move, how long it may be idle. */
#include "client/conn/pool.h"

#include <unistd.h>

/* Where the server is slow, a connection may take longer: twice as long as the last time. That
 * has a limit, because the last time may have been a stall itself. */
#define STALL_NS (50 * BL_NS_PER_MS)
#define STALL_SLOW_NS (500 * BL_NS_PER_MS)

bl_time bl_conn_stalls(const struct bl_conn *c)
{
	return c->lent_at + STALL_NS + bl_earlier(2 * c->took, STALL_SLOW_NS);
}

/* Half of what the server allows: a machine that is busy may be late by the other half. */
bl_time bl_conn_idle_max(const struct bl_conn *c)
{
	return c->session.idle_max == BL_NEVER ? BL_NEVER : c->session.idle_max / 2;
}

bl_time bl_conn_stale_at(const struct bl_conn *c)
{
	bl_time max = bl_conn_idle_max(c);

	return max == BL_NEVER ? BL_NEVER : c->lent_at + c->took + max;
}

void bl_conn_wake(struct bl_conn *c)
{
	int fd = c->wake_fd;
	uint64_t one = 1;

	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		return; /* full: it is readable already */
}

void bl_conn_quiet(struct bl_conn *c)
{
	uint64_t ignored;

	if (read(c->wake_fd, &ignored, sizeof(ignored)) < 0)
		return; /* it was not readable */
}
