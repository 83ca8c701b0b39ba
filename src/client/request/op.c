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

struct bl_op *bl_op_new(struct bizlock *b, const struct bl_key *key, const struct bl_owner *owner,
                        int64_t wait_ms, const char *note)
{
	size_t size = note ? strlen(note) + 1 : 0;
	struct bl_op *op = calloc(1, sizeof(*op) + size);

	if (!op)
		return NULL;
	bl_call_begin(&op->m.call, b, key, owner, wait_ms, NULL);
	if (note)
		memcpy(op->note, note, size);
	return op;
}

void bl_op_use(struct bl_op *op, struct bl_op_scratch *scratch)
{
	op->m.call.err = &scratch->err;
	op->acquisition.contest.row = &scratch->row;
}

static void on_place(struct bl_place *place)
{
	bl_op_wake(place->whose->op);
}

void bl_op_aim(struct bl_op *op, const struct bl_request *request)
{
	op->request = *request;
	op->request.note = op->request.note ? op->note : NULL;
	bl_acquisition_begin(&op->acquisition, &op->m, 1, &op->request);
	op->acquisition.contest.op = op;
	op->acquisition.contest.place.woken = on_place;
}

void bl_op_free(struct bl_op *op)
{
	if (op)
		free(op->why);
	free(op);
}

/* ---- work on a hold that is there ------------------------------------------------------------ */

static int begin_held(struct bl_op *op)
{
	struct bl_call *call = &op->m.call;
	bool busy;

	op->m.hold = bl_hold_begin_now(call, &busy);
	if (op->m.hold)
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
	op->m.call.io_deadline = bl_earlier(op->patience, bl_now() + TRY_NS);
}

/* BL_PARKED: the next try may do better. */
static int end_try(struct bl_op *op, int rc)
{
	struct bl_call *call = &op->m.call;
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
	rc = bl_release_end(&op->m.call, op->m.hold, last, rc);
	op->m.hold = NULL;
	return rc;
}

int bl_op_release(struct bl_op *op)
{
	int rc;

	begin_try(op);
	rc = end_try(op, bl_release_last(&op->m.call, op->m.hold, op->maybe));
	return rc == BL_PARKED ? rc : release_ended(op, true, rc);
}

static int release_step(struct bl_op *op)
{
	struct bl_call *call = &op->m.call;
	bool last;
	int rc;

	if (op->m.hold) /* it has tried before */
		return bl_op_release(op);
	rc = begin_held(op);
	if (rc != BIZLOCK_OK)
		return rc;
	if (release_suits_batch(call, op->m.hold))
		return BL_AGAIN;
	last = op->m.hold->depth == 1;
	if (op->m.hold->state == BL_HOLD_HELD && last)
		return bl_op_release(op);
	return release_ended(op, last, bl_release_level(call, op->m.hold));
}

/* ---- a renewal ------------------------------------------------------------------------------- */

/* Waits for the renewer, as a call does; but not when the client is closed. */
static int wait_for_renewer(struct bl_op *op)
{
	struct bl_call *call = &op->m.call;

	if (!op->m.hold->renewing)
		return BIZLOCK_OK;
	op->until = bl_now() + BUSY_NS;
	return bl_passed(op->patience) || call->client->state != BL_CLIENT_OPEN
	               ? bl_renew_in_vain(call)
	               : BL_PARKED;
}

static int renew_step(struct bl_op *op)
{
	struct bl_call *call = &op->m.call;
	int rc = op->m.hold ? BIZLOCK_OK : begin_held(op);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = wait_for_renewer(op);
	if (rc == BIZLOCK_OK) {
		begin_try(op);
		rc = bl_renew_hold(call, op->m.hold, op->request.lease_ms);
		rc = rc == BIZLOCK_LOST ? rc : end_try(op, rc);
	}
	if (rc == BL_PARKED)
		return rc;
	bl_hold_done(call->client, op->m.hold);
	op->m.hold = NULL;
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
	struct bl_call *call = &op->m.call;

	bl_err_clear(call->err);
	*op->acquisition.contest.row = (struct bl_row){.found = false};
	/* As if an interrupt had come. The interrupt of a close may have come just before the
	 * request was started. */
	if (op->cancelled || call->client->state == BL_CLIENT_CLOSING)
		call->wakes = atomic_load(&call->client->wakes) - 1;
	if (op->kind == BL_OP_RELEASES)
		return release_step(op);
	return op->kind == BL_OP_RENEWS ? renew_step(op) : acquire_step(op);
}

/* ---- its end ------------------------------------------------------------------------------- */

static int acquire_end(struct bl_op *op, int rc)
{
	/* What it has to give back may take a while, and keeps a thread. */
	op->m.call.io_deadline = bl_earlier(op->m.call.io_deadline, bl_now() + TRY_NS);
	if (rc == BIZLOCK_OK && op->cancelled) /* nobody wants it any more */
		rc = bl_err_set(op->m.call.err, BIZLOCK_CANCELLED, "the wait was interrupted");
	bl_acquisition_end(&op->acquisition, rc, &op->grant);
	return rc;
}

int bl_op_end(struct bl_op *op, int rc)
{
	if (op->kind == BL_OP_ACQUIRES)
		rc = acquire_end(op, rc);
	op->rc = rc = bl_err_missing(op->m.call.err, rc);
	if (rc != BIZLOCK_OK) {
		op->native = op->m.call.err->native;
		op->why = strdup(op->m.call.err->msg);
	}
	return rc;
}
