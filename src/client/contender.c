#include "client/contender.h"

#include <string.h>

#include "client/combine.h"
#include "core/backoff.h"
#include "core/lease.h"
#include "store/errclass.h"

/* How long to wait for the connection that has our doorbell. */
#define BUSY_NS (50 * BL_NS_PER_MS)

static void lock(struct bl_contender *c)
{
	pthread_mutex_lock(&c->client->mu);
}

static void unlock(struct bl_contender *c)
{
	pthread_mutex_unlock(&c->client->mu);
}

static void note_bell(struct bl_contender *c, struct bl_conn *conn)
{
	lock(c);
	conn->bells++;
	c->hold->bell = conn->id;
	unlock(c);
}

bool bl_bell_is_here(const struct bizlock *b, const struct bl_key *key, const struct bl_conn *conn)
{
	const struct bl_hold *h = bl_held_of_key(&b->held, key);

	while (h && h->bell != conn->id)
		h = bl_held_next_of_key(h);
	return h != NULL;
}

static struct bl_patience patience_of(const struct bl_contender *c)
{
	return (struct bl_patience){
	        .end = c->request->once ? c->call->io_deadline : c->call->deadline,
	        .wakes = &c->client->wakes,
	        .seen = c->call->wakes,
	};
}

/* With the mutex held. *ret NULL: our doorbell went with its connection; or that is busy, or
 * hangs, and any other will do. */
static int borrow_with_bell(struct bl_contender *c, struct bl_conn **ret)
{
	struct bl_patience patience = patience_of(c);
	int rc;

	patience.end = bl_earlier(patience.end, bl_now() + BUSY_NS);
	rc = bl_pool_take_id(&c->client->pool, c->hold->bell, patience, ret, c->call->err);
	if (rc == BIZLOCK_OK && !*ret)
		c->hold->bell = 0;
	return rc == BIZLOCK_TIMEOUT ? BIZLOCK_OK : rc;
}

/* The connection that has our doorbell, if there is one: only there its loss shows. Who took
 * the row without, believing to have it, would go past whoever has it now, and draw a fence
 * out of order. */
static int borrow(struct bl_contender *c, struct bl_conn **ret)
{
	int rc = BIZLOCK_OK;

	*ret = NULL;
	lock(c);
	if (c->hold->bell)
		rc = borrow_with_bell(c, ret);
	if (rc == BIZLOCK_OK && !*ret)
		rc = bl_pool_take(&c->client->pool, patience_of(c), ret, c->call->err);
	unlock(c);
	return rc;
}

static void put(struct bl_contender *c, struct bl_conn *conn)
{
	lock(c);
	bl_pool_put(&c->client->pool, conn);
	unlock(c);
}

struct bl_claim bl_contender_claim(const struct bl_contender *c, const char *bell, bool ring)
{
	return (struct bl_claim){.key = &c->call->key,
	                         .owner = c->call->owner_full,
	                         .note = c->request->note,
	                         .bell = bell,
	                         .ring = ring,
	                         .lease_ms = c->request->lease_ms};
}

/* Our doorbell's name, if this connection has it. */
static const char *bell_on(const struct bl_contender *c, const struct bl_conn *conn)
{
	return c->hold->bell == conn->id ? c->call->bell : NULL;
}

static int won(struct bl_contender *c, uint64_t fence, bl_time sent, bool took_over)
{
	*c->won = (struct bl_won){fence, sent, took_over};
	if (bl_lease_end(sent, c->request->lease_ms * 1000LL) > bl_now())
		return BIZLOCK_OK;
	/* We slept through the lease: a row of ours that may be over. */
	c->hold->unsure = true;
	return BL_AGAIN;
}

/* The row is ours, but its fence was drawn when it was not yet: somebody may have had and
 * released it in between, with a larger one. What is drawn now comes later than that. */
static int draw_again(struct bl_contender *c, struct bl_conn *conn, uint64_t fence, bool took_over)
{
	struct bl_ref ref = {&c->call->key, c->call->owner_full, fence};
	struct bl_claim claim = bl_contender_claim(c, bell_on(c, conn), false);
	struct bl_passed passed;
	bl_time sent = bl_now();
	int rc;

	c->hold->unsure = true;
	rc = bl_lock_pass(&conn->session, ref, &claim, &passed, c->call->err);
	if (rc != BIZLOCK_OK || !passed.from_hold)
		return rc != BIZLOCK_OK ? rc : BL_AGAIN;
	return won(c, passed.fence, sent, took_over);
}

static bool in_order(const char *bell, bl_time sent)
{
	return bell && bl_now() < sent + BL_PROMPT_NS;
}

/* The statement itself, on a connection lent to us. bell: see bl_claim. */
static int take_on(struct bl_contender *c, struct bl_conn *conn, const char *bell, bool ring)
{
	struct bl_claim claim = bl_contender_claim(c, bell, ring);
	struct bl_taken taken;
	bl_time sent = bl_now();
	int rc = bl_lock_take(&conn->session, &claim, &taken, c->call->err);

	c->hold->unsure |= rc == BIZLOCK_CONN && bl_may_have_run(c->call->err);
	if (rc != BIZLOCK_OK)
		return rc;
	if (bell && ring && taken.what != BL_TOOK_NOTHING)
		note_bell(c, conn);
	if (taken.what != BL_TOOK_ROW)
		return BL_AGAIN;
	if (!in_order(bell, sent))
		return draw_again(c, conn, taken.fence, taken.took_over);
	return won(c, taken.fence, sent, taken.took_over);
}

