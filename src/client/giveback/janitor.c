#include "client/giveback/janitor.h"

#include "client/conn/heartbeat.h"
#include "client/conn/keepalive.h"
#include "client/hold/drop.h"
#include "client/hold/hold.h"
#include "core/backoff.h"
#include "store/bell/bell.h"
#include "store/session/errclass.h"
#include "store/watch/watched.h"

/* How long to wait for the connection that has a doorbell: no other one will do, and it may be the
 * busiest of all, while rows of other holds wait to be removed. */
#define BELL_NS (5 * BL_NS_PER_MS)

/* When to try again if a connection is in use. If the row is fenced, the time doubles with each
 * try, up to 0.8 s: the transaction may last. */
#define AGAIN_NS (50 * BL_NS_PER_MS)
#define TRIES_MAX 4

/* How many doorbells of lost holds go in one packet. */
#define RINGS_MAX 64

static bl_time clean_at(const struct bizlock *b, const struct bl_hold *h)
{
	bool rings = h->state == BL_HOLD_LOST && h->bell;

	if ((h->state != BL_HOLD_ORPHAN && !rings) || h->busy)
		return BL_NEVER;
	return bl_later(h->due, b->janitor.not_before);
}

/* The next hold to clean up, and when. NULL, BL_NEVER: there is none. */
static struct bl_hold *next_orphan(const struct bizlock *b, bl_time *ret_when)
{
	struct bl_hold *next = NULL;

	*ret_when = BL_NEVER;
	for (struct bl_hold *h = NULL; (h = bl_held_walk(&b->held, h)) != NULL;) {
		bl_time when = clean_at(b, h);

		if (when < *ret_when) {
			*ret_when = when;
			next = h;
		}
	}
	return next;
}

/* The row of an export that ended UNKNOWN may have an owner that nobody knows. Its doorbell is
 * given back when the row has gone. */
static int clean_row(struct bl_call *call, struct bl_hold *h)
{
	struct bl_drop drop = {.hold = h,
	                       .ref = bl_hold_ref(call, h),
	                       .rest_us = bl_hold_rest_us(h),
	                       .bell = h->exported ? 0 : h->bell};
	int rc;

	if (h->exported) {
		drop.ref.owner = NULL;
		if (drop.rest_us == 0)
			drop.rest_us = bl_sql_rest_of_others(&h->key);
	}
	rc = bl_drop(call, &drop);
	if (!h->exported)
		h->bell = drop.bell;
	return rc;
}

/* Removes the row, and the doorbell by the same statement if possible; or the doorbell that is
 * left. */
static int clean_orphan(struct bl_call *call, struct bl_hold *h)
{
	if (!h->unsure)
		return bl_drop_bell(call, &h->bell);
	return h->fence == 0 ? bl_drop_unknown(call, h) : clean_row(call, h);
}

/* A row whose removal is refused for good stays until its lease ends. */
static void orphan_cleaned(struct bizlock *b, struct bl_hold *h, int rc, const struct bl_err *err)
{
	struct bl_janitor *j = &b->janitor;
	bool refused = rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_OTHER;

	BL_TRACE_HOLD(b, h, "removal of its %s in the background: %s",
	              h->unsure ? "row" : "doorbell", rc == BIZLOCK_OK ? "done" : err->msg);
	if (rc == BIZLOCK_OK || refused)
		h->unsure = false;
	if (!h->unsure && !h->bell) {
		j->failures = 0;
		bl_hold_remove(b, h);
		return;
	}
	if (rc == BIZLOCK_BUSY && h->tries < TRIES_MAX)
		h->tries++;
	h->due = bl_now() + (AGAIN_NS << h->tries);
	if (rc != BIZLOCK_OK && rc != BIZLOCK_TIMEOUT && rc != BIZLOCK_BUSY)
		j->not_before = bl_now() + bl_backoff_ns(j->failures++, bl_random(b));
	bl_hold_done(b, h);
}

