/* What the calls on a hold share, and the small ones: renew, verify, left. */
#include "client/hold.h"

#include <inttypes.h>
#include <string.h>

#include "core/lease.h"

struct bl_hold *bl_hold_begin(struct bl_call *call, int *ret_rc)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;

	*ret_rc = BIZLOCK_OK;
	while ((h = bl_held_find(&b->held, &call->key, &call->owner)) != NULL && h->busy &&
	       h->state != BL_HOLD_ACQUIRING) {
		*ret_rc = bl_call_interrupted(call) ? bl_call_check(call) : BIZLOCK_OK;
		if (*ret_rc != BIZLOCK_OK)
			return NULL;
		if (!bl_cond_wait_until(&b->changed, &b->mu, call->io_deadline)) {
			*ret_rc = bl_err_set(call->err, BIZLOCK_TIMEOUT,
			                     "another call of this owner is at work on it");
			return NULL;
		}
	}
	if (!h || h->state == BL_HOLD_ACQUIRING)
		return NULL;
	h->busy = true;
	h->stays = false;
	if (h->state == BL_HOLD_HELD && h->expires <= bl_now())
		bl_lose(b, h, BL_LOSS_OVER);
	return h;
}

void bl_hold_done(struct bizlock *b, struct bl_hold *h)
{
	h->busy = false;
	pthread_cond_broadcast(&b->changed);
}

void bl_hold_drop(struct bizlock *b, struct bl_hold *h)
{
	bl_line_stir(&b->lines, &h->key);
	bl_watch_drop(b, h);
	pthread_cond_broadcast(&b->changed);
}

void bl_hold_litter(struct bizlock *b, struct bl_hold *h, bool unsure)
{
	h->state = BL_HOLD_LITTER;
	h->due = 0;
	h->unsure = unsure;
	bl_line_stir(&b->lines, &h->key);
	bl_worker_by(&b->janitor.worker, 0);
	bl_hold_done(b, h);
}

void bl_hold_confirm(struct bizlock *b, struct bl_hold *h, bl_time sent, uint32_t lease_ms)
{
	bl_time expires = bl_lease_end(sent, lease_ms * 1000LL);
	bl_time due = bl_lease_due(sent, h->lease_ms);
	bool renewed = b->config.renew && !(h->flags & BIZLOCK_NO_RENEW) && due < h->until;

	h->expires = expires > h->expires ? expires : h->expires;
	h->due = renewed ? due : BL_NEVER;
	bl_worker_by(&b->watch.worker, h->expires);
	bl_worker_by(&b->renewer.worker, h->due);
}

int64_t bl_hold_left_ms(const struct bl_hold *h)
{
	return h->state == BL_HOLD_HELD ? (h->expires - bl_now()) / BL_NS_PER_MS : 0;
}

uint64_t bl_hold_twin(const struct bizlock *b, const struct bl_hold *hold)
{
	const struct bl_hold *h = bl_held_of_key(&b->held, &hold->key);

	while (h && (h->fence == 0 || strcmp(h->owner.name, hold->owner.name) != 0))
		h = bl_held_next_of_key(h);
	return h ? h->fence : 0;
}

bool bl_hold_held(struct bl_call *call, const struct bl_hold *h)
{
	bool held;

	pthread_mutex_lock(&call->client->mu);
	held = h->state == BL_HOLD_HELD;
	pthread_mutex_unlock(&call->client->mu);
	return held;
}

bool bl_hold_stays(struct bl_call *call, struct bl_hold *h)
{
	bool held;

	pthread_mutex_lock(&call->client->mu);
	held = h->state == BL_HOLD_HELD;
	h->stays = held;
	if (held)
		bl_worker_by(&call->client->renewer.worker, h->due);
	pthread_mutex_unlock(&call->client->mu);
	return held;
}

/* A row that is made to rest too late is stale at once; one that is deleted too
 * early lets somebody in. So our clock may be wrong by a little. */
int64_t bl_hold_rest_us(const struct bl_hold *h)
{
	bl_time rest = h->min_hold_ms * BL_NS_PER_MS;

	if (rest == 0 || bl_now() > h->began + rest + rest / 1000 + 1000 * BL_NS_PER_MS)
		return 0;
	return rest / 1000;
}

