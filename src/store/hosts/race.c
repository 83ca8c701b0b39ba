/* A connector's function that connects blocks, and nobody can cut it off: a server that says a
 * little from time to time keeps it busy as long as it likes. So each dial is made by a thread of
 * its own, which is left alone with such a server. A thread that wants a connection waits for the
 * first dial that is of use, and leaves the others as strays. The next thread that wants the same
 * host takes the stray over, so a slow host has no more dials to answer than there are threads that
 * want a connection. A dial that ends as a stray is closed by its own thread.
 *
 * A dial belongs to its thread until it has ended. Then it belongs to the race that waits for it,
 * or, if it is a stray, to its thread again. The mutex decides between the two. */
#include "store/hosts/race.h"

#include <errmsg.h>
#include <stdlib.h>

#include "base/thread.h"

/* How long a host may take before the next one is tried, too. */
#define MOMENT_NS (250 * BL_NS_PER_MS)

/* After this time a host that has refused is asked again: a group may have chosen another
 * primary. */
#define ROUND_NS (1000 * BL_NS_PER_MS)

struct bl_dial {
	struct bl_failover *failover;
	struct bl_target *target;
	struct bl_config config; /* its texts are the failover's */
	bool in_group;
	struct bl_dial *next; /* of the strays */
	bool stray, ended;
	int rc;
	struct bl_err err;
	struct bl_session session; /* of rc OK */
};

struct entry {
	struct bl_dial *dial; /* under way, or ended and not looked at yet */
	bool tried;           /* in this round */
	bool refused;         /* once at least */
};

/* One wish for a connection. */
struct race {
	struct bl_failover *failover;
	struct entry *entries; /* one for each target */
	unsigned under_way;
	bl_time next_at; /* when another host may be tried */
	bl_time end;
	struct bl_session *ret; /* of the winner */
	struct bl_err *err;     /* of the dial that failed last */
};

/* ---- dials ------------------------------------------------------------------------------- */

static void dial_free(struct bl_dial *d)
{
	if (d->rc == BIZLOCK_OK)
		bl_session_close(&d->session);
	free(d);
}

/* Makes the dial a stray: another host was quicker, or the time is over. */
static void dial_leave(struct bl_dial *d)
{
	struct bl_failover *f = d->failover;

	d->stray = true;
	d->next = f->strays;
	f->strays = d;
	bl_standing_failed(&d->target->standing, bl_now());
}

static void dial_take_over(struct bl_dial *d)
{
	struct bl_dial **at = &d->failover->strays;

	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	d->stray = false;
}

static struct bl_dial *find_stray(const struct bl_failover *f, const struct bl_target *target)
{
	struct bl_dial *d = f->strays;

	while (d && d->target != target)
		d = d->next;
	return d;
}

static void dial_ended(struct bl_dial *d)
{
	struct bl_failover *f = d->failover;
	bool stray;

	pthread_mutex_lock(&f->mu);
	d->ended = true;
	stray = d->stray;
	if (d->rc == BIZLOCK_OK)
		bl_standing_reached(&d->target->standing);
	else if (!stray) /* else dial_leave() has counted it */
		bl_standing_failed(&d->target->standing, bl_now());
	if (stray)
		dial_take_over(d);
	pthread_cond_broadcast(&f->ended);
	pthread_mutex_unlock(&f->mu);
	if (stray)
		dial_free(d);
}

static void dial_open(struct bl_dial *d)
{
	bl_err_clear(&d->err);
	d->rc = bl_failover_dial(d->failover, &d->config, &d->target->host, d->in_group,
	                         &d->session, &d->err);
	dial_ended(d);
}

static void *dial_run(void *arg)
{
	struct bl_failover *f = ((struct bl_dial *)arg)->failover;

	dial_open(arg);
	mysql_thread_end();
	bl_failover_dialed(f);
	return NULL;
}

static struct bl_dial *dial_new(struct bl_failover *f, struct bl_target *target)
{
	struct bl_dial *d = calloc(1, sizeof(*d));

	if (d)
		*d = (struct bl_dial){.failover = f,
		                      .target = target,
		                      .config = f->config,
		                      .in_group = f->in_group};
	return d;
}

/* False: no thread can be had. */
static bool dial_start(struct bl_dial *d)
{
	pthread_t thread;
	bool started = bl_thread_start(&thread, dial_run, d);

	if (started) {
		d->failover->dials++;
		d->failover->dialed_at = bl_now();
	}
	return started;
}

/* ---- a race ------------------------------------------------------------------------------ */

/* The next host of this round. failover->n: there is none. */
static unsigned next_target(const struct race *r)
{
	unsigned n = r->failover->n, last = n;
	bl_time now = bl_now();

	for (unsigned i = 0; i < n; i++) {
		if (r->entries[i].tried || r->entries[i].dial)
			continue;
		if (!bl_standing_is_last(&r->failover->targets[i].standing, now))
			return i;
		if (last == n)
			last = i;
	}
	return last;
}

/* Begins a new round, although hosts of the last round may not have answered yet. */
static void begin_round(struct race *r)
{
	for (unsigned i = 0; i < r->failover->n; i++)
		r->entries[i].tried = false;
	r->next_at = bl_now() + ROUND_NS;
}

