/* Runs with the mutex free. Functions take it for a moment, to note an answer, or to see how
 * long to wait for one. The holds are `renewing` meanwhile, and are found again by key and
 * fence: they may have been given back. */
#include "client/hold/renewal.h"

#include <inttypes.h>

#include "core/lease.h"
#include "store/row/lock.h"
#include "store/row/renew_many.h"
#include "store/session/errclass.h"

/* A server's clock that has moved by more than this against ours was set. */
#define STEP_US 1000000

/* The least time for an answer: twice this after a failure, four times after two, ... */
#define PATIENCE_NS (50 * BL_NS_PER_MS)

/* The time for a statement that waits for a row: the server lets it wait for a second. */
#define QUEUE_NS (1500 * BL_NS_PER_MS)

/* How long one round may wait for rows; the last wait may end later. */
#define QUEUES_NS (250 * BL_NS_PER_MS)

/* The hold of an item, if it is still there. */
static struct bl_hold *item_hold(struct bizlock *b, const struct bl_item *item)
{
	return bl_held_with_fence(&b->held, &item->key, item->fence);
}

/* Is it renewed by this statement, or due before another connection has to be tried? */
static bool waits_for_this(const struct bl_hold *h, bl_time now)
{
	return h->state == BL_HOLD_HELD && h->expires > now &&
	       (h->renewing || h->due < bl_lease_give_up(now, h->expires, h->lease_ms));
}

/* Until when to wait for an answer: as long as for any, while there is time to renew by another
 * connection. But a server that is slow, and not gone, would be given up again and again: so each
 * failure in a row doubles the least time, up to 1.6 s. queues: the hold whose row the statement
 * waits for, which another connection could not get sooner; or NULL. */
static bl_time patience(struct bizlock *b, const struct bl_hold *queues)
{
	bl_time now = bl_now();
	bl_time give_up = now + bl_config_answer_ms(&b->config) * BL_NS_PER_MS;
	unsigned doublings = b->renewer.failures < 5 ? b->renewer.failures : 5;
	bl_time least = now + (doublings ? PATIENCE_NS << doublings : 0);

	for (struct bl_hold *h = NULL; (h = bl_held_walk(&b->held, h)) != NULL;) {
		bl_time end = h == queues ? now + QUEUE_NS : now;

		if (waits_for_this(h, now))
			give_up = bl_earlier(
			        give_up,
			        bl_later(end, bl_lease_give_up(now, h->expires, h->lease_ms)));
	}
	return bl_later(give_up, least);
}

static void set_patience(struct bizlock *b)
{
	bl_lock(b);
	b->renewer.at->answer_by = patience(b, NULL);
	bl_worker_by(b->pool.watch, b->renewer.at->answer_by);
	bl_unlock(b);
	b->renewer.used_at = bl_now();
}

/* ---- on which connection ------------------------------------------------------------------- */

/* How long to wait for a connection of the pool if none can be made. */
#define BORROW_NS (250 * BL_NS_PER_MS)

/* With the mutex held. */
static void use_session(struct bizlock *b, struct bl_session *session)
{
	struct bl_renewer *r = &b->renewer;

	r->at = session;
	r->socket = bl_socket_of(session ? bl_connector_fd(session->mysql) : -1);
	if (r->worker.stop)
		bl_socket_shut(r->socket);
}

static bool is_useless(struct bizlock *b)
{
	struct bl_renewer *r = &b->renewer;

	return r->session.gone || bl_session_ended(&r->session) ||
	       bl_failover_noted_since(b->failover, &r->session, r->used_at) ||
	       bl_failover_prefers_another(b->failover, &r->session, r->connected_at);
}

