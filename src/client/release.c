#include "client/hold.h"
#include "client/pass.h"

/* One level less, in the row if that knows of it. */
static int shallower(struct bl_call *call, struct bl_hold *h)
{
	struct bl_change change = {.what = BL_CHANGE_DEPTH,
	                           .ref = bl_hold_ref(call, h),
	                           .hold = h,
	                           .depth = h->depth - 1};
	bool known = h->stored > change.depth;
	int rc = known ? bl_retry_change(call, &change) : BIZLOCK_OK;

	h->depth = change.depth;
	if (known)
		h->stored = change.depth;
	return rc == BIZLOCK_OK && known && !change.matched ? bl_hold_lost(call, h) : rc;
}

static int last_level(struct bl_call *call, struct bl_hold *h)
{
	struct bl_change change = {.what = BL_CHANGE_DROP, .ref = bl_hold_ref(call, h), .hold = h};
	bool ours;
	int rc;

	if (bl_pass_on(call, h, &change.repeated))
		return BIZLOCK_OK;
	change.rest_us = bl_hold_rest_us(h);
	change.bell = h->bell;
	rc = bl_retry_change(call, &change);
	/* Within the lease nobody else can have removed the row: it was us, by
	 * the statement whose reply was lost. (But for a break at that moment.) */
	pthread_mutex_lock(&call->client->mu);
	h->bell = change.bell;
	ours = change.matched || (change.repeated && bl_hold_left_ms(h) > 0);
	pthread_mutex_unlock(&call->client->mu);
	return rc != BIZLOCK_OK || ours ? rc : bl_hold_lost(call, h);
}

int bl_release_level(struct bl_call *call, struct bl_hold *h)
{
	bool last = h->depth == 1;

	if (last ? bl_hold_held(call, h) : bl_hold_stays(call, h))
		return last ? last_level(call, h) : shallower(call, h);
	h->depth--;
	return bl_hold_lost(call, h);
}

/* What is lost, or could not be removed, is cleaned up when the server can be asked:
 * giving it back must not take long. */
void bl_release_end(struct bizlock *b, struct bl_hold *h, bool last, int rc)
{
	if (!last)
		bl_hold_done(b, h);
	else if (rc == BIZLOCK_OK && !h->bell)
		bl_hold_drop(b, h);
	else
		bl_hold_litter(b, h, rc != BIZLOCK_OK);
}

int bl_client_release(struct bl_call *call, uint32_t *ret_depth)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;
	bool last;
	int rc;

	pthread_mutex_lock(&b->mu);
	h = bl_hold_begin(call, &rc);
	pthread_mutex_unlock(&b->mu);
	if (rc != BIZLOCK_OK)
		return rc;
	if (!h)
		return bl_hold_none(call);
	last = h->depth == 1;
	rc = bl_release_level(call, h);
	if (rc == BIZLOCK_OK)
		*ret_depth = last ? 0 : h->depth;
	if (rc == BIZLOCK_OK && last)
		bl_count(&b->numbers, BL_COUNT_RELEASED);
	pthread_mutex_lock(&b->mu);
	bl_release_end(b, h, last, rc);
	pthread_mutex_unlock(&b->mu);
	return rc;
}
