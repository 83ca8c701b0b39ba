#include "client/conn/pool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/conn/heartbeat.h"
#include "client/conn/lost_conn.h"

struct bl_pool_waiter {
	struct bl_pool_waiter *next;
	uint64_t id; /* wants this connection; 0: any */
	bool first;  /* see struct bl_patience */
	pthread_cond_t served;
	struct bl_conn *got;
	bool gone; /* the wanted connection is no more */
};

int bl_pool_init(struct bl_pool *p, pthread_mutex_t *mu, struct bl_failover *failover,
                 const struct bl_sql *sql, struct bl_numbers *numbers, struct bl_err *err)
{
	unsigned size = failover->config.max_connections;

	*p = (struct bl_pool){.mu = mu, .failover = failover, .sql = sql, .numbers = numbers};
	p->trace = failover->trace;
	p->answer = bl_config_answer_ms(&failover->config) * BL_NS_PER_MS;
	p->last = &p->first;
	p->conns = calloc(size, sizeof(*p->conns));
	p->lost = calloc((size_t)size * failover->n, sizeof(*p->lost));
	if (!p->conns || !p->lost)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	p->size = size;
	for (unsigned i = 0; i < p->size; i++) {
		p->conns[i].lost = p->lost + (size_t)i * failover->n;
		p->conns[i].socket.fd = -1;
		p->conns[i].wake_fd = -1;
	}
	return BIZLOCK_OK;
}

void bl_pool_free(struct bl_pool *p, bool forked)
{
	for (unsigned i = 0; i < p->size; i++) {
		struct bl_conn *c = &p->conns[i];

		if (c->id && forked)
			bl_session_forget(&c->session);
		else if (c->id)
			bl_session_close(&c->session);
		if (c->wake_fd >= 0)
			close(c->wake_fd);
	}
	free(p->conns);
	free(p->lost);
	*p = (struct bl_pool){0};
}

/* ---- which one, and for whom --------------------------------------------------------------- */

/* Of the idle connections that can take `bells` more doorbells, one that has some already is
 * better: the others stay fit for waiting at a doorbell. */
static struct bl_conn *pick_idle(struct bl_pool *p, unsigned bells, bool or_any)
{
	struct bl_conn *best = NULL, *closed = NULL, *full = NULL;

	for (unsigned i = 0; i < p->size; i++) {
		struct bl_conn *c = &p->conns[i];

		if (c->lent)
			continue;
		if (!c->id)
			closed = closed ? closed : c;
		else if (c->bells + bells > BL_BELLS_MAX)
			full = c;
		else if (!best || c->bells > best->bells)
			best = c;
	}
	best = best ? best : closed;
	return best || !or_any ? best : full;
}

struct bl_conn *bl_pool_find(const struct bl_pool *p, uint64_t id)
{
	for (unsigned i = 0; i < p->size; i++)
		if (p->conns[i].id == id)
			return &p->conns[i];
	return NULL;
}

bool bl_pool_others_move(const struct bl_pool *p, const struct bl_conn *conn)
{
	for (unsigned i = 0; i < p->size; i++) {
		const struct bl_conn *c = &p->conns[i];

		if (c != conn && (!c->lent || !bl_passed(bl_conn_stalls(c))))
			return true;
	}
	return false;
}

/* The loss watch looks at the connection in time, and from then on without being told. */
static void watch(struct bl_pool *p, bl_time now)
{
	bl_worker_by(p->watch, now + p->answer);
}

static void set_lent(struct bl_pool *p, struct bl_conn *c)
{
	c->lent = true;
	c->lent_at = bl_now();
	watch(p, c->lent_at);
}

static bool satisfies(const struct bl_conn *c, struct bl_pool_waiter *w, const struct bl_pool *p)
{
	if (w->first)
		return c->id != 0;
	w->gone = w->id && !bl_pool_find(p, w->id);
	return w->gone || !w->id || w->id == c->id;
}