static int make_own(struct bizlock *b, bl_time until, struct bl_err *err)
{
	struct bl_renewer *r = &b->renewer;
	int rc = bl_failover_connect(b->failover, &b->sql, until, &r->session, err);

	if (rc != BIZLOCK_OK)
		return rc;
	r->connected_at = r->used_at = bl_now();
	bl_lock(b);
	use_session(b, &r->session);
	r->own = true;
	b->pool.reserve = false;
	bl_unlock(b);
	return rc;
}

void bl_renewal_prepare(struct bizlock *b, bl_time until)
{
	struct bl_err ignored;

	(void)make_own(b, until, &ignored);
}

static void leave_own(struct bizlock *b)
{
	struct bl_session *s = &b->renewer.session;

	if (s->away || s->silent)
		bl_failover_note(b->failover, s);
	BL_TRACE(&b->trace, NULL, NULL, "connection %" PRIu64 " to %s, for renewals, %s",
	         s->mark.id, bl_failover_name(b->failover, s), s->gone ? "lost" : "closed");
	bl_lock(b);
	use_session(b, NULL);
	b->renewer.own = false;
	b->pool.reserve = true;
	bl_unlock(b);
	bl_session_close(s);
}

static bool borrow(struct bizlock *b, bl_time until)
{
	struct bl_renewer *r = &b->renewer;
	struct bl_err ignored;

	bl_lock(b);
	if (bl_pool_borrow(&b->pool, until, &r->borrowed, &ignored) == BIZLOCK_OK)
		use_session(b, &r->borrowed->session);
	bl_unlock(b);
	return r->borrowed != NULL;
}

static void give_back(struct bizlock *b)
{
	struct bl_renewer *r = &b->renewer;

	bl_lock(b);
	use_session(b, NULL);
	r->borrowed->session.answer_by = BL_NEVER;
	bl_pool_put(&b->pool, r->borrowed);
	r->borrowed = NULL;
	bl_unlock(b);
}

/* If the renewer's own connection could not be made in time, or was lost, one that the pool has
 * comes first. But after a failure the pool's connections may be as dead as the last one was. */
static int obtain_session(struct bizlock *b, struct bl_err *err)
{
	struct bl_renewer *r = &b->renewer;
	bl_time until;
	int rc;

	if (r->session.mysql && is_useless(b))
		leave_own(b);
	if (r->session.mysql || (r->failures == 0 && borrow(b, 0)))
		return BIZLOCK_OK;
	bl_lock(b);
	until = patience(b, NULL);
	bl_unlock(b);
	rc = make_own(b, until, err);
	return rc == BIZLOCK_OK || borrow(b, bl_now() + BORROW_NS) ? BIZLOCK_OK : rc;
}

static void put_session(struct bizlock *b)
{
	if (b->renewer.borrowed)
		give_back(b);
	else if (b->renewer.session.gone)
		leave_own(b);
}

/* ---- the server's clock --------------------------------------------------------------------- */

/* Leases go by the server's clock: if that is set, they end early or late. The server read its
 * clock at an unknown moment of the statement: so a slow answer is no step. */
static void compare_clocks(struct bizlock *b, int64_t server_us, bl_time sent)
{
	struct bl_renewer *r = &b->renewer;
	int64_t vague = (bl_now() - sent) / 2 / 1000;
	int64_t offset = server_us - sent / 1000 - vague;
	int64_t step = r->offset_us ? offset - r->offset_us : 0;
	int64_t tolerance = STEP_US + vague + r->vague_us;

	r->offset_us = offset;
	r->vague_us = vague;
	if (step <= tolerance && step >= -tolerance)
		return;
	r->step_us = step;
	r->stepped_at = bl_now();
	bl_count(&b->numbers, BL_COUNT_CLOCK_STEPS);
}

/* A hold that is lost within a lease after a step of the clock is lost by that step: not all holds
 * are renewed by the statement that notices it. */
static int64_t step_within(const struct bl_renewer *r, uint32_t lease_ms)
{
	return bl_passed(r->stepped_at + lease_ms * BL_NS_PER_MS) ? 0 : r->step_us;
}

