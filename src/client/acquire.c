#include "client/contest.h"
#include "client/hold.h"
#include "core/lease.h"

static void grant(const struct bl_hold *h, uint32_t lease_ms, bool took_over, bizlock_grant *ret)
{
	ret->fence = h->fence;
	ret->depth = h->depth;
	ret->lease_ms = lease_ms;
	ret->flags = took_over ? BIZLOCK_TOOK_OVER : 0;
}

/* One level deeper in the row, which also starts the lease anew. */
static int deepen(struct bl_call *call, struct bl_hold *h, uint32_t lease_ms)
{
	struct bl_change change = {.what = BL_CHANGE_DEPTH,
	                           .ref = bl_hold_ref(call, h),
	                           .depth = h->depth + 1,
	                           .lease_ms = lease_ms};
	int rc = bl_retry_change(call, &change);
	bl_time expires;

	if (rc != BIZLOCK_OK)
		return rc;
	if (!change.matched)
		return bl_hold_lost(call, h);
	expires = bl_lease_end(change.sent, lease_ms * 1000LL);
	pthread_mutex_lock(&call->client->mu);
	h->depth = h->stored = change.depth;
	h->expires = expires > h->expires ? expires : h->expires;
	pthread_mutex_unlock(&call->client->mu);
	return BIZLOCK_OK;
}

static int reenter(struct bl_call *call, struct bl_hold *h, const struct bl_request *request)
{
	bool local =
	        ((h->flags | request->flags) & BIZLOCK_LOCAL_REENTRY) && bl_hold_left_ms(h) > 0;

	if (h->state == BL_HOLD_LOST)
		return bl_err_set(call->err, BIZLOCK_LOST,
		                  "an earlier hold was lost: release its %u levels first",
		                  h->depth);
	if (h->depth >= BIZLOCK_DEPTH_MAX)
		return bl_err_set(call->err, BIZLOCK_LIMIT, "re-entered %u times", h->depth);
	if (!local)
		return deepen(call, h, request->lease_ms);
	pthread_mutex_lock(&call->client->mu);
	h->depth++;
	pthread_mutex_unlock(&call->client->mu);
	return BIZLOCK_OK;
}

static void settle(struct bl_hold *h, const struct bl_won *won, const struct bl_request *request)
{
	h->state = BL_HOLD_HELD;
	h->depth = h->stored = 1;
	h->fence = won->fence;
	h->flags = request->flags;
	h->lease_ms = request->lease_ms;
	h->expires = bl_lease_end(won->sent, request->lease_ms * 1000LL);
}

static int acquire_first(struct bl_call *call, const struct bl_request *request, struct bl_hold *h,
                         bool *ret_took_over)
{
	struct bizlock *b = call->client;
	struct bl_won won;
	int rc = bl_contest(call, request, h, &won);

	if (rc == BIZLOCK_OK) {
		pthread_mutex_lock(&b->mu);
		settle(h, &won, request);
		pthread_mutex_unlock(&b->mu);
		*ret_took_over = won.took_over;
	}
	return rc;
}

static int acquire(struct bl_call *call, const struct bl_request *request, bizlock_grant *ret)
{
	struct bizlock *b = call->client;
	bool took_over = false, first;
	struct bl_hold *h;
	int rc;

	pthread_mutex_lock(&b->mu);
	h = bl_hold_begin(call, &rc);
	first = rc == BIZLOCK_OK && !h;
	if (first) {
		h = bl_held_add(&b->held, &call->key, &call->owner);
		if (h)
			h->busy = true;
		else
			rc = bl_err_set(call->err, BIZLOCK_NOMEM, "out of memory");
	}
	pthread_mutex_unlock(&b->mu);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = first ? acquire_first(call, request, h, &took_over) : reenter(call, h, request);
	if (rc == BIZLOCK_OK)
		grant(h, request->lease_ms, took_over, ret);
	pthread_mutex_lock(&b->mu);
	if (first && rc != BIZLOCK_OK)
		bl_hold_drop(b, h);
	else
		bl_hold_done(b, h);
	pthread_mutex_unlock(&b->mu);
	return rc;
}

static void count_acquired(struct bl_numbers *n, const bizlock_grant *grant, bl_time began)
{
	if (grant->depth > 1) {
		bl_count(n, BL_COUNT_REENTERED);
		return;
	}
	bl_count(n, BL_COUNT_ACQUIRED);
	if (grant->flags & BIZLOCK_TOOK_OVER)
		bl_count(n, BL_COUNT_TAKEN_OVER);
	bl_count_wait(n, (uint64_t)(bl_now() - began) / 1000);
}

static void count_refused(struct bl_numbers *n, int rc)
{
	if (rc == BIZLOCK_BUSY)
		bl_count(n, BL_COUNT_BUSY);
	else if (rc == BIZLOCK_TIMEOUT)
		bl_count(n, BL_COUNT_TIMED_OUT);
	else if (rc == BIZLOCK_CANCELLED)
		bl_count(n, BL_COUNT_CANCELLED);
	else if (rc == BIZLOCK_UNKNOWN)
		bl_count(n, BL_COUNT_UNKNOWN);
}

int bl_client_acquire(struct bl_call *call, const struct bl_request *request, bizlock_grant *ret)
{
	bl_time began = bl_now();
	int rc = acquire(call, request, ret);

	if (rc == BIZLOCK_OK)
		count_acquired(&call->client->numbers, ret, began);
	else
		count_refused(&call->client->numbers, rc);
	return rc;
}
