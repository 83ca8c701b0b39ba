#include "client/request/renew.h"

#include <inttypes.h>

#include "client/hold/change.h"
#include "client/hold/drop.h"
#include "client/hold/hold.h"
#include "client/hold/slots.h"
#include "core/lease.h"
#include "store/session/errclass.h"
#include "store/shared/sharers.h"

int bl_renew_in_vain(struct bl_call *call)
{
	return bl_err_set(call->err, BIZLOCK_TIMEOUT,
	                  "a renewal of it is under way, and gets no answer");
}

/* A renewal that the renewer has sent must not arrive after a shorter lease, and lengthen it
 * unnoticed. */
static int wait_for_renewer(struct bl_call *call, const struct bl_hold *h)
{
	struct bizlock *b = call->client;

	while (h->renewing)
		if (!bl_cond_wait_until(&b->changed, &b->mu, call->io_deadline))
			return bl_renew_in_vain(call);
	return BIZLOCK_OK;
}

struct renewal {
	struct bl_ref ref;
	uint32_t lease_ms, row_ms;
	bool matched;
};

static int write_lease(struct bl_session *s, void *arg, struct bl_err *err)
{
	struct renewal *r = arg;

	return bl_lock_renew(s, r->ref, r->row_ms, &r->matched, err);
}

int bl_renew_hold(struct bl_call *call, struct bl_hold *h, uint32_t lease_ms)
{
	struct renewal r = {.ref = bl_hold_ref(call, h),
	                    .lease_ms = lease_ms ? lease_ms : h->lease_ms};
	struct bl_tried tried;
	bl_time before, feared;
	int rc;

	if (h->state != BL_HOLD_HELD)
		return bl_hold_lost(call, h);
	r.row_ms = bl_hold_row_ms(h, r.lease_ms);
	before = h->expires;
	/* A shorter lease may begin at any moment from now on. */
	feared = bl_earlier(h->expires, bl_lease_end(bl_now(), r.lease_ms * 1000LL));
	h->expires = feared;
	bl_worker_by(&call->client->loss_watch.worker, h->expires);
	if (r.lease_ms >= h->lease_ms)
		bl_hold_let_renew(call->client, h);
	rc = bl_hold_change(call, h, true, call->io_deadline, write_lease, &r, &tried);
	if (tried.repeated)
		bl_hold_late_renewal(call->client, h, r.lease_ms);
	if (h->state != BL_HOLD_HELD || (rc == BIZLOCK_OK && !r.matched))
		return bl_hold_lost(call, h);
	/* If the server refused, the lease is what it was, or a renewal has made it longer. */
	if (rc != BIZLOCK_OK && rc != BIZLOCK_UNKNOWN && !tried.repeated && h->expires == feared)
		h->expires = before;
	else if (rc != BIZLOCK_OK)
		bl_hold_shorten(call->client, h, r.lease_ms);
	if (rc != BIZLOCK_OK)
		return rc;
	/* An owner that asks for this lease by a call does not hang, so max_hold_ms does not end it
	 * earlier. */
	if (h->until < tried.sent + r.lease_ms * BL_NS_PER_MS)
		h->until = tried.sent + r.lease_ms * BL_NS_PER_MS;
	h->lease_ms = r.lease_ms;
	bl_hold_confirm(call->client, h, tried.sent, r.lease_ms);
	BL_PROBE(renewed, &h->key, &h->owner, h->fence);
	BL_TRACE_HOLD(call->client, h, "renewed by a call, %" PRIu32 " ms", r.lease_ms);
	return rc;
}

int bl_client_renew(struct bl_call *call, uint32_t lease_ms)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;
	int rc;

	bl_lock(b);
	h = bl_hold_begin_held(call, &rc);
	if (h) {
		rc = wait_for_renewer(call, h);
		if (rc == BIZLOCK_OK)
			rc = bl_renew_hold(call, h, lease_ms);
		bl_hold_done(b, h);
	}
	bl_unlock(b);
	return rc;
}

/* ---- from exclusive to shared ---------------------------------------------------------------- */

#define SLOT_TRIES 8

/* While the lock is exclusive nobody else has a slot, except a sharer that came too late and is
 * about to leave it. So the first slot is free, which is one of any `limit`; if not, any other slot
 * is. */