/* ---- the answers ---------------------------------------------------------------------------- */

static void count_renewal(struct bizlock *b, const struct bl_hold *h)
{
	bl_time late = bl_now() - h->due;

	bl_count(&b->numbers, BL_COUNT_RENEWALS);
	if (late <= 0)
		return;
	bl_count_add(&b->numbers, BL_COUNT_RENEW_LAG_US, (uint64_t)late / 1000);
	bl_count_max(&b->numbers, BL_COUNT_RENEW_LAG_MAX_US, (uint64_t)late / 1000);
}

/* Of several holds, one line: there may be thousands. */
static void trace_renewal(struct bizlock *b, const struct bl_item *items, size_t n,
                          uint32_t lease_ms, uint64_t matched)
{
	if (n == 1)
		BL_TRACE(&b->trace, &items->key, NULL,
		         "renewal, fence %" PRIu64 ", %" PRIu32 " ms: %s", items->fence, lease_ms,
		         matched ? "done" : "no such row, or it is locked");
	else
		BL_TRACE(&b->trace, NULL, NULL,
		         "renewal of %zu holds, %" PRIu32 " ms: %" PRIu64 " of them done", n,
		         lease_ms, matched);
}

static void answered(struct bizlock *b, const struct bl_item *items, size_t n, bl_time sent,
                     uint32_t lease_ms, bool matched)
{
	bl_lock(b);
	for (size_t i = 0; i < n; i++) {
		struct bl_hold *h = item_hold(b, &items[i]);

		if (!h || h->state != BL_HOLD_HELD)
			continue;
		if (matched) {
			count_renewal(b, h);
			BL_PROBE(renewed, &h->key, &h->owner, h->fence);
			bl_hold_confirm(b, h, sent, lease_ms);
		} else if (!h->busy || h->stays) { /* else a release took it away */
			h->step_us = step_within(&b->renewer, lease_ms);
			bl_hold_lose(b, h, BL_LOSS_GONE);
		}
	}
	bl_unlock(b);
}

static void postpone(struct bizlock *b, const struct bl_item *item, uint32_t lease_ms)
{
	struct bl_hold *h;

	bl_lock(b);
	h = item_hold(b, item);
	if (h && h->state == BL_HOLD_HELD) {
		h->due = bl_now() + bl_lease_early(lease_ms);
		h->upkeep = BL_UPKEEP_LOCKED;
		bl_count(&b->numbers, BL_COUNT_RENEW_FENCED);
	}
	bl_unlock(b);
}

/* A hold that was not renewed: its row is gone, or was skipped because it is locked, or has not
 * reached this member of a cluster yet. */
static int not_renewed(struct bizlock *b, const struct bl_item *item, bl_time sent,
                       uint32_t lease_ms, struct bl_err *err)
{
	int64_t there = 0;
	bool caught_up;
	int rc;

	set_patience(b);
	rc = bl_lock_catch_up(b->renewer.at, &caught_up, err);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_many_count(b->renewer.at, item, 1, b->process.suffix, true, &there, err);
	if (rc != BIZLOCK_OK)
		return rc;
	if (there)
		postpone(b, item, lease_ms);
	else
		answered(b, item, 1, sent, lease_ms, false);
	return rc;
}

/* Leaves out holds that were given back meanwhile. Treated as lost, each would take a dozen
 * statements: a client that gives back thousands would lose its other holds. */
static size_t still_held(struct bizlock *b, struct bl_item *items, size_t n)
{
	size_t held = 0;

	bl_lock(b);
	for (size_t i = 0; i < n; i++)
		if (item_hold(b, &items[i]))
			items[held++] = items[i];
	bl_unlock(b);
	return held;
}

static bool may_be_halved(const struct bl_err *err)
{
	enum bl_class class = bl_classify(err->native);

	return class == BL_CLASS_RETRY || class == BL_CLASS_TOO_LARGE;
}

