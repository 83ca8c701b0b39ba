#include "client/hold/drop.h"

#include "client/conn/combine.h"
#include "client/hold/change.h"
#include "client/hold/hold.h"
#include "store/session/errclass.h"
#include "store/watch/watched.h"

/* The connection of the doorbell if it is still there, or else any: then *bell becomes 0, for
 * the doorbell is gone. */
static int lend_with(struct bl_call *call, uint64_t *bell, struct bl_conn **ret)
{
	struct bl_patience patience = {.end = call->io_deadline};
	int rc = BIZLOCK_OK;

	*ret = NULL;
	if (*bell)
		rc = bl_pool_take_id(&call->client->pool, *bell, patience, ret, call->err);
	if (rc != BIZLOCK_OK || *ret)
		return rc;
	*bell = 0;
	return bl_lend(call, ret);
}

/* The statement that was sent on conn was to give back n doorbells at its end. If the statement was
 * refused, the doorbells are still held, and only this connection's end is sure to give them back.
 * A statement that was too large to be sent has changed nothing. */
static void put_with(struct bl_call *call, struct bl_conn *conn, uint64_t *bell, unsigned n, int rc)
{
	if (rc != BIZLOCK_OK && bl_classify(call->err->native) == BL_CLASS_TOO_LARGE)
		n = 0;
	if (n > 0 && rc != BIZLOCK_OK)
		bl_session_leave(&conn->session);
	if (n > 0)
		*bell = 0;
	if (!conn->session.gone)
		conn->bells -= n;
	bl_pool_put(&call->client->pool, conn);
}

/* ---- one row ------------------------------------------------------------------------------- */

struct drop_on {
	struct bl_drop *drop;
	const char *bell;
};

static int drop_row(struct bl_session *s, void *arg, struct bl_err *err)
{
	const struct drop_on *d = arg;

	if (d->drop->to_slot)
		return bl_lock_downgrade(s, d->drop->ref, d->drop->to_slot, d->bell,
		                         &d->drop->matched, err);
	return bl_lock_drop(s, d->drop->ref, d->bell, d->drop->rest_us, &d->drop->matched, err);
}

static int drop_by(struct bl_call *call, struct bl_drop *drop, struct bl_conn *conn)
{
	bool bell_here = drop->bell && drop->bell == conn->id, sent;
	struct drop_on d = {drop, bell_here ? bl_call_bell(call) : NULL};
	int rc = bl_hold_try(call, drop->hold, conn, drop_row, &d, &drop->tried, &sent);

	if (conn->session.woke)
		bl_yields_note(&call->client->yields, &call->key);
	conn->session.woke = false;
	put_with(call, conn, &drop->bell, sent && bell_here, rc);
	return rc;
}

/* past: the connection of the doorbell stalls. The row goes by any other connection, because others
 * want it. The doorbell stays for now: new contenders go past it, and contenders that sleep at it
 * wake when it is given back, later. */
static int drop_alone(struct bl_call *call, struct bl_drop *drop, bool past)
{
	struct bl_conn *conn;
	int rc = past ? bl_lend(call, &conn) : lend_with(call, &drop->bell, &conn);

	return rc == BIZLOCK_OK ? drop_by(call, drop, conn) : rc;
}

/* In a batch with jobs of other threads. If the batch did not remove the row, the statement for one
 * row tells why. */
static int drop_combined(struct bl_call *call, struct bl_drop *drop)
{
	struct bl_job job = {.entry = {.hold = drop->ref, .bell = bl_call_bell(call)}};
	struct bl_conn *conn;
	enum bl_combined combined = bl_combine_release(call, &job, drop->bell, &conn);

	drop->tried.repeated |= job.entry.maybe;
	switch (combined) {
	case BL_COMBINED_LENT:
		return drop_by(call, drop, conn);
	case BL_COMBINED_DONE:
		drop->bell = 0;
		drop->matched = true;
		drop->tried.sent = job.sent;
		return BIZLOCK_OK;
	case BL_COMBINED_STALLS:
		return drop_alone(call, drop, true);
	case BL_COMBINED_FAILED:
		return call->err->code;
	case BL_COMBINED_NOT_DONE:
		break;
	}
	return drop_alone(call, drop, false);
}

