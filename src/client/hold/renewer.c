#include "client/hold/renewal.h"

#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "core/backoff.h"
#include "core/lease.h"
#include "store/session/errclass.h"

/* When to look again at a hold that a call is at work on. */
#define BUSY_NS (50 * BL_NS_PER_MS)

/* How long it may do nothing but try to connect. */
#define PREPARE_NS (1000 * BL_NS_PER_MS)

/* Is a call at work on it that may shorten its lease, or give it away? */
static bool is_taken(const struct bl_hold *h)
{
	return h->busy && !h->stays;
}

static bl_time due_at(const struct bizlock *b, const struct bl_hold *h, bl_time now)
{
	if (h->state != BL_HOLD_HELD || h->due == BL_NEVER || bl_token_ended(h->thread))
		return BL_NEVER;
	return bl_later(b->renewer.not_before,
	                is_taken(h) ? bl_later(h->due, now + BUSY_NS) : h->due);
}

static struct bl_hold *first_due(const struct bizlock *b, bl_time *ret_when)
{
	struct bl_hold *first = NULL;
	bl_time now = bl_now();

	*ret_when = BL_NEVER;
	for (struct bl_hold *h = NULL; (h = bl_held_walk(&b->held, h)) != NULL;) {
		bl_time when = due_at(b, h, now);

		if (when < *ret_when) {
			*ret_when = when;
			first = h;
		}
	}
	return first;
}

/* ---- its connection ------------------------------------------------------------ */

/* The connection is made half way to the first renewal: short holds need none, and a connection
 * that is refused, or takes long, must not keep a renewal waiting. */
static bl_time half_way(const struct bl_hold *h)
{
	return h->due - h->lease_ms * BL_NS_PER_MS / 6;
}

static bl_time prepare_at(const struct bl_renewer *r, const struct bl_hold *first)
{
	return r->own || !first ? BL_NEVER : bl_later(half_way(first), r->unprepared);
}

/* A second at a time, for a hold with a shorter lease may come meanwhile; the next one goes on with
 * the same dial (store/hosts/race.h). */
static void prepare(struct bizlock *b, bl_time due)
{
	bl_time until = bl_earlier(due, bl_now() + PREPARE_NS);

	bl_unlock(b);
	bl_renewal_prepare(b, until);
	bl_lock(b);
	b->renewer.unprepared = bl_passed(until) ? until : due; /* late, or refused */
}

void bl_renewer_by(struct bizlock *b, const struct bl_hold *h)
{
	if (h->due == BL_NEVER)
		return;
	b->pool.reserve |= !b->renewer.own;
	bl_worker_by(&b->renewer.worker, b->renewer.own ? h->due : half_way(h));
}

/* ---- renewing ---------------------------------------------------------------- */

static void renewer_failed(struct bizlock *b, const struct bl_err *err)
{
	struct bl_renewer *r = &b->renewer;

	bl_count(&b->numbers,
	         err->code == BIZLOCK_DB ? BL_COUNT_RENEW_REFUSED : BL_COUNT_RENEW_UNREACHED);
	r->failure = *err;
	r->not_before = bl_now() + bl_backoff_ns(r->failures++, bl_random(b));
	BL_TRACE(&b->trace, NULL, NULL, "renewal failed, %u times in a row: %s", r->failures,
	         err->msg);
}

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

/* Each hold that ends with max_hold_ms does so at its own time. Holds that end at about the same
 * time share a lease, and so a statement: a row may last a bit longer than its hold. */
static bool share_lease(uint32_t a_ms, uint32_t b_ms)
{
	return (a_ms > b_ms ? a_ms - b_ms : b_ms - a_ms) * BL_NS_PER_MS <= bl_lease_early(a_ms);
}

