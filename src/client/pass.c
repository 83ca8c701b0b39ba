#include "client/pass.h"

#include "client/acquire.h"
#include "core/lease.h"
#include "store/errclass.h"

/* Who waits at the doorbell, in another process most likely, is not rung meanwhile: so
 * no more than this often in a row, and no longer than this. */
#define PASSES_MAX 16
#define RUN_NS (250 * BL_NS_PER_MS)

/* The statement may wait so long for a row that a transaction has fenced: who can not,
 * had better ask for himself. */
#define ROW_NS (1000 * BL_NS_PER_MS)

/* With the mutex held: until when h may be passed on; 0: it may not. */
static bl_time passable_until(const struct bl_hold *h)
{
	if (h->state != BL_HOLD_HELD || !h->bell)
		return 0;
	return bl_earlier(h->expires, h->run + RUN_NS);
}

/* ---- the heir ------------------------------------------------------------------------ */

/* The same of whoever holds the lock. Its turn may be the last one of its run: the first
 * in line waits for its end all the same, and goes to the server then. */
static bl_time hope_until(const struct bizlock *b, const struct bl_key *key)
{
	bl_time until = 0;

	for (const struct bl_hold *h = bl_held_of_key(&b->held, key); h && until == 0;
	     h = bl_held_next_of_key(h))
		until = passable_until(h);
	return until;
}

static void wait_served(struct bl_contender *c, struct bl_place *place)
{
	while (place->state == BL_PLACE_SERVED)
		bl_cond_wait_until(&place->first, &c->client->mu, BL_NEVER);
}

int bl_pass_await(struct bl_contender *c, struct bl_place *place, bl_time end)
{
	bl_time until;
	int rc;

	for (;;) {
		wait_served(c, place);
		if (place->state == BL_PLACE_HOLDS)
			return BIZLOCK_OK;
		rc = bl_call_check(c->call);
		until = bl_earlier(end, hope_until(c->client, &c->call->key));
		if (rc != BIZLOCK_OK || place->state == BL_PLACE_STANDS || bl_passed(until))
			break;
		/* No signal comes with an interrupt. */
		bl_cond_wait_until(&place->first, &c->client->mu,
		                   bl_earlier(until, bl_now() + BL_WAKE_NS));
	}
	place->state = BL_PLACE_STANDS;
	return rc != BIZLOCK_OK ? rc : BL_AGAIN;
}

/* ---- the holder ---------------------------------------------------------------------- */

/* With the mutex held: who is to have it next, or NULL. */
static struct bl_place *heir_of(const struct bizlock *b, const struct bl_hold *h)
{
	const struct bl_line *line = bl_line_find(&b->lines, &h->key);
	struct bl_place *place = line ? line->head : NULL;

	if (!place || place->state != BL_PLACE_HOPES || b->state != BL_CLIENT_OPEN || h->fenced)
		return NULL;
	if (h->passed >= PASSES_MAX || bl_passed(passable_until(h)) || bl_hold_rest_us(h) > 0)
		return NULL;
	if (place->who->call->deadline < bl_now() + ROW_NS ||
	    atomic_load(&b->wakes) != place->who->call->wakes)
		return NULL;
	return place;
}

/* An heir, and the connection that has the doorbell; for that one may have to be waited,
 * so the heir is called only then. Where it does not move, the release goes by itself: it
 * may do so without the doorbell. NULL: none. */
static struct bl_place *call_heir(struct bl_call *call, const struct bl_hold *h,
                                  struct bl_conn **ret)
{
	struct bizlock *b = call->client;
	const struct bl_conn *conn;
	struct bl_patience patience;
	struct bl_place *place;
	struct bl_err ignored;

	*ret = NULL;
	pthread_mutex_lock(&b->mu);
	place = heir_of(b, h);
	conn = place ? bl_pool_find(&b->pool, h->bell) : NULL;
	patience = (struct bl_patience){.end = conn ? bl_conn_stalls(conn) : 0};
	if (conn)
		bl_pool_take_id(&b->pool, h->bell, patience, ret, &ignored);
	place = *ret ? heir_of(b, h) : NULL;
	if (place)
		place->state = BL_PLACE_SERVED;
	else if (*ret)
		bl_pool_put(&b->pool, *ret);
	pthread_mutex_unlock(&b->mu);
	return place;
}

/* With the mutex held: the row is the heir's, and the doorbell too. As in a contest, who
 * slept through the lease looks what became of it. */
static void inherit(struct bl_hold *h, struct bl_place *place, uint64_t fence, bl_time sent)
{
	struct bl_contender *heir = place->who;

	heir->hold->bell = h->bell;
	h->bell = 0;
	*heir->won = (struct bl_won){fence, sent, false};
	heir->hold->unsure = bl_passed(bl_lease_end(sent, heir->request->lease_ms * 1000LL));
	if (heir->hold->unsure)
		return;
	bl_acquire_settle(heir->client, heir->hold, heir->won, heir->request);
	heir->hold->passed = h->passed + 1;
	heir->hold->run = h->run;
	place->state = BL_PLACE_HOLDS;
}

bool bl_pass_on(struct bl_call *call, struct bl_hold *h, bool *ret_repeated)
{
	struct bizlock *b = call->client;
	struct bl_passed passed = {.taken = false};
	struct bl_conn *conn;
	struct bl_place *place = call_heir(call, h, &conn);
	struct bl_claim claim;
	struct bl_err err;
	bl_time sent;
	int rc;

	*ret_repeated = false;
	if (!place)
		return false;
	claim = bl_contender_claim(place->who, call->bell, false);
	bl_err_clear(&err);
	sent = bl_now();
	rc = bl_lock_pass(&conn->session, bl_hold_ref(call, h), &claim, &passed, &err);
	*ret_repeated = rc == BIZLOCK_CONN && bl_may_have_run(&err);
	if (rc != BIZLOCK_OK)
		bl_retry_count(b, &err);
	pthread_mutex_lock(&b->mu);
	place->state = BL_PLACE_STANDS;
	place->who->hold->unsure = *ret_repeated;
	if (passed.taken)
		inherit(h, place, passed.fence, sent);
	pthread_cond_signal(&place->first);
	bl_pool_put(&b->pool, conn);
	pthread_mutex_unlock(&b->mu);
	return passed.from_hold;
}
