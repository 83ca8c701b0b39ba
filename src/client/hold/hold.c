#include "client/hold/hold.h"

#include <inttypes.h>
#include <string.h>

#include "client/conn/lost_conn.h"
#include "client/conn/retry.h"
#include "core/lease.h"

/* ---- taking it, and letting go --------------------------------------------------------- */

void bl_call_follow(struct bl_call *call, const struct bl_hold *h)
{
	call->key.slot = h->key.slot;
}

struct bl_hold *bl_hold_begin_now(struct bl_call *call, bool *ret_busy)
{
	struct bizlock *b = call->client;
	struct bl_hold *h = bl_held_find(&b->held, &call->key, &call->owner);

	*ret_busy = h && h->busy && h->state != BL_HOLD_ACQUIRING;
	if (!h || *ret_busy || h->state == BL_HOLD_ACQUIRING)
		return NULL;
	bl_call_follow(call, h);
	h->busy = true;
	h->stays = false;
	if (h->state == BL_HOLD_HELD && h->expires <= bl_now())
		bl_hold_lose(b, h, BL_LOSS_OVER);
	return h;
}

struct bl_hold *bl_hold_begin(struct bl_call *call, int *ret_rc)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;
	bool busy;

	*ret_rc = BIZLOCK_OK;
	while ((h = bl_hold_begin_now(call, &busy)) == NULL && busy) {
		*ret_rc = bl_call_interrupted(call) ? bl_call_check(call) : BIZLOCK_OK;
		if (*ret_rc != BIZLOCK_OK)
			return NULL;
		bl_cond_wait_until(&b->changed, &b->mu,
		                   bl_earlier(call->io_deadline, bl_now() + BL_WAKE_NS));
		if (bl_passed(call->io_deadline)) {
			*ret_rc = bl_err_set(call->err, BIZLOCK_TIMEOUT,
			                     "another call of this owner is at work on it");
			return NULL;
		}
	}
	return h;
}

struct bl_hold *bl_hold_begin_held(struct bl_call *call, int *ret_rc)
{
	struct bl_hold *h = bl_hold_begin(call, ret_rc);

	if (!h && *ret_rc == BIZLOCK_OK)
		*ret_rc = bl_hold_none(call);
	return h;
}

void bl_hold_done(struct bizlock *b, struct bl_hold *h)
{
	h->busy = false;
	if (h->state == BL_HOLD_LOST && h->bell)
		bl_worker_by(&b->janitor.worker, 0);
	pthread_cond_broadcast(&b->changed);
}

/* The struct of a lost hold stays until the user was told of the loss. */
void bl_hold_remove(struct bizlock *b, struct bl_hold *h)
{
	bl_queue_wake_first(&b->queues, &h->key);
	bl_held_take_out(&b->held, h);
	h->gone = true;
	if (!h->untold)
		bl_hold_free(h);
	else if (!bl_listener_is_set(&b->loss_watch.listener))
		bl_loss_forget(b, h);
	b->pool.reserve &= b->held.count > 0;
	pthread_cond_broadcast(&b->changed);
}

void bl_hold_orphan(struct bizlock *b, struct bl_hold *h, bool unsure)
{
	bl_hold_move(h, BL_HOLD_ORPHAN);
	if (unsure)
		BL_TRACE_HOLD(b, h, "its row may be there: to be removed in the background");
	bl_held_contends(&b->held, h);
	h->due = 0;
	h->unsure = unsure;
	if (!bl_listener_is_set(&b->loss_watch.listener))
		bl_loss_forget(b, h); /* a later function is not told of ended holds */
	bl_queue_wake_first(&b->queues, &h->key);
	bl_worker_by(&b->janitor.worker, 0);
	bl_hold_done(b, h);
}

/* ---- its lease --------------------------------------------------------------------------- */

