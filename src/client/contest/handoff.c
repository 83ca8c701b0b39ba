/* Two threads meet here: the holder, and the next owner, by its place in the wait queue. The mutex
 * is free while the statement is on its way. While the place is OFFERED, only the holder writes to
 * it and to its contest, and the next owner waits without a limit: the statement ends at io_timeout
 * at the latest. The holder then takes the mutex, writes the result and the place's next state, and
 * touches the place no more. */
#include "client/contest/handoff.h"

#include "client/conn/retry.h"
#include "client/contest/attempt.h"
#include "core/lease.h"
#include "store/session/errclass.h"
#include "store/shared/sharers.h"

/* How many hand-offs there may be in a row, and for how long: waiters of other processes sleep
 * at the doorbell meanwhile. */
#define HANDOFFS_MAX 16
#define RUN_NS (250 * BL_NS_PER_MS)

/* How long a release waits for a connection to hand over by, if any connection will do. To make a
 * new one may take connect_timeout_ms. */
#define CONN_NS (50 * BL_NS_PER_MS)

/* The statement may wait this long for a row that a transaction has fenced: a thread with less
 * time left asks the server itself. */
#define ROW_NS (1000 * BL_NS_PER_MS)

/* In a cluster a read may not see yet what others have committed, so slots are not handed over. */
static bool moves(const struct bizlock *b, const struct bl_hold *h)
{
	return h->key.slot > 0 ? h->limit && !bl_sql_in_cluster(&b->sql) : h->bell;
}

/* Until when h may be handed over; 0: it may not. */
static bl_time handoff_until(const struct bizlock *b, const struct bl_hold *h)
{
	if (h->state != BL_HOLD_HELD || !moves(b, h))
		return 0;
	return bl_earlier(h->expires, h->run + RUN_NS);
}

/* Both have the lock alone, or share it with the same limit. */
static bool is_of_its_kind(const struct bl_contest *c, const struct bl_hold *h)
{
	return !(c->request->flags & BIZLOCK_SHARED) == (h->key.slot == 0) &&
	       c->request->limit == h->limit;
}

/* ---- the next one ---------------------------------------------------------------------- */

static uint32_t held_here(const struct bizlock *b, const struct bl_key *key)
{
	uint32_t n = 0;

	for (const struct bl_hold *h = bl_held_of_key(&b->held, key); h; h = bl_held_next_of_key(h))
		n += h->state == BL_HOLD_HELD;
	return n;
}

/* Until when an owner of this client that holds the lock may hand it over; 0: none may. If a run
 * has had all its hand-offs, the first in the queue waits in vain to the end of the run, and then
 * goes to the server. It does not wait for a slot of a shared lock while the server may have a free
 * one: until this client has them all. */
static bl_time hope_until(const struct bl_contest *c)
{
	const struct bl_hold *h = bl_held_of_key(&c->client->held, &c->call->key);
	uint32_t limit = c->request->limit;
	bl_time until = 0;

	if (held_here(c->client, &c->call->key) < limit)
		return 0;
	for (; h; h = bl_held_next_of_key(h))
		if (is_of_its_kind(c, h))
			until = bl_later(until, handoff_until(c->client, h));
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
	until = bl_earlier(c->wait.end, hope_until(c));
	if (rc == BIZLOCK_OK && place->state == BL_PLACE_WAITS && !bl_passed(until)) {
		/* No signal comes with an interrupt. */
		c->parked_until = bl_earlier(until, bl_now() + BL_WAKE_NS);
		return BL_PARKED;
	}
	place->state = BL_PLACE_ASKS;
	return rc != BIZLOCK_OK ? rc : BL_AGAIN;
}

/* ---- the holder ---------------------------------------------------------------------- */

static bool wants_the_same(const struct bl_place *place, const struct bl_hold *h)
{
	return place && is_of_its_kind(place->whose, h);
}

/* While this client does not have all slots, the first in line is to ask the server for one more,
 * and those behind it get the slots that are handed over. */
static struct bl_place *next_for_slot(const struct bizlock *b, const struct bl_hold *h,
                                      struct bl_place *first)
{
	struct bl_place *place = first;

	if (wants_the_same(bl_place_next(first), h) && held_here(b, &h->key) < h->limit)
		place = bl_place_next(first);
	while (wants_the_same(place, h) && place->state != BL_PLACE_WAITS)
		place = bl_place_next(place);
	return place;
}

static struct bl_place *next_in_line(const struct bizlock *b, const struct bl_hold *h)
{
	const struct bl_queue *queue = bl_queue_find(&b->queues, &h->key);
	struct bl_place *place = queue ? bl_queue_first(queue) : NULL;

	if (h->limit && wants_the_same(place, h))
		place = next_for_slot(b, h, place);
	return wants_the_same(place, h) ? place : NULL;
}

/* The place that is to have the lock next, or NULL. */
static struct bl_place *next_of(const struct bizlock *b, const struct bl_hold *h)
{
	struct bl_place *place = next_in_line(b, h);

