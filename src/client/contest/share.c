#include "client/contest/share.h"

#include "client/conn/combine.h"
#include "client/contest/attempt.h"
#include "client/contest/sleep.h"
#include "client/hold/drop.h"
#include "client/hold/slots.h"
#include "core/lease.h"
#include "store/session/errclass.h"

static bool wants_exclusive(const struct bl_contest *c)
{
	return !(c->request->flags & BIZLOCK_SHARED);
}

bool bl_shared_without_limit(const struct bl_contest *c)
{
	return !wants_exclusive(c) && !c->request->limit;
}

/* A sleeper that nobody woke may be chance, but not three times in a row, nor every fourth time:
 * some users may be allowed to wake it, and others not. */
#define MISS 4
#define TOO_MANY 10

bool bl_shared_polls(const struct bizlock *b)
{
	return b->server.several_primaries || b->overslept >= TOO_MANY;
}

static struct bl_hold *hold_of(const struct bl_contest *c)
{
	return c->members[0]->hold;
}

static struct bl_wish wish_of(const struct bl_contest *c)
{
	bool asks = c->wait.bells || (c->client->bells && !wants_exclusive(c));

	return (struct bl_wish){.key = &c->call->key,
	                        .owner = c->call->owner_full,
	                        .bell = asks ? bl_call_bell(c->call) : NULL,
	                        .exclusive = wants_exclusive(c),
	                        .limit = c->request->limit};
}

/* The contender's own row, as last seen. */
static struct bl_ref own_row(struct bl_contest *c)
{
	c->call->key.slot = c->others.slot;
	return (struct bl_ref){.key = &c->call->key,
	                       .owner = c->call->owner_full,
	                       .fence = c->others.fence,
	                       .bell = c->wait.bells ? bl_call_bell(c->call) : NULL};
}

/* ---- after an attempt: won, or back into line ---------------------------------------------- */

/* A batch does not ask for the fence of slot 0 before it draws its own fences. So the client
 * remembers fences of slot 0 that it has seen. A remembered fence that is out of date, or another
 * key's, costs a statement. */
static uint64_t *header_of(const struct bl_contest *c)
{
	return &c->client->headers[c->call->key.hash % BL_HEADERS];
}

/* Our row is there, and nobody is in the way. */
static int win(struct bl_contest *c)
{
	struct bl_goal *goal = c->goals[0];

	goal->fence = c->others.fence;
	goal->took_over = c->took_over;
	if (c->others.slot > 0)
		*header_of(c) = c->others.header;
	hold_of(c)->key.slot = c->call->key.slot = c->others.slot;
	return bl_attempt_won(c);
}

#define PLACE_MS 5000

uint32_t bl_shared_place_ms(const struct bl_contest *c)
{
	return c->request->lease_ms < PLACE_MS ? c->request->lease_ms : PLACE_MS;
}

/* As win(); but a contender that wants the lock alone outwaits a rival at the doorbell first. */
static int win_on(struct bl_contest *c, struct bl_conn *conn)
{
	int rc = wants_exclusive(c) ? bl_attempt_outwait_rival(c, conn, c->others.fence)
	                            : BIZLOCK_OK;

	return rc == BIZLOCK_OK ? win(c) : rc;
}

/* Deletes our row, and goes back into line: somebody has the lock exclusively, or waits for it. */
static int retreat(struct bl_contest *c, struct bl_conn *conn)
{
	struct bl_ref own = own_row(c);
	bool matched;
	int rc;

	bl_unlock(c->client);
	rc = bl_lock_drop(&conn->session, own, NULL, 0, &matched, c->call->err);
	bl_lock(c->client);
	c->others.mine = false;
	c->gone = rc == BIZLOCK_OK;
	return rc != BIZLOCK_OK ? rc : BL_AGAIN;
}

/* A row that is over may be uncleared, because a transaction has fenced it: the next look clears
 * it. */
static bool is_alone(const struct bl_contest *c)
{
	return c->row->left_us <= 0 && !c->row->locked && !c->others.uncleared;
}

static bool is_newest(const struct bl_contest *c)
{
	if (!wants_exclusive(c))
		return c->others.header > 0 && c->others.header == c->others.before &&
		       c->others.header < c->others.fence;
	return c->others.drawn && !c->has_place;
}

/* Draws a new fence, and makes the row of slot 0 if there is none. Our fence may be smaller than
 * that of somebody who had the lock before us. */
