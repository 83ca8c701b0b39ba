#include "client/request/op.h"

#include <stdlib.h>
#include <string.h>

#include "client/conn/retry.h"
#include "client/giveback/release.h"
#include "client/request/acquire.h"
#include "client/request/renew.h"
#include "core/backoff.h"
#include "store/table/schema.h"

/* When to look again at a hold that another call of the owner is at work on. */
#define BUSY_NS (5 * BL_NS_PER_MS)

/* How long one try of a release or a renewal may take: it keeps a thread and a connection. Tries go
 * on as long as those of a call would. */
#define TRY_NS (2 * BL_MOMENT_NS)

struct bl_op *bl_op_new(size_t n, const char *note)
{
	size_t size = note ? strlen(note) + 1 : 0;
	struct bl_op *op =
	        calloc(1, sizeof(*op) + n * (sizeof(*op->members) + sizeof(*op->grants)) + size);

	if (!op)
		return NULL;
	op->n = n;
	op->grants = (bizlock_grant *)(void *)(op->members + n);
	op->note = (char *)(op->grants + n);
	if (note)
		memcpy(op->note, note, size);
	return op;
}

void bl_op_free(struct bl_op *op)
{
	struct bl_link *next;

	if (!op)
		return;
	for (struct bl_link *at = op->parts.first; at; at = next) {
		next = at->next;
		free(BL_LISTED(at, struct bl_op, line));
	}
	bl_acquisition_forget(&op->acquisition);
	free(op->why);
	free(op);
}

void bl_op_use(struct bl_op *op, struct bl_op_scratch *scratch)
{
	for (size_t i = 0; i < op->n; i++)
		op->members[i].call.err = &scratch->err;
	op->acquisition.contest.row = &scratch->row;
}

static void on_place(struct bl_place *place)
{
	bl_op_wake(place->whose->op);
}

int bl_op_aim_acquire(struct bl_op *op, const struct bl_request *request)
{
	int rc;

	op->request = *request;
	op->request.note = op->request.note ? op->note : NULL;
	/* A request that tries once dials itself: its three tries would end before the pool's
	 * memory of a silent host does. */
	for (size_t i = 0; i < op->n; i++)
		op->members[i].call.comes_again = !op->request.once;
	rc = bl_acquisition_begin(&op->acquisition, op->members, op->n, &op->request);
	op->acquisition.contest.op = op;
	op->acquisition.contest.place.woken = on_place;
	return rc;
}

static void aim_at_hold(struct bl_op *op, enum bl_op_kind kind)
{
	op->kind = kind;
	op->patience = op->members->call.io_deadline;
	op->members->call.comes_again = true;
}

static int add_part(struct bl_op *whole, const struct bl_member *m)
{
	struct bl_op *part = bl_op_new(1, NULL);

	if (!part)
		return bl_err_set(m->call.err, BIZLOCK_NOMEM, "out of memory");
	*part->members = *m;
	part->whole = whole;
	aim_at_hold(part, BL_OP_RELEASES);
	bl_list_add(&whole->parts, &part->line);
	return BIZLOCK_OK;
}

int bl_op_aim_release(struct bl_op *op)
{
	int rc = bl_members_sort(op->members, op->n);

	aim_at_hold(op, BL_OP_RELEASES);
	for (size_t i = 0; rc == BIZLOCK_OK && op->n > 1 && i < op->n; i++)
		rc = add_part(op, &op->members[i]);
	op->parts_left = op->parts.count;
	return rc;
}

int bl_op_aim_renew(struct bl_op *op, uint32_t lease_ms)
{
	aim_at_hold(op, BL_OP_RENEWS);
	op->request.lease_ms = lease_ms;
	return BIZLOCK_OK;
}

/* ---- work on a hold that is there ------------------------------------------------------------ */

static int begin_held(struct bl_op *op)
{
	struct bl_call *call = &op->members->call;
	bool busy;

	op->members->hold = bl_hold_begin_now(call, &busy);
	if (op->members->hold)
		return BIZLOCK_OK;
	if (!busy)
		return bl_hold_none(call);
	if (bl_passed(call->io_deadline))
		return bl_err_set(call->err, BIZLOCK_TIMEOUT,
		                  "another call of this owner is at work on it");
	op->until = bl_now() + BUSY_NS;
	return BL_PARKED;
}

static void begin_try(struct bl_op *op)
{
	op->members->call.io_deadline = bl_earlier(op->patience, bl_now() + TRY_NS);
}

/* BL_PARKED: the next try may do better. */
static int end_try(struct bl_op *op, int rc)
{
	struct bl_call *call = &op->members->call;
	bool may_heal;

	op->maybe |= rc == BIZLOCK_UNKNOWN;
	may_heal = rc == BIZLOCK_TIMEOUT || rc == BIZLOCK_UNKNOWN || bl_may_heal(call->err) ||
	           bl_may_be_swapped(call->err, &op->missing_at);
	if (rc != BIZLOCK_OK && may_heal && !bl_passed(op->patience) &&
	    call->client->state == BL_CLIENT_OPEN) {
		op->until = bl_now() + bl_backoff_ns(op->pauses++, bl_random(call->client));
		return BL_PARKED;
	}
	if (rc != BIZLOCK_OK && op->maybe)
		rc = call->err->code = BIZLOCK_UNKNOWN;
	return rc;
}

