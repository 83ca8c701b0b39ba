/* Cutting connections off: at the end of a client, and where a statement does not end. Runs in the
 * loss watch, which no server can keep busy. */
#include "client/conn/pool.h"

void bl_pool_cut(struct bl_pool *p)
{
	for (unsigned i = 0; i < p->size; i++)
		if (p->conns[i].lent)
			bl_socket_shut(p->conns[i].socket);
}

bl_time bl_pool_cut_late(struct bl_pool *p)
{
	bl_time next = BL_NEVER;

	for (unsigned i = 0; i < p->size; i++) {
		struct bl_conn *c = &p->conns[i];

		if (c->lent && c->socket.fd >= 0)
			next = bl_earlier(next, bl_session_cut_late(&c->session, c->socket));
	}
	return next;
}
