#include "client/ghosts.h"

#include <string.h>

/* As many as there are connections. With still more, and none of them ended meanwhile, the
 * last one gives way. */
void bl_ghosts_add(struct bl_pool *p, const struct bl_mark *mark)
{
	unsigned i = 0;

	while (i + 1 < p->size && p->conns[i].ghost.name[0])
		i++;
	if (mark->name[0])
		p->conns[i].ghost = *mark;
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
	return BIZLOCK_OK;
}
