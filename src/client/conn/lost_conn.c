#include "client/conn/lost_conn.h"

#include <inttypes.h>
#include <string.h>

#include "store/session/kill.h"

static size_t places(const struct bl_pool *p)
{
	return (size_t)p->size * p->failover->n;
}

/* A place has room for one lost connection at each host; those at this host were ended before. */
void bl_lost_conn_note(const struct bl_pool *p, struct bl_conn *conn)
{
	const struct bl_session *s = &conn->session;
	unsigned i = 0;

	if (!conn->used)
		return;
	while (i + 1 < p->failover->n && conn->lost[i].mark.name[0])
		i++;
	conn->lost[i].mark = s->mark;
	conn->lost[i].host = s->host;
	memcpy(conn->lost[i].server, s->server, sizeof(s->server));
}

/* Two hosts may be two ways to one server. */
static bool leads_to(const struct bl_session *s, const struct bl_lost_conn *lost)
{
	return s->host == lost->host || (s->server[0] && strcmp(s->server, lost->server) == 0);
}

int bl_lost_conns_end(struct bl_pool *p, struct bl_conn *conn, struct bl_err *err)
{
	for (size_t i = 0; i < places(p); i++) {
		struct bl_lost_conn *lost = &p->lost[i];
		struct bl_mark mark = lost->mark;
		int rc;

		if (!mark.name[0] || !leads_to(&conn->session, lost))
			continue;
		pthread_mutex_unlock(p->mu);
		rc = bl_kill_marked(&conn->session, &mark, err);
		pthread_mutex_lock(p->mu);
		BL_TRACE(p->trace, NULL, NULL, "KILL %" PRIu64 ", a connection that was lost: %s",
		         mark.id, rc == BIZLOCK_OK ? "it has ended" : err->msg);
		if (rc != BIZLOCK_OK)
			return rc;
		if (strcmp(lost->mark.name, mark.name) == 0)
			lost->mark.name[0] = '\0';
	}
	conn->used = true;
	return BIZLOCK_OK;
}

bool bl_lost_conns_remain(const struct bl_pool *p)
{
	for (size_t i = 0; i < places(p); i++)
		if (p->lost[i].mark.name[0])
			return true;
	return false;
}