	if (!place || place->state != BL_PLACE_WAITS || b->state != BL_CLIENT_OPEN || h->fenced)
		return NULL;
	if (h->handoffs >= HANDOFFS_MAX || bl_passed(handoff_until(b, h)) || bl_hold_rest_us(h) > 0)
		return NULL;
	if (place->whose->call->deadline < bl_now() + ROW_NS ||
	    atomic_load(&b->wakes) != place->whose->call->wakes)
		return NULL;
	return place;
}

/* The connection that has the doorbell; for a slot, any connection. NULL: none is free in time. */
static struct bl_conn *borrow(struct bizlock *b, const struct bl_hold *h)
{
	const struct bl_conn *with_bell = h->limit ? NULL : bl_pool_find(&b->pool, h->bell);
	struct bl_patience patience = {.end = bl_now() + CONN_NS};
	struct bl_conn *ret = NULL;
	struct bl_err ignored;

	if (h->limit) {
		bl_pool_take(&b->pool, patience, &ret, &ignored);
	} else if (with_bell) {
		patience.end = bl_conn_stalls(with_bell);
		bl_pool_take_id(&b->pool, h->bell, patience, &ret, &ignored);
	}
	return ret;
}

/* The next place, and a connection to hand over by. Getting the connection may take time, so the
 * lock is offered only after that. NULL: no place, or no connection; the release then goes its own
 * way, which may be without the doorbell. */
static struct bl_place *offer(struct bizlock *b, const struct bl_hold *h, struct bl_conn **ret)
{
	struct bl_place *place = next_of(b, h);

	*ret = place ? borrow(b, h) : NULL;
	place = *ret ? next_of(b, h) : NULL;
	if (!place) {
		if (*ret)
			bl_pool_put(&b->pool, *ret);
		return NULL;
	}
	place->state = BL_PLACE_OFFERED;
	place->aside = h->limit;
	if (place->aside)
		bl_queue_wake_first(&b->queues, &h->key);
	return place;
}

/* Row and doorbell are the next owner's now. As in a contest, the next owner looks first in four
 * cases: it has slept through the lease; the row was not the hold's any more, so its fence was
 * drawn before the row was free, and somebody may have had a larger fence since; somebody waits for
 * the slot; or the fence is not valid, and will be refused. */
static void take_over(struct bl_hold *h, struct bl_place *place, const struct bl_handed *handed,
                      bl_time sent)
{
	struct bl_contest *next = place->whose;
	struct bl_hold *to = next->members[0]->hold;

	bl_held_contends(&next->client->held, to);
	to->bell = h->bell;
	h->bell = 0;
	to->key.slot = next->call->key.slot = h->key.slot;
	next->goals[0]->fence = handed->fence;
	next->goals[0]->took_over = false;
	next->unsure = !handed->from_hold || handed->met || handed->fence <= next->floor ||
	               handed->fence >= BL_SQL_FENCES ||
	               bl_passed(bl_lease_end(sent, next->request->lease_ms * 1000LL));
	if (next->unsure)
		return;
	bl_hold_settle(next->client, to, handed->fence, sent, next->request);
	to->handoffs = h->handoffs + 1;
	to->run = h->run;
	next->handed_over = true;
	place->state = BL_PLACE_HOLDS;
}

static bool is_first(const struct bizlock *b, const struct bl_place *place)
{
	return bl_queue_first(bl_queue_find(&b->queues, place->key)) == place;
}

static int send_handoff(struct bl_conn *conn, struct bl_ref hold, const struct bl_claim *claim,
                        uint32_t limit, struct bl_handed *ret, struct bl_err *err)
{
	if (limit)
		return bl_shared_hand_over(&conn->session, hold, claim, limit, ret, err);
	return bl_take_from(&conn->session, hold, claim, hold.bell, ret, err);
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
	claim = bl_attempt_claim(place->whose);
	bl_err_clear(&err);
	bl_attempt_note_floor(place->whose);
	bl_unlock(b);
	sent = bl_now();
	rc = send_handoff(conn, bl_hold_ref(call, h), &claim, h->limit, &handed, &err);
	bl_lock(b);
	BL_TRACE_HOLD(b, h, "hands over to %s of this client: %s", place->whose->call->owner.name,
	              handed.taken       ? "done"
	              : rc == BIZLOCK_OK ? "the row is not there"
	                                 : err.msg);
	*ret_repeated = rc == BIZLOCK_CONN && bl_may_have_run(&err);
	if (rc != BIZLOCK_OK)
		bl_count_retry(&b->numbers, &err);
	place->state = BL_PLACE_ASKS;
	place->whose->unsure = *ret_repeated;
	place->whose->sent = sent; /* even if the answer was lost: the row may be found later */
	if (handed.taken)
		take_over(h, place, &handed, sent);
	/* A next owner that may have a row looks at once: others wait for that row. Without a row,
	 * if it is not the first, it waits for another slot. */
	place->aside &= place->state == BL_PLACE_HOLDS || place->whose->unsure;
	if (place->state == BL_PLACE_ASKS && !place->whose->unsure && !is_first(b, place))
		place->state = BL_PLACE_WAITS;
	bl_place_wake(place);
	bl_pool_put(&b->pool, conn);
	return handed.from_hold;
}