struct bl_ref bl_hold_ref(const struct bl_call *call, const struct bl_hold *h)
{
	return (struct bl_ref){&call->key, call->owner_full, h->fence};
}

static const char *why_lost(const struct bl_hold *h)
{
	switch (h->why) {
	case BL_LOSS_OVER:
		return "the lease was over before it was renewed";
	case BL_LOSS_THREAD:
		return "the thread that held it has ended";
	case BL_LOSS_BROKEN:
		return "it was broken by this process";
	case BL_LOSS_GONE:
		break;
	}
	return "the server has it no more";
}

/* A renewer that was told so knows whether the server's clock was set. */
static int lost_before(struct bl_call *call, const struct bl_hold *h)
{
	bl_err_set(call->err, BIZLOCK_LOST, "the hold is over: %s", why_lost(h));
	if (h->step_us)
		bl_err_set(call->err, BIZLOCK_LOST,
		           "%s; the server's clock was set %s by %" PRId64 " ms", call->err->msg,
		           h->step_us > 0 ? "forward" : "back",
		           (h->step_us > 0 ? h->step_us : -h->step_us) / 1000);
	return BIZLOCK_LOST;
}

/* Who has it now is worth a look; that the look may fail is not worth a word. */
static int lost_now(struct bl_call *call, struct bl_hold *h)
{
	struct bl_row row = {.found = false};
	struct bl_err ignored;
	char holder[320] = "nobody has taken it since";

	pthread_mutex_lock(&call->client->mu);
	if (h->state == BL_HOLD_HELD)
		bl_lose(call->client, h, BL_LOSS_GONE);
	pthread_mutex_unlock(&call->client->mu);
	if (bl_retry_look(call, &row, &ignored) == BIZLOCK_OK && row.found && row.left_us > 0)
		bl_describe(&row, holder, sizeof(holder));
	return bl_err_set(call->err, BIZLOCK_LOST, "the hold is over; %s", holder);
}

int bl_hold_lost(struct bl_call *call, struct bl_hold *h)
{
	return bl_hold_held(call, h) ? lost_now(call, h) : lost_before(call, h);
}

int bl_hold_none(struct bl_call *call)
{
	return bl_err_set(call->err, BIZLOCK_NOT_OWNER, "%s holds no such lock here",
	                  call->owner_full);
}

bool bl_hold_confirmed(struct bl_call *call, struct bl_hold *h, bl_time sent, uint32_t lease_ms)
{
	bool held;

	pthread_mutex_lock(&call->client->mu);
	held = h->state == BL_HOLD_HELD;
	if (held)
		bl_hold_confirm(call->client, h, sent, lease_ms);
	pthread_mutex_unlock(&call->client->mu);
	return held;
}

/* What the renewer sent must not arrive after a shorter lease, and lengthen it
 * behind our back. With the mutex held. */
static int after_renewer(struct bl_call *call, const struct bl_hold *h)
{
	struct bizlock *b = call->client;

	while (h->renewing)
		if (!bl_cond_wait_until(&b->changed, &b->mu, call->io_deadline))
			return bl_err_set(call->err, BIZLOCK_TIMEOUT,
			                  "a renewal of it is under way, and gets no answer");
	return BIZLOCK_OK;
}

/* The hold this call is about, busy, and still held; else *ret_rc says why not. */
static struct bl_hold *begin_held(struct bl_call *call, int *ret_rc)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;

	pthread_mutex_lock(&b->mu);
	h = bl_hold_begin(call, ret_rc);
	pthread_mutex_unlock(&b->mu);
	if (!h && *ret_rc == BIZLOCK_OK)
		*ret_rc = bl_hold_none(call);
	return h;
}

static int end_held(struct bl_call *call, struct bl_hold *h, int rc)
{
	pthread_mutex_lock(&call->client->mu);
	bl_hold_done(call->client, h);
	pthread_mutex_unlock(&call->client->mu);
	return rc;
}

/* BUSY: nothing was done, and the lease is what it was. */
static int not_renewed(struct bl_call *call, struct bl_hold *h, bl_time expires, int rc)
{
	bool lost;

	pthread_mutex_lock(&call->client->mu);
	lost = h->state == BL_HOLD_LOST;
	if (rc == BIZLOCK_BUSY && !lost)
		h->expires = expires;
	pthread_mutex_unlock(&call->client->mu);
	return lost ? bl_hold_lost(call, h) : rc;
}