static int draw_once(struct bl_contest *c, struct bl_conn *conn)
{
	const struct bl_shared_seen had = c->others;
	struct bl_wish wish = wish_of(c);
	bl_time sent = bl_now();
	int rc;

	if (had.fence == 0) /* a new one would be 0, too: win() refuses it */
		return win(c);
	bl_unlock(c->client);
	rc = bl_shared_draw(&conn->session, &wish, &had, bl_request_row_ms(c->request) * 1000LL,
	                    &c->others, c->call->err);
	bl_lock(c->client);
	if (rc != BIZLOCK_OK)
		return rc;
	*c->row = c->others.in_way;
	c->took_over |= c->others.took_over;
	/* The row is gone, or this is not the fence that was drawn. */
	if (!c->others.mine || c->others.fence <= had.fence || c->others.fence <= had.header)
		return BL_AGAIN;
	c->sent = sent; /* its lease began anew */
	c->has_place = false;
	return is_alone(c) && is_newest(c) ? win_on(c, conn) : BL_AGAIN;
}

/* A sharer draws again after a draw that made the row of slot 0, or saw it for the first time: only
 * the next fence is compared with that row's. A sharer that meets the owner of slot 0 deletes its
 * row at once. Otherwise it might wait, with the row, behind another thread of its client; that
 * thread waits for the owner, and the owner for the row to go. */
static int draw_again(struct bl_contest *c, struct bl_conn *conn)
{
	bool shares = !wants_exclusive(c);
	int rc = draw_once(c, conn);

	if (shares && rc == BL_AGAIN && c->others.mine && is_alone(c))
		rc = draw_once(c, conn);
	if (shares && rc == BL_AGAIN && c->others.mine && !is_alone(c))
		rc = retreat(c, conn);
	return rc;
}

/* Decides after an attempt to take a row. */
static int judge(struct bl_contest *c, struct bl_conn *conn)
{
	bool unsure = c->unsure;
	int rc = BL_AGAIN;

	c->took_over |= c->others.took_over;
	c->stays = c->others.mine && wants_exclusive(c);
	if (!c->others.mine)
		return BL_AGAIN;
	c->unsure = true;
	c->gone = false;
	if (is_alone(c))
		rc = is_newest(c) ? win_on(c, conn) : draw_again(c, conn);
	else if (!c->stays)
		rc = retreat(c, conn);
	if (rc == BL_AGAIN && c->gone)
		c->unsure = unsure;
	return rc;
}

/* The same after a batch, which rarely needs a connection. */
static int judge_anywhere(struct bl_contest *c)
{
	struct bl_conn *conn;
	int rc;

	*c->row = c->others.in_way;
	if (is_alone(c) && is_newest(c))
		return win(c);
	rc = bl_attempt_borrow(c, &conn);
	if (rc != BIZLOCK_OK) {
		c->unsure = true;
		return rc;
	}
	rc = judge(c, conn);
	bl_pool_put(&c->client->pool, conn);
	return rc;
}

/* ---- going for a row ----------------------------------------------------------------------- */

/* GET_LOCK counts: the connection would get a doorbell once more that it has for another owner. */
static bool can_ring(const struct bl_contest *c, const struct bl_conn *conn)
{
	return conn->bells < BL_BELLS_MAX &&
	       !bl_held_has_bell(&c->client->held, &c->call->key, conn->id);
}

/* A sharer that wants no doorbell (NO_QUEUE) asks whether somebody has the doorbell: otherwise it
 * would pass those that wait in line. */
static enum bl_shared_bell bell_for(const struct bl_contest *c, const struct bl_conn *conn,
                                    bool past)
{
	if (hold_of(c)->bell && hold_of(c)->bell == conn->id)
		return BL_BELL_OURS;
	if (past || (!c->wait.bells && wants_exclusive(c)))
		return BL_BELL_NONE;
	return bl_shared_without_limit(c) || !c->wait.bells || !can_ring(c, conn) ? BL_BELL_PASS
	                                                                          : BL_BELL_TAKE;
}

static uint32_t any_slot(struct bl_contest *c)
{
	if (c->slot == 0)
		c->slot = bl_slots_take(c->client);
	return c->slot;
}

/* The slot is, or may be, another client's: after a batch that was refused, nobody knows whose slot
 * it was. */
static void avoid_slot(struct bl_contest *c)
{
	c->slot = 0;
	bl_slots_avoid(c->client);
}

