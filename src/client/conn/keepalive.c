#include "client/conn/keepalive.h"

#include <string.h>

/* Half of what the server allows: a machine that is busy may be late by the other half. */
static bl_time idle_max(const struct bl_conn *c)
{
	return c->session.idle_max == BL_NEVER ? BL_NEVER : c->session.idle_max / 2;
}

static bl_time stale_at(const struct bl_conn *c)
{
	bl_time max = idle_max(c);

	return max == BL_NEVER ? BL_NEVER : c->lent_at + c->took + max;
}

bool bl_conn_is_stale(const struct bl_conn *c)
{
	return bl_passed(stale_at(c));
}

/* One that is in use, or has no doorbell now, may be idle with a doorbell from now on: that
 * is soon enough seen. */
static bl_time keepalive_at(const struct bl_conn *c, bl_time now)
{
	bl_time max = idle_max(c);

	if (!c->lent && c->bells > 0)
		return stale_at(c);
	return max == BL_NEVER ? BL_NEVER : now + max;
}

struct bl_conn *bl_keepalive_next(const struct bl_pool *p, bl_time *ret_at)
{
	struct bl_conn *next = NULL;
	bl_time now = bl_now();

	*ret_at = BL_NEVER;
	for (unsigned i = 0; i < p->size; i++) {
		struct bl_conn *c = &p->conns[i];
		bl_time at = c->id ? keepalive_at(c, now) : BL_NEVER;

		if (at >= *ret_at)
			continue;
		*ret_at = at;
		next = c;
	}
	return next;
}

/* What becomes of it is the pool's to see: a connection that is gone takes its doorbells
 * along, and its end at the server is made sure of. */
void bl_keepalive_send(struct bl_pool *p, struct bl_conn *conn)
{
	static const char statement[] = "DO 0";
	struct bl_patience patience = {.end = 0};
	struct bl_err ignored;

	if (bl_pool_take_id(p, conn->id, patience, &conn, &ignored) != BIZLOCK_OK || !conn)
		return;
	pthread_mutex_unlock(p->mu);
	bl_session_run(&conn->session, statement, strlen(statement), NULL, &ignored);
	pthread_mutex_lock(p->mu);
	bl_pool_put(p, conn);
}