/* The row is ours, by a statement on whichever connection. */
static int adopt(struct bl_contender *c, uint64_t fence, bool took_over)
{
	struct bl_conn *conn;
	int rc;

	c->hold->unsure = true;
	rc = borrow(c, &conn);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = draw_again(c, conn, fence, took_over);
	put(c, conn);
	return rc;
}

/* Together with what other threads want from the server now, or alone. */
static int ring(struct bl_contender *c)
{
	struct bl_job job = {.entry.claim = bl_contender_claim(c, c->call->bell, true),
	                     .bell = &c->hold->bell};
	struct bl_conn *conn;
	bool room;
	int rc = bl_combine_acquire(c->call, &job, patience_of(c), &conn);

	if (rc == BIZLOCK_OK && conn) {
		room = conn->bells < BL_BELLS_MAX;
		rc = take_on(c, conn, room ? c->call->bell : NULL, room);
		put(c, conn);
		return rc;
	}
	if (rc != BIZLOCK_OK || job.state != BL_JOB_DONE)
		return rc != BIZLOCK_OK ? rc : BL_AGAIN;
	c->hold->unsure |= job.entry.maybe;
	if (job.rc != BIZLOCK_OK || !job.entry.done)
		return job.rc != BIZLOCK_OK ? job.rc : BL_AGAIN;
	return in_order(c->call->bell, job.rung) ? won(c, job.entry.fence, job.sent, false)
	                                         : adopt(c, job.entry.fence, false);
}

int bl_contender_attempt(struct bl_contender *c, bool with_bell)
{
	uint64_t bell = c->hold->bell;
	struct bl_conn *conn;
	int rc;

	if (with_bell)
		return ring(c);
	rc = borrow(c, &conn);
	if (rc != BIZLOCK_OK)
		return rc;
	/* A doorbell that is gone: whether to go without is to be seen anew. */
	rc = bell != c->hold->bell ? BL_AGAIN : take_on(c, conn, bell_on(c, conn), false);
	put(c, conn);
	return rc;
}

int bl_contender_look(struct bl_contender *c)
{
	struct bl_conn *conn;
	int rc = borrow(c, &conn);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_lock_look(&conn->session, &c->call->key, c->bells ? c->call->bell : NULL, &c->row,
	                  c->call->err);
	put(c, conn);
	return rc;
}

int bl_contender_probe(struct bl_contender *c)
{
	struct bl_conn *conn;
	int rc = borrow(c, &conn);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_lock_probe(&conn->session, &c->call->key, &c->row.locked, c->call->err);
	put(c, conn);
	return rc;
}

void bl_contender_pause(struct bl_contender *c, bl_time until)
{
	bl_time next = bl_now() + bl_backoff_ns(c->pauses++, bl_client_random(c->client));

	bl_call_sleep(c->call, bl_earlier(next, until));
}

static int hear(struct bl_contender *c, struct bl_conn *conn, bl_time until)
{
	enum bl_heard heard;
	int rc;

	bl_conn_quiet(conn);
	rc = bl_call_check(c->call);
	if (rc == BIZLOCK_OK)
		rc = bl_bell_wait(&conn->session, c->call->bell, bl_left_ms(until), conn->wake_fd,
		                  &heard, c->call->err);
	if (rc != BIZLOCK_OK)
		return rc;
	if (heard == BL_HEARD_RING) {
		note_bell(c, conn);
		return take_on(c, conn, c->call->bell, false);
	}
	/* A wait that the server cut short must not become a busy loop. */
	if (heard == BL_HEARD_NONE)
		bl_contender_pause(c, until);
	return BL_AGAIN;
}

int bl_contender_wait(struct bl_contender *c, bl_time until)
{
	struct bl_conn *conn;
	int rc;

	lock(c);
	rc = bl_pool_take_for_bell(&c->client->pool, &conn, c->call->err);
	unlock(c);
	if (rc != BIZLOCK_OK)
		return rc;
	if (!conn) {
		bl_contender_pause(c, until);
		return BL_AGAIN;
	}
	rc = hear(c, conn, until);
	lock(c);
	bl_pool_bell_over(&c->client->pool);
	bl_pool_put(&c->client->pool, conn);
	unlock(c);
	return rc;
}

/* Not ours if it belongs to a hold we know of: that of a thread which ended
 * and left its number to this one. */
bool bl_contender_owns(const struct bl_contender *c)
{
	const struct bl_hold *h;

	if (!c->hold->unsure || !c->row.found || c->row.left_us <= 0 ||
	    strcmp(c->row.owner, c->call->owner_full) != 0)
		return false;
	pthread_mutex_lock(&c->client->mu);
	h = bl_held_of_key(&c->client->held, &c->call->key);
	while (h && h->fence != c->row.fence)
		h = bl_held_next_of_key(h);
	pthread_mutex_unlock(&c->client->mu);
	return h == NULL;
}

int bl_contender_adopt(struct bl_contender *c)
{
	return adopt(c, c->row.fence, c->row.took_over);
}

/* Where its connection can not be had in time, the bell is noted still, and the hold is
 * cleaned up with it. */
void bl_contender_give_bell_back(struct bl_contender *c)
{
	struct bl_patience patience = {.end = c->call->io_deadline};
	struct bl_err ignored;
	struct bl_conn *conn = NULL;
	int rc = BIZLOCK_OK;

	lock(c);
	if (c->hold->bell)
		rc = bl_pool_take_id(&c->client->pool, c->hold->bell, patience, &conn, &ignored);
	if (rc == BIZLOCK_OK)
		c->hold->bell = 0;
	unlock(c);
	if (!conn)
		return;
	bl_bell_free(&conn->session, c->call->bell, &ignored);
	lock(c);
	conn->bells--;
	bl_pool_put(&c->client->pool, conn);
	unlock(c);
}
