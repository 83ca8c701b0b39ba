/* Calls of the connector that do not end: the time limit of each call, and, for a session that no
 * client looks after, a thread that ends the connection of a late call. */
#include <stdlib.h>

#include "base/worker.h"
#include "store/session/session.h"

static bl_time patience(const struct bl_session *s)
{
	return BL_CALL_PATIENCE * (int64_t)s->io_ms * BL_NS_PER_MS;
}

void bl_session_begin(struct bl_session *s)
{
	bl_session_begin_rows(s, bl_now() + patience(s));
}

void bl_session_begin_rows(struct bl_session *s, bl_time until)
{
	s->asked_at = bl_now();
	atomic_store_explicit(&s->due, bl_earlier(until, s->answer_by), memory_order_relaxed);
}

void bl_session_end(struct bl_session *s)
{
	atomic_store_explicit(&s->due, BL_NEVER, memory_order_relaxed);
}

bl_time bl_session_cut_late(const struct bl_session *s, struct bl_socket socket)
{
	bl_time due = s->due, again = bl_now() + patience(s);

	if (!bl_passed(due))
		return bl_earlier(due, again);
	bl_socket_shut(socket);
	return again;
}

struct bl_guard {
	pthread_mutex_t mu;
	struct bl_worker worker;
	struct bl_session *session;
	struct bl_socket socket;
};

static void *guard_run(void *arg)
{
	struct bl_guard *g = arg;
	struct bl_worker *w = &g->worker;

	pthread_mutex_lock(&g->mu);
	while (!w->stop) {
		w->at = bl_session_cut_late(g->session, g->socket);
		bl_worker_sleep(w, &g->mu);
	}
	pthread_mutex_unlock(&g->mu);
	return NULL;
}

int bl_session_guard(struct bl_session *s, struct bl_err *err)
{
	struct bl_guard *g = calloc(1, sizeof(*g));

	if (!g)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	pthread_mutex_init(&g->mu, NULL);
	g->session = s;
	g->socket = bl_socket_of(bl_connector_fd(s->mysql));
	s->guard = g;
	return bl_worker_start(&g->worker, guard_run, g, err);
}

void bl_session_unguard(struct bl_session *s)
{
	if (!s->guard)
		return;
	bl_worker_stop(&s->guard->worker, &s->guard->mu);
	pthread_mutex_destroy(&s->guard->mu);
	free(s->guard);
	s->guard = NULL;
}
