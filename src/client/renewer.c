#include "client/renewal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/rnd.h"
#include "base/thread.h"
#include "core/backoff.h"
#include "core/lease.h"
#include "store/errclass.h"

/* How long to wait for the connection that has a doorbell: no other one will do, and it may
 * be the busiest of all. */
#define BELL_NS (5 * BL_NS_PER_MS)

/* A hold that a call is at work on, or whose connection is: look again then. */
#define BUSY_NS (50 * BL_NS_PER_MS)

void bl_renewer_by(struct bizlock *b, bl_time when)
{
	if (when >= b->renewer.at)
		return;
	b->renewer.at = when;
	pthread_cond_signal(&b->renewer.wake);
}

static bl_time later(bl_time a, bl_time b)
{
	return a > b ? a : b;
}

/* Litter is never overdue: what is to be renewed goes first, for a clean-up that fails
 * again and again would cost it its lease. */
static bl_time job_at(const struct bizlock *b, const struct bl_hold *h, bl_time now)
{
	bl_time when = BL_NEVER;

	if (h->state == BL_HOLD_LITTER)
		when = later(h->due, now);
	else if (h->state == BL_HOLD_HELD && !bl_token_ended(h->thread))
		when = h->due;
	if (when == BL_NEVER)
		return when;
	return later(b->renewer.not_before, h->busy ? later(when, now + BUSY_NS) : when);
}

static struct bl_hold *first_job(const struct bizlock *b, bl_time *ret_when)
{
	struct bl_hold *first = NULL;
	bl_time now = bl_now();

	*ret_when = BL_NEVER;
	for (struct bl_hold *h = NULL; (h = bl_held_walk(&b->held, h)) != NULL;) {
		bl_time when = job_at(b, h, now);

		if (when < *ret_when) {
			*ret_when = when;
			first = h;
		}
	}
	return first;
}

static void failed(struct bizlock *b)
{
	struct bl_renewer *r = &b->renewer;

	r->not_before = bl_now() + bl_backoff_ns(r->failures++, bl_rnd_next(&b->jitter));
}

/* ---- cleaning up ----------------------------------------------------------- */

/* Its row, with its doorbell where that can travel along; or what is left of the two. */
static struct bl_change what_is_left(const struct bl_hold *h)
{
	if (!h->unsure)
		return (struct bl_change){.what = BL_CHANGE_BELL, .bell = h->bell};
	if (h->fence == 0)
		return (struct bl_change){.what = BL_CHANGE_SWEEP};
	return (struct bl_change){
	        .what = BL_CHANGE_DROP, .rest_us = bl_hold_rest_us(h), .bell = h->bell};
}

/* Refused for good, a row stays until its lease ends. With the mutex held. */
static void cleaned(struct bizlock *b, struct bl_hold *h, int rc, const struct bl_err *err)
{
	bool refused = rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_OTHER;

	if (rc == BIZLOCK_OK || refused)
		h->unsure = false;
	if (!h->unsure && !h->bell) {
		b->renewer.failures = 0;
		bl_hold_drop(b, h);
		return;
	}
	h->due = bl_now() + BUSY_NS;
	if (rc != BIZLOCK_OK && rc != BIZLOCK_TIMEOUT)
		failed(b);
	bl_hold_done(b, h);
}

static void clean_up(struct bizlock *b, struct bl_hold *h)
{
	struct bl_change change = what_is_left(h);
	bool has_bell = change.bell != 0;
	struct bl_call call;
	struct bl_err err;
	int rc;

	bl_err_clear(&err);
	bl_call_begin(&call, b, &h->key, &h->owner, 0, &err);
	call.io_deadline = bl_now() + (has_bell ? BELL_NS : 0); /* once: leases are waiting */
	change.ref = bl_hold_ref(&call, h);
	if (change.what == BL_CHANGE_SWEEP)
		change.ref.fence = bl_hold_twin(b, h);
	h->busy = b->renewer.at_work = true;
	pthread_mutex_unlock(&b->mu);
	rc = change.what == BL_CHANGE_BELL && !has_bell ? BIZLOCK_OK
	                                                : bl_retry_change(&call, &change);
	pthread_mutex_lock(&b->mu);
	b->renewer.at_work = false;
	if (has_bell)
		h->bell = change.bell;
	cleaned(b, h, rc, &err);
}

