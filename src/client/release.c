#include "client/hold.h"

static int shallower(struct bl_call *call, struct bl_hold *h)
{
	struct bl_change change = {
	        .what = BL_CHANGE_DEPTH, .ref = bl_hold_ref(call, h), .depth = h->depth - 1};
	int rc = BIZLOCK_OK;

	if (h->stored > change.depth) {
		rc = bl_retry_change(call, &change);
		h->stored = change.depth;
	}
	h->depth = change.depth;
	if (rc == BIZLOCK_OK && h->stored == change.depth && change.sent && !change.matched)
		return bl_hold_lost(call, h);
	return rc;
}

static int last_level(struct bl_call *call, struct bl_hold *h)
{
	struct bl_change change = {
	        .what = BL_CHANGE_DROP, .ref = bl_hold_ref(call, h), .bell = h->bell};
	int rc = bl_retry_change(call, &change);

	if (rc != BIZLOCK_OK || change.matched)
		return rc;
	/* Within the lease nobody else can have removed the row: it was us, by
	 * the statement whose reply was lost. */
	if (change.repeated && bl_hold_left_ms(h) > 0)
		return BIZLOCK_OK;
	return bl_hold_lost(call, h);
}

static int release_level(struct bl_call *call, struct bl_hold *h)
{
	struct bl_change ring = {.what = BL_CHANGE_BELL, .bell = h->bell};

	if (h->state == BL_HOLD_HELD)
		return h->depth > 1 ? shallower(call, h) : last_level(call, h);
	if (--h->depth == 0 && h->bell)
		bl_retry_change(call, &ring);
	return bl_err_set(call->err, BIZLOCK_LOST, "the hold was lost before");
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
	rc = release_level(call, h);
	if (rc == BIZLOCK_OK)
		*ret_depth = last ? 0 : h->depth;
	if (rc == BIZLOCK_OK && last)
		bl_count(&b->numbers, BL_COUNT_RELEASED);
	pthread_mutex_lock(&b->mu);
	if (last)
		bl_hold_drop(b, h);
	else
		bl_hold_done(b, h);
	pthread_mutex_unlock(&b->mu);
	return rc;
}
