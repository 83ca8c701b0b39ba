#include "client/conn/host.h"

void bl_conn_note_host(const struct bl_pool *p, const struct bl_conn *c)
{
	bl_time answer = bl_config_answer_ms(p->failover->config) * BL_NS_PER_MS;

	if (c->session.away || (!c->session.left && c->took >= answer))
		bl_failover_note(p->failover, &c->session);
}

void bl_conn_leave_if_useless(const struct bl_pool *p, struct bl_conn *c)
{
	struct bl_failover *f = p->failover;
	bool useless;

	if (!c->id)
		return;
	useless = bl_failover_noted_since(f, &c->session, c->lent_at);
	if (c->bells == 0)
		useless |= bl_passed(bl_conn_stale_at(c)) ||
		           bl_failover_prefers_another(f, &c->session, c->connected_at);
	if (useless)
		bl_session_leave(&c->session);
}