/* Hands an idle connection to the first waiter it suits. Waiters whose
 * connection is gone are told so on the way. */
static void serve(struct bl_pool *p, struct bl_conn *c)
{
	struct bl_pool_waiter **at = &p->first;

	while (*at && !c->lent) {
		struct bl_pool_waiter *w = *at;

		if (!satisfies(c, w, p)) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		if (!*at)
			p->last = at;
		if (!w->gone) {
			set_lent(p, c);
			w->got = c;
		}
		pthread_cond_signal(&w->served);
	}
}

static void give_up(struct bl_pool *p, struct bl_pool_waiter *w)
{
	struct bl_pool_waiter **at = &p->first;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	if (!*at)
		p->last = at;
}

bl_time bl_pool_next_look(const struct bl_patience *patience)
{
	bl_time look = patience->wakes ? bl_now() + BL_WAKE_NS : BL_NEVER;

	return bl_earlier(look, patience->end);
}

int bl_pool_patience_over(const struct bl_pool *p, const struct bl_patience *patience,
                          struct bl_err *err)
{
	if (patience->wakes && atomic_load(patience->wakes) != atomic_load(patience->seen))
		return bl_err_set(err, BIZLOCK_CANCELLED, "the wait was interrupted");
	if (bl_passed(patience->end))
		return bl_err_set(err, BIZLOCK_TIMEOUT, "all %u connections are in use", p->size);
	return BIZLOCK_OK;
}

static void line_up(struct bl_pool *p, struct bl_pool_waiter *w)
{
	struct bl_pool_waiter **at = w->first ? &p->first : p->last;

	w->next = *at;
	*at = w;
	if (!w->next)
		p->last = &w->next;
}

/* *ret: lent to us, or NULL when the wanted connection is gone. */
static int wait_in_turn(struct bl_pool *p, uint64_t id, struct bl_patience patience,
                        struct bl_conn **ret, struct bl_err *err)
{
	struct bl_pool_waiter w = {.id = id, .first = patience.first};
	int rc = BIZLOCK_OK;

	if (bl_cond_init(&w.served) != 0)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	line_up(p, &w);
	while (!w.got && !w.gone && rc == BIZLOCK_OK) {
		bl_cond_wait_until(&w.served, p->mu, bl_pool_next_look(&patience));
		if (!w.got && !w.gone)
			rc = bl_pool_patience_over(p, &patience, err);
	}
	pthread_cond_destroy(&w.served);
	*ret = w.got;
	if (rc != BIZLOCK_OK)
		give_up(p, &w);
	return rc;
}

/* ---- made, and lent ------------------------------------------------------------------------- */

static int connect_unlocked(struct bl_pool *p, struct bl_conn *c, struct bl_err *err)
{
	if (c->wake_fd < 0)
		c->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (c->wake_fd < 0)
		return bl_err_set(err, BIZLOCK_CONN, "connect: no file descriptor left");
	return bl_failover_connect(p->failover, p->sql, BL_NEVER, &c->session, err);
}

static int connect_lent(struct bl_pool *p, struct bl_conn *c, bool comes_again, struct bl_err *err)
{
	bl_time start = bl_now(), took;
	int rc;

	if (comes_again && start < p->down_until) {
		bl_pool_put(p, c);
		*err = p->down;
		return err->code;
	}
	pthread_mutex_unlock(p->mu);
	rc = connect_unlocked(p, c, err);
	pthread_mutex_lock(p->mu);
	took = bl_now() - start;
	if (rc == BIZLOCK_CONN && took > BL_TURN_NS) { /* else a dial keeps nobody waiting */
		p->down = *err;
		p->down_until = bl_now() + took;
	}
	if (rc != BIZLOCK_OK) {
		bl_pool_put(p, c);
		return rc;
	}
	p->down_until = 0;
	if (c->was_lost)
		bl_count(p->numbers, BL_COUNT_RECONNECTS);
	c->was_lost = false;
	bl_conn_begin(p, c);
	return rc;
}

