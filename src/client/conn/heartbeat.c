#include "client/conn/heartbeat.h"

#include <string.h>

static bl_time answer_ns(const struct bl_pool *p)
{
	return bl_config_answer_ms(p->failover->config) * BL_NS_PER_MS;
}

bl_time bl_heartbeat_at(const struct bl_pool *p)
{
	if (p->at_bells == 0 || p->failover->n < 2)
		return BL_NEVER;
	return p->beat_at + answer_ns(p) / 2;
}

/* On any connection: most often all are of one host. */
static void ask_a_host(struct bl_pool *p)
{
	static const char statement[] = "DO 0";
	struct bl_patience patience = {.end = 0};
	struct bl_conn *conn;
	struct bl_err ignored;
	int rc;

	if (bl_pool_take(p, patience, &conn, &ignored) != BIZLOCK_OK)
		return;
	pthread_mutex_unlock(p->mu);
	rc = bl_session_run(&conn->session, statement, strlen(statement), NULL, &ignored);
	pthread_mutex_lock(p->mu);
	if (rc == BIZLOCK_OK)
		bl_failover_heard(p->failover, &conn->session);
	bl_pool_put(p, conn);
}

void bl_heartbeat_send(struct bl_pool *p)
{
	bl_time since;

	p->beat_at = bl_now();
	ask_a_host(p);
	since = bl_now() - answer_ns(p);
	for (unsigned i = 0; i < p->size; i++) {
		struct bl_conn *c = &p->conns[i];

		if (c->at_bell && c->lent_at < since &&
		    !bl_failover_heard_since(p->failover, &c->session, since))
			bl_conn_wake(c);
	}
}