void bl_hold_late_renewal(struct bizlock *b, struct bl_hold *h, uint32_t lease_ms)
{
	if (bl_lost_conns_remain(&b->pool) && (!h->late_ms || lease_ms < h->late_ms))
		h->late_ms = lease_ms;
}

int64_t bl_hold_sure_us(const struct bizlock *b, struct bl_hold *h, int64_t us)
{
	if (h->late_ms && !bl_lost_conns_remain(&b->pool))
		h->late_ms = 0;
	return h->late_ms && h->late_ms * 1000LL < us ? h->late_ms * 1000LL : us;
}

uint32_t bl_hold_lease_now(const struct bl_hold *h, uint32_t lease_ms)
{
	bl_time left = h->until == BL_NEVER ? BL_NEVER : h->until - bl_now();
	uint32_t most_ms = left > 0 ? bl_lease_for(left) : 0;

	return lease_ms < most_ms ? lease_ms : most_ms;
}

/* A lease that lasts until max_hold_ms is over needs no renewal. */
static bool is_renewed(const struct bizlock *b, const struct bl_hold *h)
{
	bool wanted = b->config.renew || h->flags & BIZLOCK_RENEW;

	return wanted && !(h->flags & BIZLOCK_NO_RENEW) && h->expires < h->until;
}

void bl_hold_confirm(struct bizlock *b, struct bl_hold *h, bl_time sent, uint32_t lease_ms)
{
	bl_time expires = bl_lease_end(sent, bl_hold_sure_us(b, h, lease_ms * 1000LL));
	bool shorter = lease_ms < h->lease_ms;
	int64_t sure_us = bl_hold_sure_us(b, h, (shorter ? lease_ms : h->lease_ms) * 1000LL);

	/* A level with a shorter lease, which ends within the longer one, must not put off the
	 * renewer. */
	if (shorter && expires <= h->expires)
		return;
	h->expires = bl_earlier(bl_later(expires, h->expires), h->until);
	h->due = is_renewed(b, h) ? bl_lease_due(sent, (uint32_t)(sure_us / 1000)) : BL_NEVER;
	h->upkeep = BL_UPKEEP_GOOD;
	bl_worker_by(&b->loss_watch.worker, h->expires);
	bl_renewer_by(b, h);
}

void bl_hold_shorten(struct bizlock *b, struct bl_hold *h, uint32_t lease_ms)
{
	if (lease_ms >= h->lease_ms)
		return;
	h->lease_ms = lease_ms;
	if (h->due == BL_NEVER)
		return;
	h->due = bl_now();
	bl_worker_by(&b->renewer.worker, h->due);
}

void bl_hold_settle(struct bizlock *b, struct bl_hold *h, uint64_t fence, bl_time sent,
                    const struct bl_request *request)
{
	uint64_t *largest = &b->largest_fence;

	*largest = fence > *largest ? fence : *largest;
	bl_hold_move(h, BL_HOLD_HELD);
	bl_held_contends(&b->held, h);
	h->unsure = false;
	h->late_ms = 0;
	h->depth = h->stored = 1;
	h->fence = fence;
	h->flags = request->flags;
	h->limit = request->limit;
	h->lease_ms = request->lease_ms;
	h->min_hold_ms = request->min_hold_ms;
	h->began = h->run = sent;
	h->handoffs = 0;
	h->until = request->max_hold_ms ? sent + request->max_hold_ms * BL_NS_PER_MS : BL_NEVER;
	bl_hold_confirm(b, h, sent, request->lease_ms);
	BL_PROBE(acquired, &h->key, &h->owner, fence);
	BL_TRACE_HOLD(b, h, "acquired, fence %" PRIu64 ", slot %" PRIu32 ", lease %" PRIu32 " ms",
	              fence, h->key.slot, request->lease_ms);
}