/* Names the doorbells that conn has for lost holds; these holds do not have them any more. */
static size_t give_up_bells(struct bizlock *b, const struct bl_conn *conn,
                            char names[RINGS_MAX][BL_BELL_MAX + 1])
{
	size_t n = 0;

	for (struct bl_hold *h = NULL; n < RINGS_MAX && (h = bl_held_walk(&b->held, h)) != NULL;) {
		if (h->state != BL_HOLD_LOST || h->busy || h->bell != conn->id)
			continue;
		h->bell = 0;
		bl_bell_name(names[n++], b->bell_seed, &h->key);
	}
	return n;
}

/* The owner of a lost hold may release it late, or never. Meanwhile its doorbell would keep the
 * waiters asleep that sleep at it, until they go past it in any order. All such doorbells of the
 * connection go in one packet, for a server that was away may have cost hundreds of holds. The hold
 * is not busy, because a server that hangs must not keep a call from answering LOST: so the hold
 * may be gone afterwards. */
static void ring_for_lost(struct bl_call *call, struct bl_hold *h)
{
	char names[RINGS_MAX][BL_BELL_MAX + 1];
	const char *bells[RINGS_MAX];
	struct bl_patience patience = {.end = call->io_deadline};
	struct bizlock *b = call->client;
	struct bl_conn *conn = bl_pool_find(&b->pool, h->bell);
	size_t n;

	h->due = bl_now() + AGAIN_NS;
	if (!conn)
		h->bell = 0;
	if (!conn || conn->lent ||
	    bl_pool_take_id(&b->pool, conn->id, patience, &conn, call->err) != BIZLOCK_OK || !conn)
		return;
	n = give_up_bells(b, conn, names);
	for (size_t i = 0; i < n; i++)
		bells[i] = names[i];
	bl_unlock(b);
	if (n > 0)
		bl_sleepers_ring(&conn->session, bells, n, call->err);
	bl_lock(b);
	conn->bells -= conn->session.gone ? 0 : (unsigned)n;
	bl_pool_put(&b->pool, conn);
}

/* Removes what h still has at the server and must not keep. The mutex is let go of meanwhile. */
static void clean_hold(struct bizlock *b, struct bl_hold *h)
{
	struct bl_call call;
	struct bl_err err;
	bool with_bell = h->bell && !(h->exported && h->unsure);

	bl_err_clear(&err);
	bl_call_begin(&call, b, &h->key, &h->owner, 0, &err);
	call.io_deadline = bl_now() + (with_bell ? BELL_NS : 0); /* once: others are waiting */
	if (h->state == BL_HOLD_LOST) {
		ring_for_lost(&call, h);
	} else {
		h->busy = true;
		orphan_cleaned(b, h, clean_orphan(&call, h), &err);
	}
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void *clean_always(void *arg)
{
	struct bizlock *b = arg;
	struct bl_worker *w = &b->janitor.worker;

	bl_lock(b);
	while (!w->stop) {
		bl_time idle_at, beat_at = bl_heartbeat_at(&b->pool), now = bl_now();
		struct bl_conn *conn = bl_keepalive_next(&b->pool, &idle_at);
		struct bl_hold *h = next_orphan(b, &w->at);

		w->at = bl_earlier(w->at, bl_earlier(idle_at, beat_at));
		if (w->at > now) {
			bl_worker_sleep(w, &b->mu);
			continue;
		}
		w->at_work = true;
		if (beat_at <= now)
			bl_heartbeat_send(&b->pool);
		else if (idle_at <= now)
			bl_pool_ask(&b->pool, conn);
		else
			clean_hold(b, h);
		w->at_work = false;
	}
	bl_unlock(b);
	return NULL;
}

int bl_janitor_start(struct bizlock *b, struct bl_err *err)
{
	b->janitor = (struct bl_janitor){.failures = 0};
	b->pool.janitor = &b->janitor.worker;
	return bl_worker_start(&b->janitor.worker, clean_always, b, err);
}