/* Gives the slot back, unless the hold has it now, or a row may be in it. */
static void end_slot(struct bl_contest *c, int rc)
{
	bool used = c->unsure || (rc == BIZLOCK_OK && hold_of(c)->key.slot == c->slot);

	if (!used)
		bl_slots_give_back(c->client, c->slot);
}

/* stays: it may take slot 0 even if others have to leave first. */
static int go_on(struct bl_contest *c, struct bl_conn *conn, enum bl_shared_bell bell, bool stays)
{
	struct bl_claim claim = bl_attempt_claim(c);
	struct bl_shared_go go = {.wish = wish_of(c),
	                          .claim = &claim,
	                          .bell = bell,
	                          .slot = bl_shared_without_limit(c) ? any_slot(c) : 0};
	enum bl_took took;
	int rc;

	/* A contender that cannot wait for the others to leave must not make newcomers line up. */
	go.stay = stays && wants_exclusive(c) && !c->request->once &&
	          (go.bell == BL_BELL_OURS || go.bell == BL_BELL_NONE);
	c->has_place = go.stay || (c->has_place && c->stays);
	if (go.stay)
		claim.lease_ms = bl_shared_place_ms(c);
	bl_attempt_sends(c);
	bl_unlock(c->client);
	rc = bl_shared_take(&conn->session, &go, &took, &c->others, c->call->err);
	bl_lock(c->client);
	c->unsure |= took == BL_TOOK_MAYBE || (rc == BIZLOCK_CONN && bl_may_have_run(c->call->err));
	if (rc != BIZLOCK_OK && go.bell == BL_BELL_OURS && !conn->session.gone) {
		hold_of(c)->bell = 0; /* given back with the error */
		conn->bells--;
	}
	if (rc != BIZLOCK_OK)
		return rc;
	if (go.bell == BL_BELL_TAKE &&
	    (took == BL_TOOK_BELL || (took == BL_TOOK_ALL && wants_exclusive(c))))
		bl_attempt_note_bells(c, conn);
	if (took == BL_TOOK_SLOT || (took == BL_TOOK_ALL && go.slot && !c->others.mine))
		avoid_slot(c);
	if (took != BL_TOOK_ALL)
		return BL_AGAIN;
	if (go.bell == BL_BELL_OURS && !wants_exclusive(c)) {
		hold_of(c)->bell = 0; /* given back by the same packet */
		conn->bells--;
	}
	*c->row = c->others.in_way;
	return judge(c, conn);
}

int bl_shared_rung(struct bl_contest *c, struct bl_conn *conn)
{
	return go_on(c, conn, bell_for(c, conn, false), true);
}

/* Attempts without a look: most often nobody shares the lock any more. */
int bl_shared_met(struct bl_contest *c, struct bl_conn *conn)
{
	c->among = true;
	BL_TRACE_WAIT(c,
	              "row: its lease is over; goes for it, unless others share the lock under it");
	return go_on(c, conn, bell_for(c, conn, true), false);
}

struct bl_job bl_shared_job(struct bl_contest *c)
{
	c->call->key.slot = any_slot(c);
	bl_attempt_note_floor(c);
	return (struct bl_job){.entry = {.claim = bl_attempt_claim(c),
	                                 .goal = c->goals[0],
	                                 .before = *header_of(c),
	                                 .seen = &c->others}};
}

int bl_shared_answer(struct bl_contest *c, const struct bl_job *job)
{
	if (job->entry.done)
		return judge_anywhere(c);
	if (!job->entry.there)
		avoid_slot(c);
	return BL_AGAIN;
}

/* In a batch with jobs of other threads, or alone. */
static int combine(struct bl_contest *c)
{
	struct bl_job job = bl_shared_job(c);
	enum bl_combined combined;
	struct bl_conn *conn;
	int rc;

	combined = bl_combine_acquire(c->call, &job, bl_attempt_patience(c), &conn);
	c->unsure |= job.entry.maybe;
	if (job.sent) /* even if the answer was lost: the row may be found later */
		c->sent = job.sent;
	if (combined == BL_COMBINED_FAILED)
		return c->call->err->code;
	if (combined != BL_COMBINED_LENT)
		return bl_shared_answer(c, &job);
	rc = go_on(c, conn, bell_for(c, conn, false), true);
	bl_pool_put(&c->client->pool, conn);
	return rc;
}