/* Dials without a thread of its own: one host after the other. The next host has as much time as
 * this one. */
static void dial_here(struct race *r, struct bl_dial *d)
{
	bl_time begun = bl_now();

	pthread_mutex_unlock(&r->failover->mu);
	dial_open(d);
	pthread_mutex_lock(&r->failover->mu);
	r->next_at = bl_now();
	r->end += r->next_at - begun;
}

/* Without this end, hosts that answer, but each later than MOMENT_NS, would be asked round after
 * round, and the caller would be told that nobody answers. */
static bool all_refused(const struct race *r)
{
	unsigned i = 0;

	while (i < r->failover->n && r->entries[i].refused)
		i++;
	return i == r->failover->n && r->under_way == 0;
}

/* CONN: all have failed; the last one said why. */
static int start_next(struct race *r)
{
	struct bl_failover *f = r->failover;
	unsigned i = next_target(r);
	struct bl_dial *stray, *d;

	if (all_refused(r))
		return BIZLOCK_CONN;
	if (i == f->n) {
		if (f->n > 1)
			begin_round(r);
		else
			r->next_at = BL_NEVER;
		return BIZLOCK_OK;
	}
	stray = find_stray(f, &f->targets[i]);
	d = stray ? stray : dial_new(f, &f->targets[i]);
	if (!d)
		return bl_err_set(r->err, BIZLOCK_NOMEM, "out of memory");
	r->entries[i].dial = d;
	r->entries[i].tried = true;
	r->under_way++;
	r->next_at = bl_now() + MOMENT_NS;
	if (stray)
		dial_take_over(stray);
	else if (!dial_start(d))
		dial_here(r, d);
	return BIZLOCK_OK;
}

/* Looks at the dials that have ended. CONN: none has won. */
static int judge(struct race *r)
{
	int rc = BIZLOCK_CONN;

	for (unsigned i = 0; rc == BIZLOCK_CONN && i < r->failover->n; i++) {
		struct bl_dial *d = r->entries[i].dial;

		if (!d || !d->ended)
			continue;
		r->entries[i].dial = NULL;
		r->under_way--;
		r->next_at = bl_now();
		rc = d->rc;
		if (rc == BIZLOCK_OK) {
			*r->ret = d->session;
			r->ret->host = r->failover->n > 1 ? &d->target->host : NULL;
		} else {
			*r->err = d->err;
			r->entries[i].refused = true;
		}
		free(d);
	}
	return rc;
}

static int too_late(const struct race *r)
{
	unsigned i = 0;

	while (i + 1 < r->failover->n && !r->entries[i].dial)
		i++;
	bl_err_set(r->err, BIZLOCK_CONN, "connect: no answer in time");
	r->err->refused = CR_CONN_HOST_ERROR;
	if (r->failover->n > 1)
		bl_err_wrap(r->err, "%s", r->failover->targets[i].host.name);
	return BIZLOCK_CONN;
}

/* The mutex is held, except while it waits. */
static int race_run(struct race *r)
{
	struct bl_failover *f = r->failover;

	for (;;) {
		int rc = judge(r);

		if (rc != BIZLOCK_CONN)
			return rc;
		if (bl_passed(r->end) || f->stopped)
			return too_late(r);
		if (bl_passed(r->next_at)) {
			rc = start_next(r);
			if (rc != BIZLOCK_OK)
				return rc;
		}
		bl_cond_wait_until(&f->ended, &f->mu, bl_earlier(r->next_at, r->end));
	}
}

/* Lets go of the mutex, because to close connections that came second may take time. */
static void race_end(struct race *r)
{
	struct bl_failover *f = r->failover;

	for (unsigned i = 0; i < f->n; i++) {
		struct entry *e = &r->entries[i];

		if (!e->dial || e->dial->ended)
			continue;
		dial_leave(e->dial);
		e->dial = NULL;
	}
	pthread_mutex_unlock(&f->mu);
	for (unsigned i = 0; i < f->n; i++)
		if (r->entries[i].dial)
			dial_free(r->entries[i].dial);
	free(r->entries);
}

/* The only host also has time to answer a session's first questions, because there is no other host
 * to go to. */
static bl_time race_end_at(const struct bl_failover *f)
{
	bl_time end = bl_now() + bl_config_connect_ns(&f->config);
	bl_time all_tried = bl_now() + (f->n + 1) * MOMENT_NS;

	if (f->n == 1)
		return end + bl_config_answer_ms(&f->config) * BL_NS_PER_MS;
	return end > all_tried ? end : all_tried;
}

int bl_race(struct bl_failover *f, bl_time until, struct bl_session *ret, struct bl_err *err)
{
	struct race r = {.failover = f, .ret = ret, .err = err};
	int rc;

	r.end = bl_earlier(until, race_end_at(f));
	r.entries = calloc(f->n, sizeof(*r.entries));
	if (!r.entries)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	pthread_mutex_lock(&f->mu);
	rc = race_run(&r);
	race_end(&r);
	return rc;
}