/* Gathers all that share the lease of `first` and are due soon, for one statement. */
static size_t gather_due(struct bizlock *b, const struct bl_hold *first, uint32_t *ret_lease_ms)
{
	struct bl_renewer *r = &b->renewer;
	bl_time soon = bl_now() + bl_lease_early(first->lease_ms);
	uint32_t first_ms = bl_hold_lease_now(first, first->lease_ms), lease_ms;
	size_t n = 0, bytes = 0;

	*ret_lease_ms = first_ms;
	for (struct bl_hold *h = NULL; (h = bl_held_walk(&b->held, h)) != NULL;) {
		if (is_taken(h) || h->lease_ms != first->lease_ms || due_at(b, h, 0) > soon)
			continue;
		lease_ms = bl_hold_lease_now(h, h->lease_ms);
		if (h != first && !share_lease(first_ms, lease_ms))
			continue;
		bytes += h->key.id_len + h->key.type_len;
		if (n == BL_MANY_MAX || bytes > BL_MANY_BYTES || !make_room(r, n + 1))
			break;
		*ret_lease_ms = lease_ms > *ret_lease_ms ? lease_ms : *ret_lease_ms;
		h->renewing = true;
		r->items[n++] = (struct bl_item){.key = h->key, .fence = h->fence};
	}
	return n;
}

/* In a round that failed, some holds may have been renewed. */
static void round_ended(struct bizlock *b, const struct bl_item *item, int rc)
{
	struct bl_hold *h = bl_held_with_fence(&b->held, &item->key, item->fence);

	if (!h)
		return;
	if (rc != BIZLOCK_OK && h->due <= bl_now())
		h->upkeep = BL_UPKEEP_FAILED;
	h->renewing = false;
}

static void renew_due(struct bizlock *b, const struct bl_hold *first)
{
	struct bl_renewer *r = &b->renewer;
	uint32_t lease_ms;
	size_t n = gather_due(b, first, &lease_ms);
	struct bl_err err;
	int rc;

	bl_err_clear(&err);
	bl_unlock(b);
	rc = n == 0 ? bl_err_set(&err, BIZLOCK_NOMEM, "out of memory")
	            : bl_renewal_run(b, n, lease_ms, &err);
	bl_lock(b);
	if (rc == BIZLOCK_OK)
		r->failures = 0;
	else
		renewer_failed(b, &err);
	for (size_t i = 0; i < n; i++)
		round_ended(b, &r->items[i], rc);
	pthread_cond_broadcast(&b->changed);
}

/* ---- the thread ---------------------------------------------------------------- */

static void *renew_always(void *arg)
{
	struct bizlock *b = arg;
	struct bl_worker *w = &b->renewer.worker;

	bl_lock(b);
	while (!w->stop) {
		struct bl_hold *h = first_due(b, &w->at);
		bl_time due = w->at;

		if (!h)
			b->pool.reserve = false;
		w->at = bl_earlier(due, prepare_at(&b->renewer, h));
		if (!h || w->at > bl_now()) {
			bl_worker_sleep(w, &b->mu);
			continue;
		}
		w->at_work = true;
		if (due > bl_now())
			prepare(b, due);
		else
			renew_due(b, h);
		w->at_work = false;
	}
	bl_unlock(b);
	return NULL;
}

int bl_renewer_start(struct bizlock *b, struct bl_err *err)
{
	b->renewer = (struct bl_renewer){.socket = {.fd = -1}};
	return bl_worker_start(&b->renewer.worker, renew_always, b, err);
}

void bl_renewer_stop_soon(struct bizlock *b)
{
	bl_worker_stop_soon(&b->renewer.worker);
	bl_socket_shut(b->renewer.socket); /* it may be waiting for an answer */
}

void bl_renewer_stop(struct bizlock *b)
{
	struct bl_renewer *r = &b->renewer;

	if (!r->worker.running)
		return;
	bl_lock(b);
	bl_renewer_stop_soon(b);
	bl_unlock(b);
	bl_worker_stop(&r->worker, &b->mu);
	bl_session_close(&r->session);
	free(r->items);
}

void bl_renewer_forget(struct bizlock *b)
{
	if (b->renewer.session.mysql)
		bl_session_forget(&b->renewer.session);
	free(b->renewer.items);
}