int bl_shared_attempt(struct bl_contest *c, bool past)
{
	uint64_t bell = hold_of(c)->bell;
	struct bl_conn *conn;
	int rc;

	if (!past && c->wait.bells && !bell && bl_shared_without_limit(c))
		return combine(c);
	rc = bl_attempt_borrow(c, &conn);
	if (rc != BIZLOCK_OK)
		return rc;
	/* If the doorbell is gone, a new look decides whether to go without it. */
	if (bell == hold_of(c)->bell)
		rc = go_on(c, conn, bell_for(c, conn, past), true);
	else
		rc = BL_AGAIN;
	bl_pool_put(&c->client->pool, conn);
	return rc;
}

int bl_shared_line_up(struct bl_contest *c)
{
	struct bl_conn *conn;
	int rc = bl_attempt_borrow(c, &conn);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = can_ring(c, conn) ? go_on(c, conn, BL_BELL_TAKE, true) : BL_AGAIN;
	bl_pool_put(&c->client->pool, conn);
	return rc;
}

bool bl_shared_may_pass(const struct bl_contest *c)
{
	const struct bl_queue *queue;

	if (!bl_shared_without_limit(c) || c->unsure)
		return false;
	queue = bl_queue_find(&c->client->queues, &c->call->key);
	return !queue || queue->alone == 0;
}

/* ---- looking ------------------------------------------------------------------------------- */

int bl_shared_look_on(struct bl_contest *c, struct bl_conn *conn)
{
	struct bl_wish wish = wish_of(c);
	bool first = hold_of(c)->bell || !c->wait.bells || c->past || c->stays ||
	             bl_shared_without_limit(c);
	enum bl_shared_how how = first ? BL_SHARED_CLEAR : BL_SHARED_PROBE;
	int rc;

	if (c->locked)
		how = BL_SHARED_READ;
	bl_unlock(c->client);
	rc = bl_shared_look(&conn->session, &wish, how, &c->others, c->call->err);
	bl_lock(c->client);
	c->took_over |= c->others.took_over;
	if (c->overslept && rc == BIZLOCK_OK && c->others.in_way.left_us <= 0)
		c->client->overslept += MISS;
	c->overslept = false;
	if (rc == BIZLOCK_OK) {
		c->blocker = c->members[0];
		*c->row = c->others.in_way;
		c->stays = c->others.mine && wants_exclusive(c);
		if (c->stays && !c->has_place) { /* its row may have the lease of a hold still */
			c->has_place = true;
			c->sent = 0;
		}
		c->unsure |= c->others.mine;
		if (c->others.mine && !c->stays && (c->row->left_us > 0 || c->row->locked))
			rc = retreat(c, conn) == BL_AGAIN ? BIZLOCK_OK : c->call->err->code;
	}
	bl_pool_put(&c->client->pool, conn);
	return rc;
}

int bl_shared_go_past(struct bl_contest *c)
{
	int rc;

	c->past = true;
	rc = bl_attempt_look(c);
	if (rc != BIZLOCK_OK)
		return rc;
	if (c->others.mine || c->row->left_us > 0 || c->row->locked)
		return BL_AGAIN;
	return bl_shared_attempt(c, true);
}

int bl_shared_adopt(struct bl_contest *c)
{
	struct bl_conn *conn;
	int rc = bl_attempt_borrow(c, &conn);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = draw_again(c, conn);
	bl_pool_put(&c->client->pool, conn);
	return rc;
}

/* ---- the first in line waits until the others have left -------------------------------------- */

/* A sleep that nobody ends costs no more than this. */
#define SLEEP_MS 1000

/* The contender's row in slot 0 keeps newcomers out: so it must outlast the wait. */
static int renew_place(struct bl_contest *c, struct bl_conn *conn)
{
	struct bl_ref own = own_row(c);
	bl_time sent = bl_now();
	bool matched = false;
	int rc;

	if (sent < bl_lease_due(c->sent, bl_shared_place_ms(c)))
		return BIZLOCK_OK;
	c->has_place = true;
	bl_unlock(c->client);
	rc = bl_lock_renew(&conn->session, own, bl_shared_place_ms(c), &matched, c->call->err);
	bl_lock(c->client);
	if (rc == BIZLOCK_OK && matched)
		c->sent = sent;
	return rc;
}

/* A shorter sleep proves nothing: a wake-up takes a moment, too. */
#define PROOF_NS (100 * BL_NS_PER_MS)