/* min_hold_ms of a level that begins now, counted from the beginning of the hold. */
static uint32_t min_hold_from_began(const struct bl_hold *h, uint32_t min_hold_ms)
{
	int64_t ms = (bl_now() - h->began) / BL_NS_PER_MS + 1 + min_hold_ms;

	return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

void bl_hold_demand(struct bizlock *b, struct bl_hold *h, const struct bl_request *request)
{
	uint32_t min_ms = request->min_hold_ms ? min_hold_from_began(h, request->min_hold_ms) : 0;
	bl_time two_thirds = h->lease_ms * BL_NS_PER_MS / 3 * 2;

	if (h->state != BL_HOLD_HELD)
		return;
	h->flags &= request->flags | ~BIZLOCK_NO_RENEW;
	h->flags |= request->flags & BIZLOCK_RENEW;
	h->min_hold_ms = min_ms > h->min_hold_ms ? min_ms : h->min_hold_ms;
	if (request->own_max_hold)
		h->until = bl_earlier(h->until, bl_now() + request->max_hold_ms * BL_NS_PER_MS);
	h->expires = bl_earlier(h->expires, h->until);
	if (!is_renewed(b, h))
		h->due = BL_NEVER;
	else if (h->due == BL_NEVER)
		h->due = h->expires - two_thirds;
	bl_worker_by(&b->loss_watch.worker, h->expires);
	bl_renewer_by(b, h);
}

void bl_hold_grant(const struct bl_hold *h, uint32_t lease_ms, bool took_over, bizlock_grant *ret)
{
	ret->fence = h->fence;
	ret->depth = h->depth;
	ret->slot = h->key.slot;
	ret->lease_ms = lease_ms;
	ret->flags = took_over ? BIZLOCK_TOOK_OVER : 0;
}

void bl_hold_let_renew(struct bizlock *b, struct bl_hold *h)
{
	h->stays = true;
	bl_worker_by(&b->renewer.worker, h->due);
}

int64_t bl_hold_left_ms(const struct bl_hold *h)
{
	return h->state == BL_HOLD_HELD ? (h->expires - bl_now()) / BL_NS_PER_MS : 0;
}

/* When the rest is over, and some time more: our clock may be wrong. */
static bl_time rest_end(const struct bl_hold *h)
{
	bl_time rest = h->min_hold_ms * BL_NS_PER_MS;

	return rest ? h->began + rest + rest / 1000 + 1000 * BL_NS_PER_MS : 0;
}

/* A row that is made to rest too late is stale at once, and does no harm. A row that is deleted too
 * early lets somebody in. */
int64_t bl_hold_rest_us(const struct bl_hold *h)
{
	return bl_now() > rest_end(h) ? 0 : h->min_hold_ms * 1000LL;
}

uint32_t bl_hold_row_ms(const struct bl_hold *h, uint32_t lease_ms)
{
	int64_t left = (rest_end(h) - bl_now()) / BL_NS_PER_MS;

	if (left <= lease_ms)
		return lease_ms;
	return left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
}

struct bl_ref bl_hold_ref(struct bl_call *call, const struct bl_hold *h)
{
	return (struct bl_ref){.key = &call->key,
	                       .owner = call->owner_full,
	                       .fence = h->fence,
	                       .bell = call->client->bells ? bl_call_bell(call) : NULL};
}

/* No hold: UINT64_MAX, because a row may have fence 0. */
uint64_t bl_hold_sweep_fence(const struct bizlock *b, const struct bl_hold *hold)
{
	const struct bl_hold *h = bl_held_of_key(&b->held, &hold->key);

	while (h && (h->fence == 0 || strcmp(h->owner.name, hold->owner.name) != 0))
		h = bl_held_next_of_key(h);
	return h ? h->fence : UINT64_MAX;
}

/* ---- its loss ---------------------------------------------------------------------------- */

static const char *upkeep_words(const struct bizlock *b, const struct bl_hold *h)
{
	return h->upkeep == BL_UPKEEP_LOCKED ? "a transaction that is open has fenced it"
	                                     : b->renewer.failure.msg;
}

static const char *why_lost(const struct bl_hold *h)
{
	switch (h->why) {
	case BL_LOSS_MOST:
		return "it was held for max_hold_ms, and is not renewed any longer";
	case BL_LOSS_OVER:
		return "the lease was over before it was renewed";
	case BL_LOSS_THREAD:
		return "the thread that held it has ended";
	case BL_LOSS_BROKEN:
		return "it was broken by this process";
	case BL_LOSS_GONE:
		break;
	}
	return "the server does not have it any more";
}

/* Keeps why the last renewal failed: a later failure has not cost the hold. */
void bl_hold_lose(struct bizlock *b, struct bl_hold *h, enum bl_loss why)
{
	bl_hold_move(h, BL_HOLD_LOST);
	h->why = why == BL_LOSS_OVER && h->expires >= h->until ? BL_LOSS_MOST : why;
	h->due = 0;
	if (h->bell)
		bl_worker_by(&b->janitor.worker, 0);
	if (h->why == BL_LOSS_OVER && h->upkeep != BL_UPKEEP_GOOD)
		h->words = strdup(upkeep_words(b, h));
	bl_queue_wake_first(&b->queues, &h->key);
	bl_count(&b->numbers, BL_COUNT_LOST);
	BL_PROBE(lost, &h->key, &h->owner, h->fence);
	BL_TRACE_HOLD(b, h, "lost, fence %" PRIu64 ": %s%s%s", h->fence, why_lost(h),
	              h->words ? "; the last renewal: " : "", h->words ? h->words : "");
	if (!h->promised) /* else it is told behind its grant */
		bl_loss_note(b, h);
}

/* If the renewer noticed the loss, it also knows whether the server's clock was set. */
static int lost_before(struct bl_call *call, const struct bl_hold *h)
{
	bl_err_set(call->err, BIZLOCK_LOST, "the hold is over: %s%s%s", why_lost(h),
	           h->words ? "; the last renewal: " : "", h->words ? h->words : "");
	if (h->step_us)
		bl_err_set(call->err, BIZLOCK_LOST,
		           "%s; the server's clock was set %s by %" PRId64 " ms", call->err->msg,
		           h->step_us > 0 ? "forward" : "back",
		           (h->step_us > 0 ? h->step_us : -h->step_us) / 1000);
	return BIZLOCK_LOST;
}

/* Looks for the new holder, too. A look that fails is not reported. */
static int lost_now(struct bl_call *call, struct bl_hold *h)
{
	struct bl_row row = {.found = false};
	struct bl_call quiet = *call;
	struct bl_err ignored;
	char holder[BL_ROW_TEXT_MAX] = "nobody has taken it since";

	quiet.err = &ignored;
	bl_hold_lose(call->client, h, BL_LOSS_GONE);
	if (bl_look(&quiet, &row) == BIZLOCK_OK && row.found && row.left_us > 0)
		bl_row_describe(&row, holder, sizeof(holder));
	return bl_err_set(call->err, BIZLOCK_LOST, "the hold is over; %s", holder);
}

int bl_hold_lost(struct bl_call *call, struct bl_hold *h)
{
	return h->state == BL_HOLD_HELD ? lost_now(call, h) : lost_before(call, h);
}

int bl_hold_upkeep(struct bl_call *call, struct bl_hold *h)
{
	const struct bizlock *b = call->client;

	if (h->state != BL_HOLD_HELD)
		return bl_hold_lost(call, h);
	if (h->upkeep == BL_UPKEEP_GOOD)
		return BIZLOCK_OK;
	return bl_err_set(call->err,
	                  h->upkeep == BL_UPKEEP_LOCKED ? BIZLOCK_BUSY : b->renewer.failure.code,
	                  "%s", upkeep_words(b, h));
}

int bl_hold_none(struct bl_call *call)
{
	return bl_err_set(call->err, BIZLOCK_NOT_OWNER, "%s holds no such lock here",
	                  call->owner_full);
}