static void trace_end(const struct bl_pool *p, const struct bl_conn *c)
{
	const struct bl_session *s = &c->session;

	BL_TRACE(p->trace, NULL, NULL, "connection %" PRIu64 " to %s %s", s->mark.id,
	         bl_failover_name(p->failover, s),
	         s->left     ? "closed"
	         : s->away   ? "lost: its server takes no writes now"
	         : s->silent ? "lost: no answer in time"
	                     : "lost");
}

/* From here on nobody finds it; the jobs in its line have to go elsewhere. */
static void disconnect(struct bl_pool *p, struct bl_conn *c)
{
	trace_end(p, c);
	c->id = 0;
	c->used = false;
	c->bells = 0;
	c->socket.fd = -1;
	c->was_lost = !c->session.left;
	pthread_mutex_unlock(p->mu);
	bl_session_close(&c->session);
	pthread_mutex_lock(p->mu);
	for (struct bl_job *job; (job = bl_jobs_next(&c->jobs)) != NULL;)
		bl_job_end(job, BL_JOB_ALONE);
}

/* An idle connection is lent from here on. Is it still connected? */
static bool begin_to_lend(struct bl_pool *p, struct bl_conn *c)
{
	bl_conn_leave_if_useless(p, c);
	set_lent(p, c);
	return c->id && !bl_session_ended(&c->session);
}

/* Ends all lost connections to the server of c, so that nothing that was sent on them can arrive
 * later. c is lent, and connected. */
static int end_lost_ones(struct bl_pool *p, struct bl_conn *c, struct bl_conn **ret,
                         struct bl_err *err)
{
	int rc = bl_lost_conns_end(p, c, err);

	if (rc == BIZLOCK_OK)
		*ret = c;
	else
		bl_pool_put(p, c);
	return rc;
}

/* Lends an idle connection, and makes it if need be. */
static int lend(struct bl_pool *p, struct bl_conn *c, bool comes_again, struct bl_conn **ret,
                struct bl_err *err)
{
	int rc = BIZLOCK_OK;

	if (!begin_to_lend(p, c) && c->id)
		disconnect(p, c);
	if (!c->id)
		rc = connect_lent(p, c, comes_again, err);
	return rc == BIZLOCK_OK ? end_lost_ones(p, c, ret, err) : rc;
}

/* From here on, threads that need this connection may put a job into its line. */
static void open_for_jobs(struct bl_pool *p, struct bl_conn *c)
{
	c->open = true;
	c->lent_at = bl_now();
	p->open++;
}

int bl_pool_take(struct bl_pool *p, struct bl_patience patience, struct bl_conn **ret,
                 struct bl_err *err)
{
	struct bl_conn *c = pick_idle(p, patience.bells ? patience.bells : 1, true);
	int rc = BIZLOCK_OK;

	if (!c)
		rc = wait_in_turn(p, 0, patience, &c, err);
	if (rc == BIZLOCK_OK)
		rc = lend(p, c, patience.comes_again, ret, err);
	if (rc == BIZLOCK_OK && patience.open)
		open_for_jobs(p, c);
	return rc;
}

int bl_pool_take_id(struct bl_pool *p, uint64_t id, struct bl_patience patience,
                    struct bl_conn **ret, struct bl_err *err)
{
	struct bl_conn *c = bl_pool_find(p, id);
	int rc = BIZLOCK_OK;

	*ret = NULL;
	if (c && c->lent)
		rc = wait_in_turn(p, id, patience, &c, err);
	if (rc != BIZLOCK_OK || !c)
		return rc;
	if (!begin_to_lend(p, c)) {
		bl_pool_put(p, c);
		return BIZLOCK_OK;
	}
	rc = end_lost_ones(p, c, ret, err);
	if (rc == BIZLOCK_OK && patience.open)
		open_for_jobs(p, c);
	return rc;
}

