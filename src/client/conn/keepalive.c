#include "client/conn/keepalive.h"

/* A connection that is in use, or has no doorbell now, may be idle with a doorbell soon: so it is
 * looked at again in time for that. */
static bl_time keepalive_at(const struct bl_pool *p, const struct bl_conn *c, bl_time now)
{
	bl_time max = bl_conn_idle_max(c);

	if (!c->lent && (c->bells > 0 || p->reserve))
		return bl_conn_stale_at(c);
	return max == BL_NEVER ? BL_NEVER : now + max;
}

struct bl_conn *bl_keepalive_next(const struct bl_pool *p, bl_time *ret_at)
{
	struct bl_conn *next = NULL;
	bl_time now = bl_now();

	*ret_at = BL_NEVER;
	for (unsigned i = 0; i < p->size; i++) {
		struct bl_conn *c = &p->conns[i];
		bl_time at = c->id ? keepalive_at(p, c, now) : BL_NEVER;

		if (at >= *ret_at)
			continue;
		*ret_at = at;
		next = c;
	}
	return next;
}