/* A row that a transaction has fenced would keep the whole batch waiting. */
static bool may_combine(const struct bl_drop *drop)
{
	const struct bl_key *key = drop->ref.key;
	bool suits = (key->slot > 0) == !drop->bell;

	return suits && drop->ref.owner && drop->rest_us == 0 && !drop->to_slot &&
	       !drop->hold->fenced;
}

int bl_drop(struct bl_call *call, struct bl_drop *drop)
{
	unsigned attempt = 0;
	int rc;

	do {
		rc = may_combine(drop) ? drop_combined(call, drop) : drop_alone(call, drop, false);
	} while (rc != BIZLOCK_OK && bl_try_again(call, &drop->tried, attempt++));
	return bl_tried_rc(call, &drop->tried, rc);
}

/* ---- several ------------------------------------------------------------------------------- */

struct drop_several {
	const struct bl_item *items;
	size_t n;
	const char *suffix;
	bool *ret_dropped;
	bool bells;
};

static int drop_rows(struct bl_session *s, void *arg, struct bl_err *err)
{
	const struct drop_several *d = arg;

	return bl_many_release(s, d->items, d->n, d->suffix, d->bells, d->ret_dropped, err);
}

int bl_drop_several(struct bl_call *call, const struct bl_item *items, size_t n, bool *ret_dropped,
                    uint64_t *bell, struct bl_tried *ret)
{
	struct drop_several d = {items, n, call->client->process.suffix, ret_dropped, false};
	struct bl_conn *conn;
	unsigned attempt = 0;
	int rc;

	*ret = (struct bl_tried){.repeated = false};
	do {
		rc = lend_with(call, bell, &conn);
		if (rc != BIZLOCK_OK)
			continue;
		d.bells = *bell != 0;
		rc = bl_try(call, conn, drop_rows, &d, ret);
		for (size_t i = 0; conn->session.woke && i < n; i++)
			bl_yields_note(&call->client->yields, &items[i].key);
		conn->session.woke = false;
		put_with(call, conn, bell, d.bells ? (unsigned)n : 0, rc);
	} while (rc != BIZLOCK_OK &&
	         (!bl_waited_in_vain(call->err) || bl_table_locked(call->err)) &&
	         bl_try_again(call, ret, attempt++));
	return bl_tried_rc(call, ret, rc);
}

/* ---- a doorbell, and a row that may be there ---------------------------------------------- */

int bl_drop_bell(struct bl_call *call, uint64_t *bell)
{
	struct bl_patience patience = {.end = call->io_deadline};
	struct bizlock *b = call->client;
	struct bl_conn *conn = NULL;
	int rc = BIZLOCK_OK;

	if (*bell)
		rc = bl_pool_take_id(&b->pool, *bell, patience, &conn, call->err);
	if (rc != BIZLOCK_OK)
		return rc;
	*bell = 0; /* given back, or gone with its connection */
	if (!conn)
		return rc;
	bl_unlock(b);
	bl_sleepers_ring(&conn->session, (const char *const[]){bl_call_bell(call)}, 1, call->err);
	bl_lock(b);
	conn->bells -= !conn->session.gone;
	bl_pool_put(&b->pool, conn);
	return rc;
}

struct unknown {
	struct bl_ref ref;
	bool matched;
};

static int sweep(struct bl_session *s, void *arg, struct bl_err *err)
{
	struct unknown *u = arg;

	return bl_shared_sweep(s, u->ref, &u->matched, err);
}

int bl_drop_unknown(struct bl_call *call, const struct bl_hold *hold)
{
	struct unknown u = {.ref = {.key = &call->key,
	                            .owner = call->owner_full,
	                            .fence = bl_hold_sweep_fence(call->client, hold)}};

	return bl_run(call, sweep, &u, NULL);
}