static int write_shared(struct bl_call *call, struct bl_hold *h, struct bl_drop *drop)
{
	unsigned tries = 0;
	int rc;

	drop->to_slot = 1;
	do {
		drop->bell = h->bell;
		rc = bl_drop(call, drop);
		h->bell = drop->bell;
		if (rc != BIZLOCK_DB || bl_classify(call->err->native) != BL_CLASS_NULL)
			return rc;
		drop->to_slot = bl_slots_take(call->client);
	} while (++tries < SLOT_TRIES);
	return rc;
}

struct shared_row {
	struct bl_key key;
	uint64_t fence;
	bool found;
};

static int find_shared(struct bl_session *s, void *arg, struct bl_err *err)
{
	struct shared_row *f = arg;

	return bl_shared_find(s, &f->key, f->fence, &f->found, err);
}

/* An earlier statement whose reply was lost may have done it: then the hold has another slot. */
static int find_slot(struct bl_call *call, const struct bl_hold *h, uint32_t *ret_slot)
{
	struct shared_row f = {.key = h->key, .fence = h->fence};
	int rc = bl_read(call, find_shared, &f);

	*ret_slot = rc == BIZLOCK_OK && f.found ? f.key.slot : 0;
	return rc;
}

/* The first in the client's wait queue may hope for a hand-off, and a shared hold without a limit
 * is not handed over. */
static void settle_shared(struct bl_call *call, struct bl_hold *h, uint32_t slot)
{
	h->key.slot = call->key.slot = slot;
	h->flags |= BIZLOCK_SHARED;
	bl_queue_wake_first(&call->client->queues, &h->key);
	BL_TRACE_HOLD(call->client, h, "shared from now on, slot %" PRIu32, slot);
}

static int downgrade_hold(struct bl_call *call, struct bl_hold *h)
{
	struct bl_drop drop = {.hold = h, .ref = bl_hold_ref(call, h)};
	uint32_t slot;
	int rc;

	if (h->state != BL_HOLD_HELD)
		return bl_hold_lost(call, h);
	if (h->key.slot > 0)
		return BIZLOCK_OK;
	rc = write_shared(call, h, &drop);
	slot = drop.to_slot;
	if (rc == BIZLOCK_OK && !drop.matched)
		rc = find_slot(call, h, &slot);
	if (h->state != BL_HOLD_HELD || (rc == BIZLOCK_OK && slot == 0))
		return bl_hold_lost(call, h);
	if (rc == BIZLOCK_OK)
		settle_shared(call, h, slot);
	return rc;
}

/* A renewal under way names slot 0, and would take the hold for lost. */
int bl_client_downgrade(struct bl_call *call)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;
	int rc;

	bl_lock(b);
	h = bl_hold_begin_held(call, &rc);
	if (h) {
		rc = wait_for_renewer(call, h);
		if (rc == BIZLOCK_OK)
			rc = downgrade_hold(call, h);
		bl_hold_done(b, h);
	}
	bl_unlock(b);
	return rc;
}

int bl_client_last_renewal(struct bl_call *call)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;
	int rc;

	bl_lock(b);
	h = bl_held_find(&b->held, &call->key, &call->owner);
	rc = h && h->state != BL_HOLD_ACQUIRING ? bl_hold_upkeep(call, h) : bl_hold_none(call);
	bl_unlock(b);
	return rc;
}

/* In agreement with left_ms: a lease that is over is told before the loss watch has seen it. */
int bl_client_held(struct bl_call *call, bizlock_grant *ret)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;
	int rc = BIZLOCK_OK;

	bl_lock(b);
	h = bl_held_find(&b->held, &call->key, &call->owner);
	if (!h || h->state == BL_HOLD_ACQUIRING)
		rc = bl_hold_none(call);
	else if (h->state == BL_HOLD_LOST)
		rc = bl_hold_lost(call, h);
	else if (bl_hold_left_ms(h) <= 0)
		rc = bl_err_set(call->err, BIZLOCK_LOST, "the hold is over: its lease has run out");
	else
		bl_hold_grant(h, h->lease_ms, false, ret);
	bl_unlock(b);
	return rc;
}

int64_t bl_client_left_ms(struct bl_call *call)
{
	struct bizlock *b = call->client;
	const struct bl_hold *h;
	int64_t left;

	bl_lock(b);
	h = bl_held_find(&b->held, &call->key, &call->owner);
	left = h ? bl_hold_left_ms(h) : 0;
	bl_unlock(b);
	return left;
}
