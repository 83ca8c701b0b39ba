#include "client/conn/host.h"

void bl_conn_note_host(const struct bl_pool *p, const struct bl_conn *c)
{
	const struct bl_session *s = &c->session;

	if (c->id && !s->gone)
		bl_failover_heard(p->failover, s);
	else if (s->away || s->silent)
		bl_failover_note(p->failover, s);
}

void bl_conn_leave_if_useless(const struct bl_pool *p, struct bl_conn *c)
{
	struct bl_failover *f = p->failover;
	bool useless;

	if (!c->id)
		return;
	useless = bl_failover_noted_since(f, &c->session, c->lent_at);
	if (c->bells == 0)
		useless |= (bl_passed(bl_conn_stale_at(c)) && !p->reserve) ||
		           bl_failover_prefers_another(f, &c->session, c->connected_at);
	if (useless)
		bl_session_leave(&c->session);
}
