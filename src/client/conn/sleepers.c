/* Connections that are lent for long: to sleep at a doorbell, or to watch. */
#include "client/conn/heartbeat.h"
#include "client/conn/pool_parts.h"

unsigned bl_pool_watchers_max(const struct bl_pool *p)
{
	return p->size / 4;
}

/* As many connections again as watch are for hot keys. */
bool bl_pool_has_room_at_bells(const struct bl_pool *p, bool hot)
{
	return p->at_bells + (hot ? 1 : 2) * bl_pool_watchers_max(p) + 1 < p->size;
}

bool bl_pool_is_reserve(const struct bl_pool *p, const struct bl_conn *c)
{
	bool last = p->reserve && c->id;

	for (unsigned i = 0; last && i < p->size; i++) {
		const struct bl_conn *other = &p->conns[i];

		last = other == c || !other->id || other->at_bell;
	}
	return last;
}

/* One without doorbells. In place of the reserve one that has yet to be made; NULL: there is none.
 */
static struct bl_conn *pick_to_sleep(struct bl_pool *p)
{
	struct bl_conn *c = bl_pool_pick_idle(p, BL_BELLS_MAX, false);

	if (!c || !bl_pool_is_reserve(p, c))
		return c;
	for (unsigned i = 0; i < p->size; i++)
		if (!p->conns[i].lent && !p->conns[i].id)
			return &p->conns[i];
	return NULL;
}

/* For a sleep that can last. *count: of such connections. */
static int take_to_sleep(struct bl_pool *p, struct bl_conn *c, unsigned *count,
                         struct bl_conn **ret, struct bl_err *err)
{
	int rc;

	if (!c)
		return BIZLOCK_OK;
	(*count)++;
	c->at_bell = true; /* before the mutex is free: or two would each believe the other awake */
	rc = bl_pool_lend(p, c, ret, err);
	if (rc != BIZLOCK_OK) {
		(*count)--;
		return p->reserve ? BIZLOCK_OK : rc;
	}
	bl_worker_by(p->janitor, bl_heartbeat_at(p));
	return rc;
}

int bl_pool_take_for_bell(struct bl_pool *p, bool hot, struct bl_conn **ret, struct bl_err *err)
{
	*ret = NULL;
	if (!bl_pool_has_room_at_bells(p, hot))
		return BIZLOCK_OK;
	return take_to_sleep(p, pick_to_sleep(p), &p->at_bells, ret, err);
}

/* Threads that need a connection for a statement would always be there before it. */
int bl_pool_take_for_watch(struct bl_pool *p, struct bl_conn **ret, struct bl_err *err)
{
	struct bl_conn *c;

	if (p->kept && bl_pool_is_reserve(p, p->kept))
		bl_pool_keep_none(p);
	c = p->kept ? p->kept : pick_to_sleep(p);
	*ret = NULL;
	p->kept = NULL;
	p->keep = !c;
	return take_to_sleep(p, c, &p->watchers, ret, err);
}

void bl_pool_keep_none(struct bl_pool *p)
{
	struct bl_conn *c = p->kept;

	p->keep = false;
	p->kept = NULL;
	if (c)
		bl_pool_put(p, c);
}

void bl_pool_bell_begins(struct bl_pool *p, struct bl_conn *c)
{
	c->at_bell = !bl_pool_is_reserve(p, c);
	p->at_bells++;
}

void bl_pool_bell_over(struct bl_pool *p)
{
	p->at_bells--;
}

void bl_pool_watch_over(struct bl_pool *p)
{
	p->watchers--;
}
