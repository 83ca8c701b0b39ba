/* One connection of the pool: from when on it stalls, how long it may be idle, and what it tells of
 * its host. */
#include "client/conn/pool.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A lent connection stalls after STALL_NS and twice the time it took last, because a server may be
 * slow. The second part has a limit, because the last time may have been a stall itself. */
#define STALL_NS (50 * BL_NS_PER_MS)
#define STALL_SLOW_NS (500 * BL_NS_PER_MS)

bl_time bl_conn_stalls(const struct bl_conn *c)
{
	return c->lent_at + STALL_NS + bl_earlier(2 * c->took, STALL_SLOW_NS);
}

/* Half of what the server allows: a machine that is busy may be late by the other half. */
bl_time bl_conn_idle_max(const struct bl_conn *c)
{
	return c->session.idle_max == BL_NEVER ? BL_NEVER : c->session.idle_max / 2;
}

bl_time bl_conn_stale_at(const struct bl_conn *c)
{
	bl_time max = bl_conn_idle_max(c);

	return max == BL_NEVER ? BL_NEVER : c->lent_at + c->took + max;
}

void bl_conn_begin(struct bl_pool *p, struct bl_conn *c)
{
	c->id = ++p->last_id;
	c->connected_at = bl_now();
	c->socket = bl_socket_of(bl_connector_fd(c->session.mysql));
	bl_worker_by(p->watch, c->connected_at + p->answer);
	bl_worker_by(p->janitor, c->connected_at); /* to see how long it may be idle */
}

void bl_pool_adopt(struct bl_pool *p, struct bl_session *s)
{
	struct bl_conn *c = &p->conns[0];

	c->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (c->wake_fd < 0)
		return; /* the caller closes it */
	c->session = *s;
	c->session.sql = p->sql;
	memset(s, 0, sizeof(*s));
	c->lent_at = bl_now();
	bl_conn_begin(p, c);
}

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

void bl_conn_wake(struct bl_conn *c)
{
	int fd = c->wake_fd;
	uint64_t one = 1;

	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		return; /* full: it is readable already */
}

void bl_conn_quiet(struct bl_conn *c)
{
	uint64_t ignored;

	if (read(c->wake_fd, &ignored, sizeof(ignored)) < 0)
		return; /* it was not readable */
}
