/* Two threads meet here, and the mutex is free while the statement is on its way. While the
 * place is OFFERED, only the holder writes to it and to its contest, and the next one waits
 * without a limit: the statement ends at io_timeout at the latest. The holder then takes the
 * mutex, writes what became of it, and HOLDS or ASKS, and touches the place no more. */
#include "client/lock/handoff.h"

#include "client/conn/retry.h"
#include "core/lease.h"
#include "store/errclass.h"

/* How many hand-offs there may be in a row, and for how long: waiters of other processes sleep
 * at the doorbell meanwhile. */
#define HANDOFFS_MAX 16
#define RUN_NS (250 * BL_NS_PER_MS)

/* The statement may wait this long for a row that a transaction has fenced: a thread with less
 * time left asks the server itself. */
#define ROW_NS (1000 * BL_NS_PER_MS)

/* Until when h may be handed over; 0: it may not. */
static bl_time handoff_until(const struct bl_hold *h)
{
	if (h->state != BL_HOLD_HELD || !h->bell || h->key.shared)
		return 0;
	return bl_earlier(h->expires, h->run + RUN_NS);
}

/* ---- the next one ---------------------------------------------------------------------- */

/* Until when an owner of this client that holds the lock may hand it over; 0: none may. Its run
 * may have had all its hand-offs: the first in the queue then waits to the end of the run in
 * vain, and goes to the server. */
static bl_time hope_until(const struct bizlock *b, const struct bl_key *key)
{
	bl_time until = 0;

	for (const struct bl_hold *h = bl_held_of_key(&b->held, key); h && until == 0;
	     h = bl_held_next_of_key(h))
		until = handoff_until(h);
	return until;
}

int bl_handoff_hope(struct bl_contest *c)
{
	struct bl_place *place = &c->place;
	bl_time until;
	int rc;

	c->parked_until = BL_NEVER;
	if (place->state == BL_PLACE_OFFERED)
		return BL_PARKED;
	if (place->state == BL_PLACE_HOLDS)
		return BIZLOCK_OK;
	rc = bl_call_check(c->call);
	until = bl_earlier(c->wait.end, hope_until(c->client, &c->call->key));
	if (rc == BIZLOCK_OK && place->state == BL_PLACE_WAITS && !bl_passed(until)) {
		/* No signal comes with an interrupt. */
		c->parked_until = bl_earlier(until, bl_now() + BL_WAKE_NS);
		return BL_PARKED;
	}
	place->state = BL_PLACE_ASKS;
	return rc != BIZLOCK_OK ? rc : BL_AGAIN;
}

/* ---- the holder ---------------------------------------------------------------------- */

/* The place that is to have it next, or NULL. */
static struct bl_place *next_of(const struct bizlock *b, const struct bl_hold *h)
{
	const struct bl_queue *queue = bl_queue_find(&b->queues, &h->key);
	struct bl_place *place = queue ? queue->head : NULL;

	if (!place || place->state != BL_PLACE_WAITS || b->state != BL_CLIENT_OPEN || h->fenced)
		return NULL;
	if (h->handoffs >= HANDOFFS_MAX || bl_passed(handoff_until(h)) || bl_hold_rest_us(h) > 0)
		return NULL;
	if (place->whose->call->deadline < bl_now() + ROW_NS ||
	    atomic_load(&b->wakes) != place->whose->call->wakes)
		return NULL;
	return place;
}

/* The next one, and the connection that has the doorbell. To get that may take time, so the lock
 * is offered only then. If the connection does not move, the release goes its own way, which may
 * be without the doorbell. NULL: there is none. */
static struct bl_place *offer(struct bizlock *b, const struct bl_hold *h, struct bl_conn **ret)
{
	struct bl_place *place = next_of(b, h);
	const struct bl_conn *conn = place ? bl_pool_find(&b->pool, h->bell) : NULL;
	struct bl_err ignored;

	*ret = NULL;
	if (conn) {
		struct bl_patience patience = {.end = bl_conn_stalls(conn)};

		bl_pool_take_id(&b->pool, h->bell, patience, ret, &ignored);
	}
	place = *ret ? next_of(b, h) : NULL;
	if (place)
		place->state = BL_PLACE_OFFERED;
	else if (*ret)
		bl_pool_put(&b->pool, *ret);
	return place;
}

/* The row is the next one's, and so is the doorbell. As in a contest, one that has slept through
 * the lease looks what became of it. So does one whose row was not the hold's any more: its
 * fence was drawn before the row was free, and somebody may have had a larger one since. */
static void take_over(struct bl_hold *h, struct bl_place *place, const struct bl_handed *handed,
                      bl_time sent)
{
	struct bl_contest *next = place->whose;
	struct bl_hold *to = next->members[0]->hold;

	to->bell = h->bell;
	h->bell = 0;
	next->goals[0]->fence = handed->fence;
	next->goals[0]->took_over = false;
	next->sent = sent;
	next->unsure = !handed->from_hold ||
	               bl_passed(bl_lease_end(sent, next->request->lease_ms * 1000LL));
	if (next->unsure)
		return;
	bl_hold_settle(next->client, to, handed->fence, sent, next->request);
	to->handoffs = h->handoffs + 1;
	to->run = h->run;
	next->handed_over = true;
	place->state = BL_PLACE_HOLDS;
}

bool bl_handoff(struct bl_call *call, struct bl_hold *h, bool *ret_repeated)
{
	struct bizlock *b = call->client;
	struct bl_handed handed = {.taken = false};
	struct bl_conn *conn;
	struct bl_place *place = offer(b, h, &conn);
	struct bl_claim claim;
	struct bl_err err;
	bl_time sent;
	int rc;

	*ret_repeated = false;
	if (!place)
		return false;
	claim = (struct bl_claim){.owner = place->whose->call->owner_full,
	                          .note = place->whose->request->note,
	                          .lease_ms = place->whose->request->lease_ms};
	bl_err_clear(&err);
	bl_unlock(b);
	sent = bl_now();
	rc = bl_take_from(&conn->session, bl_hold_ref(call, h), &claim, call->bell, &handed, &err);
	bl_lock(b);
	*ret_repeated = rc == BIZLOCK_CONN && bl_may_have_run(&err);
	if (rc != BIZLOCK_OK)
		bl_count_retry(&b->numbers, &err);
	place->state = BL_PLACE_ASKS;
	place->whose->unsure = *ret_repeated;
	if (handed.taken)
		take_over(h, place, &handed, sent);
	bl_place_wake(place);
	bl_pool_put(&b->pool, conn);
	return handed.from_hold;
}
