/* What the calls on a hold share, and the small ones: renew, verify, left. */
#include "client/hold.h"
#include "core/lease.h"

#include "client/retry.h"

struct bl_hold *bl_hold_begin(struct bl_call *call, int *ret_rc)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;

	*ret_rc = BIZLOCK_OK;
	while ((h = bl_held_find(&b->held, &call->key, &call->owner)) != NULL && h->busy) {
		*ret_rc = bl_call_check(call);
		if (*ret_rc != BIZLOCK_OK)
			return NULL;
		if (!bl_cond_wait_until(&b->changed, &b->mu, call->io_deadline)) {
			*ret_rc = bl_err_set(call->err, BIZLOCK_TIMEOUT,
			                     "another call of this owner is at work on it");
			return NULL;
		}
	}
	if (h)
		h->busy = true;
	return h;
}

void bl_hold_done(struct bizlock *b, struct bl_hold *h)
{
	h->busy = false;
	pthread_cond_broadcast(&b->changed);
}

void bl_hold_drop(struct bizlock *b, struct bl_hold *h)
{
	bl_held_remove(&b->held, h);
	pthread_cond_broadcast(&b->changed);
}

int64_t bl_hold_left_ms(const struct bl_hold *h)
{
	return h->state == BL_HOLD_HELD ? (h->expires - bl_now()) / BL_NS_PER_MS : 0;
}

struct bl_ref bl_hold_ref(const struct bl_call *call, const struct bl_hold *h)
{
	return (struct bl_ref){&call->key, call->owner_full, h->fence};
}

/* With the mutex: whoever counts what is held looks at holds that are not its own. */
static void mark_lost(struct bizlock *b, struct bl_hold *h)
{
	pthread_mutex_lock(&b->mu);
	if (h->state != BL_HOLD_LOST)
		bl_count(&b->numbers, BL_COUNT_LOST);
	h->state = BL_HOLD_LOST;
	pthread_mutex_unlock(&b->mu);
}

/* Who has it now is worth a look; that the look may fail is not worth a word. */
int bl_hold_lost(struct bl_call *call, struct bl_hold *h)
{
	struct bl_row row = {.found = false};
	struct bl_err ignored;
	char holder[320] = "nobody has taken it since";

	mark_lost(call->client, h);
	if (bl_retry_look(call, &row, &ignored) == BIZLOCK_OK && row.found && row.left_us > 0)
		bl_describe(&row, holder, sizeof(holder));
	return bl_err_set(call->err, BIZLOCK_LOST, "the hold is over; %s", holder);
}

int bl_hold_none(struct bl_call *call)
{
	return bl_err_set(call->err, BIZLOCK_NOT_OWNER, "%s holds no such lock here",
	                  call->owner_full);
}

int bl_client_renew(struct bl_call *call, uint32_t lease_ms)
{
	struct bizlock *b = call->client;
	struct bl_change change = {.what = BL_CHANGE_RENEW};
	struct bl_hold *h;
	bl_time expires;
	int rc;

	pthread_mutex_lock(&b->mu);
	h = bl_hold_begin(call, &rc);
	if (h) {
		change.ref = bl_hold_ref(call, h);
		change.lease_ms = lease_ms ? lease_ms : h->lease_ms;
		/* A shorter lease may begin at any moment from now on. */
		expires = bl_lease_end(bl_now(), change.lease_ms * 1000LL);
		h->expires = bl_earlier(h->expires, expires);
	}
	pthread_mutex_unlock(&b->mu);
	if (!h)
		return rc != BIZLOCK_OK ? rc : bl_hold_none(call);
	rc = h->state == BL_HOLD_LOST ? bl_hold_lost(call, h) : bl_retry_change(call, &change);
	if (rc == BIZLOCK_OK && !change.matched)
		rc = bl_hold_lost(call, h);
	pthread_mutex_lock(&b->mu);
	if (rc == BIZLOCK_OK)
		h->expires = bl_lease_end(change.sent, change.lease_ms * 1000LL);
	bl_hold_done(b, h);
	pthread_mutex_unlock(&b->mu);
	return rc;
}

int bl_client_verify(struct bl_call *call)
{
	struct bizlock *b = call->client;
	struct bl_row row;
	struct bl_hold *h;
	bl_time sent = bl_now();
	int rc;

	pthread_mutex_lock(&b->mu);
	h = bl_hold_begin(call, &rc);
	pthread_mutex_unlock(&b->mu);
	if (!h)
		return rc != BIZLOCK_OK ? rc : bl_hold_none(call);
	rc = h->state == BL_HOLD_LOST ? bl_hold_lost(call, h)
	                              : bl_retry_look(call, &row, call->err);
	if (rc == BIZLOCK_OK && (!row.found || row.fence != h->fence || row.left_us <= 0))
		rc = bl_hold_lost(call, h);
	pthread_mutex_lock(&b->mu);
	if (rc == BIZLOCK_OK)
		h->expires = bl_lease_end(sent, row.left_us);
	bl_hold_done(b, h);
	pthread_mutex_unlock(&b->mu);
	return rc;
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
