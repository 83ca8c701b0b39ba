#include "client/handover.h"

#include <string.h>

#include "client/acquire.h"

static int export(struct bl_call *call, struct bl_hold *h, char *ret, size_t size)
{
	/* All that the heir will find in the row, and a whole lease to come for it. */
	struct bl_change change = {.what = BL_CHANGE_DEPTH,
	                           .ref = bl_hold_ref(call, h),
	                           .depth = h->depth,
	                           .lease_ms = h->lease_ms};
	struct bl_ticket ticket = {.key = h->key,
	                           .fence = h->fence,
	                           .depth = h->depth,
	                           .lease_ms = h->lease_ms,
	                           .min_hold_ms = h->min_hold_ms};
	int rc;

	bl_owner_full(&h->owner, &call->client->process, ticket.owner);
	if (!bl_hold_held(call, h))
		return bl_hold_lost(call, h);
	rc = bl_ticket_write(&ticket, ret, size, call->err);
	if (rc == BIZLOCK_OK)
		rc = bl_retry_change(call, &change);
	if (rc != BIZLOCK_OK)
		return rc;
	return change.matched && bl_hold_held(call, h) ? rc : bl_hold_lost(call, h);
}

int bl_client_export(struct bl_call *call, char *ret, size_t size)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;
	int rc;

	pthread_mutex_lock(&b->mu);
	h = bl_hold_begin(call, &rc);
	pthread_mutex_unlock(&b->mu);
	if (!h)
		return rc != BIZLOCK_OK ? rc : bl_hold_none(call);
	rc = export(call, h, ret, size);
	pthread_mutex_lock(&b->mu);
	if (rc == BIZLOCK_OK)
		bl_hold_litter(b, h, false); /* its doorbell can not be handed over */
	else
		bl_hold_done(b, h);
	pthread_mutex_unlock(&b->mu);
	return rc;
}

/* A reply was lost on the way: is the row ours? */
static int check(struct bl_call *call, const struct bl_change *change, bool *ret_ours)
{
	struct bl_row row = {.found = false};
	int rc = change->repeated ? bl_retry_look(call, &row, call->err) : BIZLOCK_OK;

	*ret_ours = rc == BIZLOCK_OK && row.found && row.left_us > 0 &&
	            row.fence == change->ref.fence && strcmp(row.owner, call->owner_full) == 0;
	return rc;
}

static int adopt(struct bl_call *call, const struct bl_ticket *ticket, bl_time *ret_sent)
{
	struct bl_change change = {.what = BL_CHANGE_ADOPT,
	                           .ref = {&call->key, ticket->owner, ticket->fence},
	                           .heir = call->owner_full,
	                           .lease_ms = ticket->lease_ms};
	bl_time began = bl_now();
	int rc = bl_retry_change(call, &change);
	bool ours = rc == BIZLOCK_OK && change.matched;

	*ret_sent = ours ? change.sent : began;
	if (rc == BIZLOCK_OK && !ours)
		rc = check(call, &change, &ours);
	if (rc != BIZLOCK_OK || ours)
		return rc;
	return bl_err_set(call->err, BIZLOCK_LOST,
	                  "it was imported before, its lease was over, or it was broken");
}

/* With the mutex held. */
static void settle(struct bizlock *b, struct bl_hold *h, const struct bl_ticket *ticket,
                   bl_time sent)
{
	struct bl_won won = {.fence = ticket->fence, .sent = sent};
	struct bl_request request = {.lease_ms = ticket->lease_ms,
	                             .min_hold_ms = ticket->min_hold_ms,
	                             .max_hold_ms = b->config.max_hold_ms};

	bl_acquire_settle(b, h, &won, &request);
	h->depth = h->stored = ticket->depth;
}

int bl_client_import(struct bl_call *call, const struct bl_ticket *ticket, bizlock_grant *ret)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;
	bl_time sent;
	bool is_new;
	int rc;

	pthread_mutex_lock(&b->mu);
	rc = bl_acquire_begin(call, true, &h);
	is_new = rc == BIZLOCK_OK && h->state == BL_HOLD_ACQUIRING;
	pthread_mutex_unlock(&b->mu);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = is_new ? adopt(call, ticket, &sent)
	            : bl_err_set(call->err, BIZLOCK_MISUSE, "this owner holds that key already");
	pthread_mutex_lock(&b->mu);
	if (rc == BIZLOCK_OK) {
		settle(b, h, ticket, sent);
		bl_acquire_grant(h, ticket->lease_ms, false, ret);
	}
	h->unsure |= rc == BIZLOCK_UNKNOWN;
	bl_acquire_end(b, h);
	pthread_mutex_unlock(&b->mu);
	return rc;
}
