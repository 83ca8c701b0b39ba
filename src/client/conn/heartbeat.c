#include "client/conn/heartbeat.h"

bl_time bl_heartbeat_at(const struct bl_pool *p)
{
	if (p->at_bells + p->watchers == 0 || p->failover->n < 2)
		return BL_NEVER;
	return p->beat_at + p->answer / 2;
}

/* Another connection to the sleeper's host: one that is idle, if there is any. NULL: none. */
static struct bl_conn *other_at_host(const struct bl_pool *p, const struct bl_conn *sleeper)
{
	struct bl_conn *found = NULL;

	for (unsigned i = 0; i < p->size; i++) {
		struct bl_conn *c = &p->conns[i];

		if (c->id && !c->at_bell && c->session.host == sleeper->session.host &&
		    (!found || !c->lent))
			found = c;
	}
	return found;
}

/* If the only other connection there is in use, its statement will tell. If there is none, a new
 * connection is made; if it leads to another host, the client uses that one by now, and the
 * sleeper's host is silent. */
static bool is_silent(struct bl_pool *p, const struct bl_conn *sleeper, bl_time since)
{
	struct bl_conn *other = other_at_host(p, sleeper);
	bool alone = !other;

	if (bl_failover_heard_since(p->failover, &sleeper->session, since))
		return false;
	if (alone || !other->lent)
		bl_pool_ask(p, other);
	return alone ? !bl_failover_heard_since(p->failover, &sleeper->session, since)
	             : bl_failover_silent_since(p->failover, &sleeper->session, sleeper->lent_at);
}

/* A connection without an id is still being made, for a doorbell: its session is another
 * thread's. */
static bool sleeps_since(const struct bl_conn *c, bl_time since)
{
	return c->id && c->at_bell && c->lent_at < since;
}

void bl_heartbeat_send(struct bl_pool *p)
{
	bl_time since = bl_now() - p->answer / 2;

	p->beat_at = bl_now();
	for (unsigned i = 0; i < p->size; i++) {
		struct bl_conn *c = &p->conns[i];

		if (sleeps_since(c, since) && is_silent(p, c, since) && sleeps_since(c, since))
			bl_conn_wake(c);
	}
}