/* An idle connection that is made already. NULL: none. */
static struct bl_conn *pick_connected(struct bl_pool *p)
{
	for (unsigned i = 0; i < p->size; i++) {
		struct bl_conn *c = &p->conns[i];

		if (c->lent || !c->id)
			continue;
		if (begin_to_lend(p, c))
			return c;
		bl_pool_put(p, c);
	}
	return NULL;
}

static bool any_is_awake(const struct bl_pool *p)
{
	for (unsigned i = 0; i < p->size; i++)
		if (p->conns[i].id && !p->conns[i].at_bell)
			return true;
	return false;
}

/* Does not end lost connections first: their statements do not concern a renewal. */
int bl_pool_borrow(struct bl_pool *p, bl_time until, struct bl_conn **ret, struct bl_err *err)
{
	struct bl_patience patience = {.first = true};
	int rc = BIZLOCK_OK;

	*ret = pick_connected(p);
	while (!*ret && rc == BIZLOCK_OK) {
		patience.end = any_is_awake(p) ? until : 0;
		rc = wait_in_turn(p, 0, patience, ret, err);
		if (*ret && bl_session_ended(&(*ret)->session)) {
			bl_pool_put(p, *ret);
			*ret = NULL;
		}
	}
	return rc;
}

/* ---- given back ------------------------------------------------------------------------------ */

/* Is c the last connection that is awake, and to be kept so for the renewer? */
static bool is_reserve(const struct bl_pool *p, const struct bl_conn *c)
{
	bool last = p->reserve && c->id;

	for (unsigned i = 0; last && i < p->size; i++) {
		const struct bl_conn *other = &p->conns[i];

		last = other == c || !other->id || other->at_bell;
	}
	return last;
}

/* Keeps a connection for the watch thread, which comes for it. */
static bool keep(struct bl_pool *p, struct bl_conn *c)
{
	if (!p->keep || c->bells > 0 || is_reserve(p, c))
		return false;
	p->keep = false;
	p->kept = c;
	c->lent = true;
	return true;
}

/* The first job in line gets the connection, and runs the jobs behind it. */
static void serve_job(struct bl_pool *p, struct bl_conn *c)
{
	struct bl_job *job = bl_jobs_next(&c->jobs);

	if (!job)
		return;
	set_lent(p, c);
	open_for_jobs(p, c);
	bl_job_end(job, BL_JOB_LEADS);
}

void bl_pool_put(struct bl_pool *p, struct bl_conn *c)
{
	bool jobs_first = c->jobs.first && !c->jobs_were_first;

	p->open -= c->open;
	c->open = c->at_bell = false;
	c->bells_due = 0;
	c->took = bl_now() - c->lent_at;
	bl_conn_note_host(p, c);
	if (c->session.gone) {
		bl_lost_conn_note(p, c);
		disconnect(p, c);
	}
	c->lent = false;
	c->jobs_were_first = jobs_first;
	if (p->first && p->first->first)
		serve(p, c);
	if (!c->lent && !c->jobs.first && keep(p, c))
		return;
	if (!c->lent && jobs_first)
		serve_job(p, c);
	if (!c->lent)
		serve(p, c);
	if (!c->lent)
		serve_job(p, c);
}

/* ---- lent for long: to sleep at a doorbell, or to watch ------------------------------------- */

unsigned bl_pool_watchers_max(const struct bl_pool *p)
{
	return p->size / 4;
}

/* The watch thread has connections reserved, and hot keys have as many again. */
bool bl_pool_has_room_at_bells(const struct bl_pool *p, bool hot)
{
	return p->at_bells + (hot ? 1 : 2) * bl_pool_watchers_max(p) + 1 < p->size;
}

/* A connection without doorbells. Instead of the renewer's reserve, a connection that has yet to be
 * made. NULL: there is none. */
