#include "client/conn/lost_conn.h"

#include <string.h>

#include "store/kill.h"

void bl_lost_conn_note(struct bl_conn *conn)
{
	if (conn->used)
		conn->lost_mark = conn->session.mark;
}

int bl_lost_conns_end(struct bl_pool *p, struct bl_conn *conn, struct bl_err *err)
{
	for (unsigned i = 0; i < p->size; i++) {
		struct bl_mark *lost = &p->conns[i].lost_mark, mark = *lost;
		int rc;

		if (!mark.name[0])
			continue;
		pthread_mutex_unlock(p->mu);
		rc = bl_kill_marked(&conn->session, &mark, err);
		pthread_mutex_lock(p->mu);
		if (rc != BIZLOCK_OK)
			return rc;
		if (strcmp(lost->name, mark.name) == 0)
			lost->name[0] = '\0';
	}
	conn->used = true;
	return BIZLOCK_OK;
}