/* ---- a release ------------------------------------------------------------------------------ */

/* Nobody in this client waits for the lock, so it is not handed over. */
static bool release_suits_batch(const struct bl_call *call, const struct bl_hold *h)
{
	const struct bizlock *b = call->client;

	return b->config.combine && (h->key.slot > 0) == !h->bell && bl_release_is_plain(h) &&
	       !bl_queue_find(&b->queues, &h->key);
}

static int release_ended(struct bl_op *op, bool last, int rc)
{
	rc = bl_release_end(&op->members->call, op->members->hold, last, rc);
	op->members->hold = NULL;
	return rc;
}

int bl_op_release_last(struct bl_op *op)
{
	int rc;

	begin_try(op);
	rc = end_try(op, bl_release_last(&op->members->call, op->members->hold, op->maybe));
	return rc == BL_PARKED ? rc : release_ended(op, true, rc);
}

static int release_step(struct bl_op *op)
{
	struct bl_call *call = &op->members->call;
	bool last;
	int rc;

	if (op->members->hold) /* it has tried before */
		return bl_op_release_last(op);
	rc = begin_held(op);
	if (rc != BIZLOCK_OK)
		return rc;
	if (release_suits_batch(call, op->members->hold))
		return BL_AGAIN;
	last = op->members->hold->depth == 1;
	if (op->members->hold->state == BL_HOLD_HELD && last)
		return bl_op_release_last(op);
	return release_ended(op, last, bl_release_level(call, op->members->hold));
}

/* ---- a renewal ------------------------------------------------------------------------------- */

/* Waits for the renewer, as a call does; but not when the client is closed. */
static int wait_for_renewer(struct bl_op *op)
{
	struct bl_call *call = &op->members->call;

	if (!op->members->hold->renewing)
		return BIZLOCK_OK;
	op->until = bl_now() + BUSY_NS;
	return bl_passed(op->patience) || call->client->state != BL_CLIENT_OPEN
	               ? bl_renew_in_vain(call)
	               : BL_PARKED;
}

static int renew_step(struct bl_op *op)
{
	struct bl_call *call = &op->members->call;
	int rc = op->members->hold ? BIZLOCK_OK : begin_held(op);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = wait_for_renewer(op);
	if (rc == BIZLOCK_OK) {
		begin_try(op);
		rc = bl_renew_hold(call, op->members->hold, op->request.lease_ms);
		rc = rc == BIZLOCK_LOST ? rc : end_try(op, rc);
	}
	if (rc == BL_PARKED)
		return rc;
	bl_hold_done(call->client, op->members->hold);
	op->members->hold = NULL;
	return rc;
}

/* ---- an acquisition ------------------------------------------------------------------------ */

static int acquire_step(struct bl_op *op)
{
	int rc = bl_acquisition_step(&op->acquisition);

	op->until = op->acquisition.until;
	return rc;
}

int bl_op_go_on(struct bl_op *op, int rc)
{
	rc = bl_acquisition_go_on(&op->acquisition, rc);
	op->until = op->acquisition.until;
	return rc;
}

int bl_op_step(struct bl_op *op)
{
	struct bl_call *call = &op->members->call;

	bl_err_clear(call->err);
	*op->acquisition.contest.row = (struct bl_row){.found = false};
	/* The interrupt of a close may have come just before the request was started. */
	if (op->cancelled || call->client->state == BL_CLIENT_CLOSING)
		bl_op_interrupt(op);
	if (op->kind == BL_OP_RELEASES)
		return release_step(op);
	return op->kind == BL_OP_RENEWS ? renew_step(op) : acquire_step(op);
}

void bl_op_interrupt(struct bl_op *op)
{
	for (size_t i = 0; i < op->n; i++)
		bl_call_interrupt(&op->members[i].call);
}

/* ---- its end ------------------------------------------------------------------------------- */

static int acquire_end(struct bl_op *op, int rc)
{
	if (rc == BIZLOCK_OK && op->cancelled) /* nobody wants it any more */
		rc = bl_err_set(op->members->call.err, BIZLOCK_CANCELLED,
		                "the wait was interrupted");
	bl_acquisition_end(&op->acquisition, rc, op->grants);
	return rc;
}

void bl_op_end(struct bl_op *op, int rc)
{
	const struct bl_call *call = &op->members->call;

	if (op->kind == BL_OP_ACQUIRES)
		rc = acquire_end(op, rc);
	op->rc = bl_err_missing(call->err, rc);
	if (rc == BIZLOCK_OK)
		return;
	op->native = call->err->native;
	if (op->n == 1) /* else the error names the key that it is about */
		bl_err_wrap(call->err, "%s/%s", call->key.type, call->key.id);
	op->why = strdup(call->err->msg);
}

/* Of several errors, the first in the caller's order counts. */
struct bl_op *bl_op_end_part(struct bl_op *part)
{
	struct bl_op *whole = part->whole;
	size_t index = part->members->index;

	if (part->rc != BIZLOCK_OK && (whole->rc == BIZLOCK_OK || index < whole->failed)) {
		free(whole->why);
		whole->rc = part->rc;
		whole->failed = index;
		whole->native = part->native;
		whole->why = part->why;
		part->why = NULL;
	}
	bl_op_free(part);
	return --whole->parts_left == 0 ? whole : NULL;
}
