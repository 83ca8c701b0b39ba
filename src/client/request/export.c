/* Between export and import, the hold belongs to an owner's name that only the ticket has, and that
 * is used once. So the text is worth nothing after its import, and the exporter does not take the
 * row for its own. */
#include "client/request/export.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/rnd.h"
#include "client/hold/change.h"
#include "client/request/acquire.h"

/* The row becomes new_owner's. */
struct gift {
	struct bl_ref ref;
	const char *new_owner;
	uint32_t depth, lease_ms;
	bool exported; /* see bl_lock_give() */
	bool matched;
};

static int give_row(struct bl_session *s, void *arg, struct bl_err *err)
{
	struct gift *g = arg;

	return bl_lock_give(s, g->ref, g->new_owner, g->depth, g->lease_ms, g->exported,
	                    &g->matched, err);
}

/* rc: of the statement. If a reply was lost on the way: is the row new_owner's? */
static int was_given(struct bl_call *call, const struct gift *g, const struct bl_tried *tried,
                     int rc, bool *ret_done)
{
	struct bl_row row = {.found = false};

	*ret_done = g->matched;
	if (rc != BIZLOCK_OK || g->matched || !tried->repeated)
		return rc;
	rc = bl_look(call, &row);
	if (rc != BIZLOCK_OK)
		return call->err->code = BIZLOCK_UNKNOWN;
	*ret_done = row.found && row.left_us > 0 && row.fence == g->ref.fence &&
	            strcmp(row.owner, g->new_owner) == 0;
	return rc;
}

static int make_ticket(struct bl_call *call, const struct bl_hold *h, struct bl_ticket *ret)
{
	uint64_t number;

	if (!bl_random_bytes(&number, sizeof(number)))
		return bl_err_set(call->err, BIZLOCK_UNSUPPORTED,
		                  "the kernel gives no random numbers");
	*ret = (struct bl_ticket){.key = h->key,
	                          .fence = h->fence,
	                          .limit = h->limit,
	                          .depth = h->depth,
	                          .lease_ms = h->lease_ms,
	                          .min_hold_ms = h->min_hold_ms};
	snprintf(ret->owner, sizeof(ret->owner), BL_OWNER_EXPORT "%016" PRIx64 "%s", number,
	         call->client->process.suffix);
	return BIZLOCK_OK;
}

static int export_hold(struct bl_call *call, struct bl_hold *h, char *ret, size_t size)
{
	struct gift g = {bl_hold_ref(call, h), NULL, h->depth, h->lease_ms, false, false};
	char text[BIZLOCK_EXPORT_MAX];
	struct bl_ticket ticket;
	struct bl_tried tried;
	bool done;
	int rc;

	if (h->state != BL_HOLD_HELD)
		return bl_hold_lost(call, h);
	rc = make_ticket(call, h, &ticket);
	if (rc == BIZLOCK_OK)
		rc = bl_ticket_write(&ticket, text, size < sizeof(text) ? size : sizeof(text),
		                     call->err);
	if (rc != BIZLOCK_OK)
		return rc;
	g.new_owner = ticket.owner;
	rc = bl_hold_change(call, h, false, call->io_deadline, give_row, &g, &tried);
	rc = was_given(call, &g, &tried, rc, &done);
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

	bl_lock(b);
	h = bl_hold_begin_held(call, &rc);
	if (h) {
		rc = export_hold(call, h, ret, size);
		/* UNKNOWN: nobody has the text, so the row is of no use to anybody, and goes. Else
		 * renewals would keep it, and no release would find it. */
		h->exported = rc == BIZLOCK_UNKNOWN;
		if (rc == BIZLOCK_OK || rc == BIZLOCK_UNKNOWN)
			bl_hold_orphan(b, h, h->exported); /* doorbells cannot be exported */
		else
			bl_hold_done(b, h);
	}
	bl_unlock(b);
	return rc;
}

static int import_ticket(struct bl_call *call, const struct bl_ticket *ticket)
{
	struct gift g = {{.key = &call->key, .owner = ticket->owner, .fence = ticket->fence},
	                 call->owner_full,
	                 ticket->depth,
	                 ticket->lease_ms,
	                 true,
	                 false};
	struct bl_tried tried;
	bool done;
	int rc = bl_run(call, give_row, &g, &tried);

	rc = was_given(call, &g, &tried, rc, &done);
	if (rc != BIZLOCK_OK || done)
		return rc;
	return bl_err_set(call->err, BIZLOCK_LOST,
	                  "it was imported before, its lease was over, or it was broken");
}

static void settle_import(struct bizlock *b, struct bl_hold *h, const struct bl_ticket *ticket,
                          bl_time sent)
{
	struct bl_request request = {.limit = ticket->limit,
	                             .lease_ms = ticket->lease_ms,
	                             .min_hold_ms = ticket->min_hold_ms,
	                             .max_hold_ms = bl_config_max_hold_ms(&b->config, 0)};

	bl_hold_settle(b, h, ticket->fence, sent, &request);
	h->depth = h->stored = ticket->depth;
}

int bl_client_import(struct bl_call *call, const struct bl_ticket *ticket, bizlock_grant *ret)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;
	bl_time sent;
	int rc;

	bl_lock(b);
	if (ticket->min_hold_ms > 0)
		bl_hide_life(b);
	rc = bl_acquire_begin(call, true, &h);
	if (rc != BIZLOCK_OK) {
		bl_unlock(b);
		return rc;
	}
	sent = bl_now(); /* before the first try: a later one may find it done */
	rc = h->state == BL_HOLD_ACQUIRING
	             ? import_ticket(call, ticket)
	             : bl_err_set(call->err, BIZLOCK_MISUSE, "this owner holds that key already");
	if (rc == BIZLOCK_OK) {
		settle_import(b, h, ticket, sent);
		bl_hold_grant(h, ticket->lease_ms, false, ret);
	}
	bl_acquire_end(b, h, rc == BIZLOCK_UNKNOWN);
	bl_unlock(b);
	return rc;
}
