#include "client/janitor.h"

#include "base/rnd.h"
#include "client/hold.h"
#include "client/keepalive.h"
#include "core/backoff.h"
#include "store/errclass.h"

/* How long to wait for the connection that has a doorbell: no other one will do, and it may
 * be the busiest of all, while others' rows are waiting to be removed. */
#define BELL_NS (5 * BL_NS_PER_MS)

/* A connection that is in use: look again then. A row that is fenced: after twice the time, and so
 * on, up to 0.8 s, for its transaction may last. */
#define AGAIN_NS (50 * BL_NS_PER_MS)
#define TRIES_MAX 4

/* ---- cleaning up ----------------------------------------------------------- */

/* Its row, with its doorbell where that can travel along; or what is left of the two. */
static struct bl_change what_is_left(const struct bl_hold *h)
{
	if (!h->unsure)
		return (struct bl_change){.what = BL_CHANGE_BELL, .bell = h->bell};
	if (h->fence == 0)
		return (struct bl_change){.what = BL_CHANGE_SWEEP};
	return (struct bl_change){
	        .what = BL_CHANGE_DROP,
	        .rest_us = bl_hold_rest_us(h),
	        .bell = h->exported ? 0 : h->bell, /* it goes when the row has gone */
	};
}

static void failed(struct bizlock *b)
{
	struct bl_janitor *j = &b->janitor;

	j->not_before = bl_now() + bl_backoff_ns(j->failures++, bl_rnd_next(&b->jitter));
}

/* Refused for good, a row stays until its lease ends. With the mutex held. */
static void cleaned(struct bizlock *b, struct bl_hold *h, int rc, const struct bl_err *err)
{
	bool refused = rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_OTHER;

	if (rc == BIZLOCK_OK || refused)
		h->unsure = false;
	if (!h->unsure && !h->bell) {
		b->janitor.failures = 0;
		bl_hold_drop(b, h);
		return;
	}
	if (rc == BIZLOCK_BUSY && h->tries < TRIES_MAX)
		h->tries++;
	h->due = bl_now() + (AGAIN_NS << h->tries);
	if (rc != BIZLOCK_OK && rc != BIZLOCK_TIMEOUT && rc != BIZLOCK_BUSY)
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
	call.io_deadline = bl_now() + (has_bell ? BELL_NS : 0); /* once: others are waiting */
	change.ref = bl_hold_ref(&call, h);
	change.hold = change.what == BL_CHANGE_SWEEP ? NULL : h; /* of a row that nobody has seen */
	if (h->exported)
		change.ref.owner = NULL;
	if (change.what == BL_CHANGE_SWEEP)
		change.ref.fence = bl_hold_twin(b, h);
	h->busy = b->janitor.worker.at_work = true;
	pthread_mutex_unlock(&b->mu);
	rc = change.what == BL_CHANGE_BELL && !has_bell ? BIZLOCK_OK
	                                                : bl_retry_change(&call, &change);
	pthread_mutex_lock(&b->mu);
	b->janitor.worker.at_work = false;
	if (has_bell)
		h->bell = change.bell;
	cleaned(b, h, rc, &err);
}

/* ---- the thread ------------------------------------------------------------ */

static bl_time clean_at(const struct bizlock *b, const struct bl_hold *h)
{
	bl_time when = h->due;

	if (h->state != BL_HOLD_LITTER || h->busy)
		return BL_NEVER;
	return when > b->janitor.not_before ? when : b->janitor.not_before;
}

static struct bl_hold *first_litter(const struct bizlock *b, bl_time *ret_when)
{
	struct bl_hold *first = NULL;

	*ret_when = BL_NEVER;
	for (struct bl_hold *h = NULL; (h = bl_held_walk(&b->held, h)) != NULL;) {
		bl_time when = clean_at(b, h);

		if (when < *ret_when) {
			*ret_when = when;
			first = h;
		}
	}
	return first;
}

static void keep_alive(struct bizlock *b, struct bl_conn *conn)
{
	b->janitor.worker.at_work = true;
	bl_keepalive_send(&b->pool, conn);
	b->janitor.worker.at_work = false;
}

static void *run(void *arg)
{
	struct bizlock *b = arg;
	struct bl_worker *w = &b->janitor.worker;

	pthread_mutex_lock(&b->mu);
	while (!w->stop) {
		bl_time idle_at, now = bl_now();
		struct bl_conn *conn = bl_keepalive_next(&b->pool, &idle_at);
		struct bl_hold *h = first_litter(b, &w->at);

		w->at = bl_earlier(w->at, idle_at);
		if (w->at > now)
			bl_worker_sleep(w, &b->mu);
		else if (idle_at <= now)
			keep_alive(b, conn);
		else
			clean_up(b, h);
	}
	pthread_mutex_unlock(&b->mu);
	return NULL;
}

int bl_janitor_start(struct bizlock *b, struct bl_err *err)
{
	b->janitor = (struct bl_janitor){.failures = 0};
	b->pool.janitor = &b->janitor.worker;
	return bl_worker_start(&b->janitor.worker, run, b, err);
}
