#include "client/ghosts.h"

#include <string.h>

void bl_ghosts_add(struct bl_conn *conn)
{
	if (conn->used)
		conn->ghost = conn->session.mark;
}

int bl_ghosts_end(struct bl_pool *p, struct bl_conn *conn, struct bl_err *err)
{
	for (unsigned i = 0; i < p->size; i++) {
		struct bl_mark *ghost = &p->conns[i].ghost, mark = *ghost;
		int rc;

		if (!mark.name[0])
			continue;
		pthread_mutex_unlock(p->mu);
		rc = bl_session_end_other(&conn->session, &mark, err);
		pthread_mutex_lock(p->mu);
		if (rc != BIZLOCK_OK)
			return rc;
		if (strcmp(ghost->name, mark.name) == 0)
			ghost->name[0] = '\0';
	}
	conn->used = true;
	return BIZLOCK_OK;
}
