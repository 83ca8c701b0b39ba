#include "client/handover.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/rnd.h"
#include "client/acquire.h"

/* A reply was lost on the way: is the row the heir's? */
static int check(struct bl_call *call, const struct bl_change *change, bool *ret_done)
{
	struct bl_row row = {.found = false};
	int rc = change->repeated ? bl_retry_look(call, &row, call->err) : BIZLOCK_OK;

	*ret_done = rc == BIZLOCK_OK && row.found && row.left_us > 0 &&
	            row.fence == change->ref.fence && strcmp(row.owner, change->heir) == 0;
	return rc;
}

static int adopt(struct bl_call *call, struct bl_change *change, bool *ret_done)
{
	int rc = bl_retry_change(call, change);

	*ret_done = rc == BIZLOCK_OK && change->matched;
	return rc == BIZLOCK_OK && !*ret_done ? check(call, change, ret_done) : rc;
}

/* On its way the hold belongs to a name that is used once: so the text is worth
 * nothing after its import, and the exporter does not take the row for its own. */
static int make_ticket(struct bl_call *call, const struct bl_hold *h, struct bl_ticket *ret)
{
	uint64_t number;

	if (!bl_random_bytes(&number, sizeof(number)))
		return bl_err_set(call->err, BIZLOCK_UNSUPPORTED,
		                  "the kernel gives no random numbers");
	*ret = (struct bl_ticket){.key = h->key,
	                          .fence = h->fence,
	                          .depth = h->depth,
	                          .lease_ms = h->lease_ms,
	                          .min_hold_ms = h->min_hold_ms};
	snprintf(ret->owner, sizeof(ret->owner), BL_OWNER_EXPORT "%016" PRIx64 "%s", number,
	         call->client->process.suffix);
	return BIZLOCK_OK;
}

static int export(struct bl_call *call, struct bl_hold *h, char *ret, size_t size)
{
	struct bl_change change = {.what = BL_CHANGE_ADOPT,
	                           .ref = bl_hold_ref(call, h),
	                           .hold = h,
	                           .depth = h->depth,
	                           .lease_ms = h->lease_ms};
	char text[BIZLOCK_EXPORT_MAX];
	struct bl_ticket ticket;
	bool done;
	int rc = make_ticket(call, h, &ticket);

	if (!bl_hold_held(call, h))
		return bl_hold_lost(call, h);
	change.heir = ticket.owner;
	if (rc == BIZLOCK_OK)
		rc = bl_ticket_write(&ticket, text, size < sizeof(text) ? size : sizeof(text),
		                     call->err);
	if (rc == BIZLOCK_OK)
		rc = adopt(call, &change, &done);
	if (rc != BIZLOCK_OK)
		return rc;
	if (!done)
		return bl_hold_lost(call, h);
	memcpy(ret, text, strlen(text) + 1);
	return rc;
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
	/* Nobody has the text, so whosever the row is now, it is of no use: else renewals
	 * would keep it, and no release find it. */
	h->exported = rc == BIZLOCK_UNKNOWN;
	if (rc == BIZLOCK_OK || rc == BIZLOCK_UNKNOWN)
		bl_hold_litter(b, h, h->exported); /* doorbells cannot be handed over */
	else
		bl_hold_done(b, h);
	pthread_mutex_unlock(&b->mu);
	return rc;
}

static int import(struct bl_call *call, const struct bl_ticket *ticket, bl_time *ret_sent)
{
	struct bl_change change = {.what = BL_CHANGE_ADOPT,
	                           .ref = {&call->key, ticket->owner, ticket->fence},
	                           .exported = true,
	                           .heir = call->owner_full,
	                           .depth = ticket->depth,
	                           .lease_ms = ticket->lease_ms};
	bool done;
	int rc;

	*ret_sent = bl_now(); /* before the first try: a later one may find it done */
	rc = adopt(call, &change, &done);
	if (rc != BIZLOCK_OK || done)
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
	bl_time sent = 0;
	bool is_new;
	int rc;

	pthread_mutex_lock(&b->mu);
	rc = bl_acquire_begin(call, true, &h);
	is_new = rc == BIZLOCK_OK && h->state == BL_HOLD_ACQUIRING;
	pthread_mutex_unlock(&b->mu);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = is_new ? import(call, ticket, &sent)
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