static int renew(struct bl_call *call, struct bl_hold *h, uint32_t lease_ms)
{
	struct bizlock *b = call->client;
	struct bl_change change = {.what = BL_CHANGE_RENEW,
	                           .ref = bl_hold_ref(call, h),
	                           .hold = h,
	                           .lease_ms = lease_ms ? lease_ms : h->lease_ms};
	bl_time expires, before;
	bool held;
	int rc;

	pthread_mutex_lock(&b->mu);
	rc = after_renewer(call, h);
	before = h->expires;
	/* A shorter lease may begin at any moment from now on. */
	expires = bl_lease_end(bl_now(), change.lease_ms * 1000LL);
	if (rc == BIZLOCK_OK) {
		h->expires = bl_earlier(h->expires, expires);
		h->stays = change.lease_ms >= h->lease_ms;
		bl_worker_by(&b->watch.worker, h->expires);
	}
	pthread_mutex_unlock(&b->mu);
	if (rc == BIZLOCK_OK && bl_hold_held(call, h))
		rc = bl_retry_change(call, &change);
	if (rc != BIZLOCK_OK)
		return not_renewed(call, h, before, rc);
	pthread_mutex_lock(&b->mu);
	held = change.matched && h->state == BL_HOLD_HELD;
	if (held) {
		h->lease_ms = change.lease_ms;
		bl_hold_confirm(b, h, change.sent, change.lease_ms);
	}
	pthread_mutex_unlock(&b->mu);
	return held ? BIZLOCK_OK : bl_hold_lost(call, h);
}

int bl_client_renew(struct bl_call *call, uint32_t lease_ms)
{
	int rc;
	struct bl_hold *h = begin_held(call, &rc);

	return h ? end_held(call, h, renew(call, h, lease_ms)) : rc;
}

static bl_time hold_expires(struct bl_call *call, const struct bl_hold *h)
{
	bl_time expires;

	pthread_mutex_lock(&call->client->mu);
	expires = h->expires;
	pthread_mutex_unlock(&call->client->mu);
	return expires;
}

static int verify(struct bl_call *call, struct bl_hold *h)
{
	struct bizlock *b = call->client;
	bl_time sent = bl_now(), before;
	struct bl_row row;
	bool held;
	int rc;

	if (!bl_hold_stays(call, h))
		return bl_hold_lost(call, h);
	before = hold_expires(call, h);
	rc = bl_retry_look(call, &row, call->err);
	if (rc != BIZLOCK_OK)
		return rc;
	pthread_mutex_lock(&b->mu);
	held = h->state == BL_HOLD_HELD && row.found && row.fence == h->fence && row.left_us > 0;
	if (held && h->expires == before) { /* else a renewal knows better by now */
		h->expires = bl_lease_end(sent, row.left_us);
		bl_worker_by(&b->watch.worker, h->expires);
	}
	pthread_mutex_unlock(&b->mu);
	return held ? rc : bl_hold_lost(call, h);
}

int bl_client_verify(struct bl_call *call)
{
	int rc;
	struct bl_hold *h = begin_held(call, &rc);

	return h ? end_held(call, h, verify(call, h)) : rc;
}

int64_t bl_client_left_ms(struct bl_call *call)
{
	struct bizlock *b = call->client;
	const struct bl_hold *h;
	int64_t left;

	pthread_mutex_lock(&b->mu);
	h = bl_held_find(&b->held, &call->key, &call->owner);
	left = h ? bl_hold_left_ms(h) : 0;
	pthread_mutex_unlock(&b->mu);
	return left;
}

void bl_client_numbers(struct bizlock *b, bizlock_numbers *ret)
{
	const struct bl_hold *h = NULL;
	uint64_t held = 0;

	pthread_mutex_lock(&b->mu);
	while ((h = bl_held_walk(&b->held, h)) != NULL)
		held += bl_hold_left_ms(h) > 0;
	pthread_mutex_unlock(&b->mu);
	bl_numbers_read(&b->numbers, held, ret);
}