static int64_t sleep_ms(const struct bl_contest *c, bl_time until)
{
	int64_t most = bl_shared_polls(c->client) ? BL_SHARED_POLL_MS : SLEEP_MS;
	int64_t ms = bl_left_ms(until);

	if (c->stays && most > bl_shared_place_ms(c) / 6)
		most = bl_shared_place_ms(c) / 6;
	return ms < most ? ms : most;
}

static int sleep_on(struct bl_contest *c, struct bl_conn *conn, bl_time until)
{
	struct bl_wish wish = wish_of(c);
	int64_t ms = sleep_ms(c, until);
	enum bl_heard heard;
	bl_time proof;
	int rc;

	wish.exclusive = c->stays; /* without slot 0, it waits for that slot first */
	bl_conn_quiet(conn);
	rc = bl_call_check(c->call);
	if (rc != BIZLOCK_OK)
		return rc;
	bl_unlock(c->client);
	proof = bl_now() + PROOF_NS;
	BL_TRACE_WAIT(c, "first in line, sleeps until the others leave");
	rc = bl_shared_sleep(&conn->session, &wish, ms > 0 ? ms : 1, conn->wake_fd, &heard,
	                     c->call->err);
	bl_lock(c->client);
	if (rc != BIZLOCK_OK)
		return rc;
	c->overslept = heard == BL_HEARD_NONE && bl_passed(proof) && c->row->left_us > ms * 1000;
	if (heard == BL_HEARD_RING && c->client->overslept > 0 && !bl_shared_polls(c->client))
		c->client->overslept--;
	return BL_AGAIN;
}

/* The first in line sleeps in a statement, on the connection that has its doorbell, while enough
 * connections are left for other calls. A client without watchers has no choice. */
static bool may_sleep_on(const struct bl_contest *c, const struct bl_conn *conn)
{
	const struct bl_pool *pool = &c->client->pool;
	uint64_t bell = hold_of(c)->bell;

	return !c->op && c->row->left_us > 0 && bell && bell == conn->id &&
	       (bl_pool_has_room_at_bells(pool, false) || bl_pool_watchers_max(pool) == 0);
}

int bl_shared_outwait(struct bl_contest *c, bl_time until)
{
	bool asleep = false;
	struct bl_conn *conn;
	int rc;

	if (c->row->left_us <= 0 && !c->stays)
		return bl_contest_pause(c, until);
	if (wants_exclusive(c) && !c->stays && !c->others.exclusively && !c->request->once)
		return bl_shared_attempt(c, false);
	rc = bl_attempt_borrow(c, &conn);
	if (rc != BIZLOCK_OK)
		return rc;
	if (c->stays)
		rc = renew_place(c, conn);
	if (rc == BIZLOCK_OK && may_sleep_on(c, conn)) {
		asleep = true;
		c->conn = conn;
		bl_pool_bell_begins(&c->client->pool, conn);
		rc = sleep_on(c, conn, until);
		c->conn = NULL;
		bl_pool_bell_over(&c->client->pool);
	}
	bl_pool_put(&c->client->pool, conn);
	if (asleep)
		bl_watch_promote(c->client);
	if (rc != BIZLOCK_OK || asleep)
		return rc;
	if (c->op)
		return bl_contest_sleep(c, until);
	if (c->row->left_us > 0 && hold_of(c)->bell && !bl_shared_polls(c->client))
		return bl_contest_watch(c, until);
	return bl_contest_pause(c, bl_earlier(until, bl_now() + BL_SHARED_POLL_MS * BL_NS_PER_MS));
}

/* ---- the end ------------------------------------------------------------------------------- */

void bl_shared_leave(struct bl_contest *c, int rc)
{
	struct bl_hold *h = hold_of(c);
	struct bl_err kept = *c->call->err;

	end_slot(c, rc);
	if (rc != BIZLOCK_OK && c->stays) {
		struct bl_drop drop = {
		        .hold = h, .ref = own_row(c), .rest_us = BL_ROW_STAYS, .bell = h->bell};

		/* The row may have a newer fence than the last one seen. */
		c->unsure = bl_drop(c->call, &drop) != BIZLOCK_OK ||
		            (!drop.matched && bl_drop_unknown(c->call, h) != BIZLOCK_OK);
		h->bell = drop.bell;
	} else if (h->bell && (rc != BIZLOCK_OK || !wants_exclusive(c))) {
		bl_drop_bell(c->call, &h->bell);
	}
	*c->call->err = kept;
}