static struct bl_conn *pick_to_sleep(struct bl_pool *p)
{
	struct bl_conn *c = pick_idle(p, BL_BELLS_MAX, false);

	if (!c || !is_reserve(p, c))
		return c;
	for (unsigned i = 0; i < p->size; i++)
		if (!p->conns[i].lent && !p->conns[i].id)
			return &p->conns[i];
	return NULL;
}

/* How long no wait is promoted to a doorbell after none got a connection: a server that is full
 * would be dialled all the time. */
#define BELL_AGAIN_NS (200 * BL_NS_PER_MS)

bool bl_pool_can_sleep_at_bell(struct bl_pool *p, bool hot)
{
	return bl_pool_has_room_at_bells(p, hot) && bl_passed(p->bells_from) && pick_to_sleep(p);
}

/* Lends c for a sleep that can last. *count: the connections that are lent so. */
static int take_to_sleep(struct bl_pool *p, struct bl_conn *c, unsigned *count,
                         struct bl_conn **ret, struct bl_err *err)
{
	int rc;

	if (!c)
		return BIZLOCK_OK;
	(*count)++;
	c->at_bell = true; /* before the mutex is free: or two threads would each believe the
	                      other's connection awake */
	rc = lend(p, c, false, ret, err);
	if (rc != BIZLOCK_OK) {
		(*count)--;
		return p->reserve ? BIZLOCK_OK : rc;
	}
	bl_worker_by(p->janitor, bl_heartbeat_at(p));
	return rc;
}

int bl_pool_take_for_bell(struct bl_pool *p, bool hot, struct bl_conn **ret, struct bl_err *err)
{
	int rc;

	*ret = NULL;
	if (!bl_pool_has_room_at_bells(p, hot))
		return BIZLOCK_OK;
	rc = take_to_sleep(p, pick_to_sleep(p), &p->at_bells, ret, err);
	if (!*ret)
		p->bells_from = bl_now() + BELL_AGAIN_NS;
	return rc;
}

/* Has the next idle connection kept: threads that need one for a statement would always be there
 * first. */
int bl_pool_take_for_watch(struct bl_pool *p, struct bl_conn **ret, struct bl_err *err)
{
	struct bl_conn *c;

	if (p->kept && is_reserve(p, p->kept))
		bl_pool_keep_none(p);
	c = p->kept ? p->kept : pick_to_sleep(p);
	*ret = NULL;
	p->kept = NULL;
	p->keep = !c;
	return take_to_sleep(p, c, &p->watchers, ret, err);
}

void bl_pool_keep_none(struct bl_pool *p)
{
	struct bl_conn *c = p->kept;

	p->keep = false;
	p->kept = NULL;
	if (c)
		bl_pool_put(p, c);
}

void bl_pool_bell_begins(struct bl_pool *p, struct bl_conn *c)
{
	c->at_bell = !is_reserve(p, c);
	p->at_bells++;
}

void bl_pool_bell_over(struct bl_pool *p)
{
	p->at_bells--;
}

void bl_pool_watch_over(struct bl_pool *p)
{
	p->watchers--;
}

/* ---- all of them, and any ------------------------------------------------------------------- */

void bl_pool_ask(struct bl_pool *p, struct bl_conn *conn)
{
	static const char statement[] = "DO 0";
	struct bl_patience patience = {.end = 0};
	struct bl_err ignored;
	int rc = conn ? bl_pool_take_id(p, conn->id, patience, &conn, &ignored)
	              : bl_pool_take(p, patience, &conn, &ignored);

	if (rc != BIZLOCK_OK || !conn)
		return;
	pthread_mutex_unlock(p->mu);
	bl_session_run(&conn->session, statement, strlen(statement), NULL, &ignored);
	pthread_mutex_lock(p->mu);
	bl_pool_put(p, conn);
}

void bl_pool_wake(struct bl_pool *p)
{
	for (unsigned i = 0; i < p->size; i++)
		bl_conn_wake(&p->conns[i]);
}