/* Renews items by one statement. If that does not renew them all, halves them, down to the hold
 * that is lost or whose row is locked. */
static int renew_items(struct bizlock *b, struct bl_item *items, size_t n, uint32_t lease_ms,
                       struct bl_err *err)
{
	struct bl_renewal renewal = {items, 0, b->process.suffix, lease_ms, false};
	struct bl_renewed got;
	bl_time sent;
	int rc;

	renewal.n = n = still_held(b, items, n);
	if (n == 0)
		return BIZLOCK_OK;
	set_patience(b);
	sent = bl_now();
	rc = bl_renew_many(b->renewer.at, &renewal, &got, err);
	if (rc == BIZLOCK_OK) {
		trace_renewal(b, items, n, lease_ms, got.matched);
		compare_clocks(b, got.server_us, sent);
		if (got.matched == n) {
			answered(b, items, n, sent, lease_ms, true);
			return rc;
		}
		if (n == 1)
			return not_renewed(b, items, sent, lease_ms, err);
	} else if (n == 1 || !may_be_halved(err)) {
		return rc;
	}
	rc = renew_items(b, items, n / 2, lease_ms, err);
	if (rc == BIZLOCK_OK || may_be_halved(err))
		rc = renew_items(b, items + n / 2, n - n / 2, lease_ms, err);
	return rc;
}

/* ---- a row that is always locked ------------------------------------------------------------ */

/* Transactions that fence the row by turns leave no moment at which it is not locked. So once half
 * of the lease is gone, the renewal queues for the row, unless other holds cannot wait that
 * long. */
static bool begin_to_queue(struct bizlock *b, const struct bl_item *item)
{
	struct bl_hold *h;
	bl_time now = bl_now(), until;
	bool queue;

	bl_lock(b);
	h = item_hold(b, item);
	queue = h && h->state == BL_HOLD_HELD && h->upkeep == BL_UPKEEP_LOCKED &&
	        now >= h->expires - h->lease_ms * BL_NS_PER_MS / 2;
	until = patience(b, h);
	queue = queue && until >= now + QUEUE_NS;
	if (queue) {
		b->renewer.at->answer_by = until;
		bl_worker_by(b->pool.watch, until);
	}
	bl_unlock(b);
	b->renewer.used_at = now;
	return queue;
}

static int renew_queueing(struct bizlock *b, const struct bl_item *item, uint32_t lease_ms,
                          struct bl_err *err)
{
	struct bl_renewal renewal = {item, 1, b->process.suffix, lease_ms, true};
	struct bl_renewed got;
	bl_time sent = bl_now();
	int rc = bl_renew_many(b->renewer.at, &renewal, &got, err);

	if (rc == BIZLOCK_OK)
		trace_renewal(b, item, 1, lease_ms, got.matched);
	if (rc == BIZLOCK_OK && got.matched == 1)
		answered(b, item, 1, sent, lease_ms, true);
	return rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_RETRY ? BIZLOCK_OK : rc;
}

static int queue_for_locked(struct bizlock *b, size_t n, uint32_t lease_ms, struct bl_err *err)
{
	bl_time until = bl_now() + QUEUES_NS;
	int rc = BIZLOCK_OK;

	for (size_t i = 0; rc == BIZLOCK_OK && i < n && !bl_passed(until); i++)
		if (begin_to_queue(b, &b->renewer.items[i]))
			rc = renew_queueing(b, &b->renewer.items[i], lease_ms, err);
	return rc;
}

int bl_renewal_run(struct bizlock *b, size_t n, uint32_t lease_ms, struct bl_err *err)
{
	int rc = obtain_session(b, err);

	if (rc == BIZLOCK_OK)
		rc = renew_items(b, b->renewer.items, n, lease_ms, err);
	if (rc == BIZLOCK_OK)
		rc = queue_for_locked(b, n, lease_ms, err);
	put_session(b);
	return rc;
}