/* ---- renewing ---------------------------------------------------------------- */

static bool make_room(struct bl_renewer *r, size_t n)
{
	struct bl_item *items;

	if (n <= r->room)
		return true;
	items = realloc(r->items, 2 * n * sizeof(*items));
	if (!items)
		return false;
	r->items = items;
	r->room = 2 * n;
	return true;
}

/* All that share the lease of `first` and are due soon: in one statement. */
static size_t gather(struct bizlock *b, const struct bl_hold *first)
{
	struct bl_renewer *r = &b->renewer;
	bl_time soon = bl_now() + bl_lease_early(first->lease_ms);
	size_t n = 0, bytes = 0;

	for (struct bl_hold *h = NULL; (h = bl_held_walk(&b->held, h)) != NULL;) {
		if (h->busy || h->lease_ms != first->lease_ms || job_at(b, h, 0) > soon ||
		    h->state != BL_HOLD_HELD)
			continue;
		bytes += h->key.id_len + h->key.type_len;
		if (n == BL_MANY_MAX || bytes > BL_MANY_BYTES || !make_room(r, n + 1))
			break;
		h->renewing = true;
		r->items[n++] = (struct bl_item){.key = h->key, .fence = h->fence};
	}
	return n;
}

static void renew_due(struct bizlock *b, const struct bl_hold *first)
{
	struct bl_renewer *r = &b->renewer;
	uint32_t lease_ms = first->lease_ms;
	size_t n = gather(b, first);
	struct bl_err err;
	int rc;

	bl_err_clear(&err);
	r->at_work = true;
	pthread_mutex_unlock(&b->mu);
	rc = n == 0 ? BIZLOCK_NOMEM : bl_renewal_run(b, n, lease_ms, &err);
	pthread_mutex_lock(&b->mu);
	r->at_work = false;
	for (size_t i = 0; i < n; i++) {
		struct bl_hold *h = bl_renewal_find(b, &r->items[i]);

		if (h)
			h->renewing = false;
	}
	pthread_cond_broadcast(&b->changed);
	if (rc == BIZLOCK_OK)
		r->failures = 0;
	else
		failed(b);
}

/* ---- the thread ---------------------------------------------------------------- */

static void *run(void *arg)
{
	struct bizlock *b = arg;
	struct bl_renewer *r = &b->renewer;

	pthread_mutex_lock(&b->mu);
	while (!r->stop) {
		struct bl_hold *h = first_job(b, &r->at);

		if (r->at > bl_now())
			bl_cond_wait_until(&r->wake, &b->mu, r->at);
		else if (h->state == BL_HOLD_LITTER)
			clean_up(b, h);
		else
			renew_due(b, h);
	}
	pthread_mutex_unlock(&b->mu);
	return NULL;
}

int bl_renewer_start(struct bizlock *b, struct bl_err *err)
{
	struct bl_renewer *r = &b->renewer;

	*r = (struct bl_renewer){.fd = -1};
	if (bl_cond_init(&r->wake) != 0)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	r->running = bl_thread_start(&r->thread, run, b);
	if (r->running)
		return BIZLOCK_OK;
	pthread_cond_destroy(&r->wake);
	return bl_err_set(err, BIZLOCK_NOMEM, "no thread can be had");
}

void bl_renewer_stop_soon(struct bizlock *b)
{
	struct bl_renewer *r = &b->renewer;

	r->stop = true;
	pthread_cond_signal(&r->wake);
	if (r->fd >= 0)
		shutdown(r->fd, SHUT_RDWR); /* it may be waiting for an answer */
}

void bl_renewer_stop(struct bizlock *b)
{
	struct bl_renewer *r = &b->renewer;

	if (!r->running)
		return;
	pthread_mutex_lock(&b->mu);
	bl_renewer_stop_soon(b);
	pthread_mutex_unlock(&b->mu);
	pthread_join(r->thread, NULL);
	pthread_cond_destroy(&r->wake);
	bl_session_close(&r->session);
	free(r->items);
	r->running = false;
}

void bl_renewer_forget(struct bizlock *b)
{
	if (b->renewer.session.mysql)
		bl_session_forget(&b->renewer.session);
	free(b->renewer.items);
}
