#include "client/contest/attempt.h"

#include <inttypes.h>

#include "client/conn/combine.h"
#include "client/contest/share.h"
#include "core/lease.h"
#include "store/session/errclass.h"

/* How long to wait for the connection that has our doorbell. */
#define BUSY_NS (50 * BL_NS_PER_MS)

struct bl_claim bl_attempt_claim(const struct bl_contest *c)
{
	return (struct bl_claim){.owner = c->call->owner_full,
	                         .note = c->request->note,
	                         .lease_ms = bl_request_row_ms(c->request)};
}

/* ---- connections ------------------------------------------------------------------------ */

bl_time bl_attempt_conn_end(const struct bl_contest *c)
{
	return c->request->once ? c->call->io_deadline : c->call->deadline;
}

struct bl_patience bl_attempt_patience(const struct bl_contest *c)
{
	bl_time end = bl_attempt_conn_end(c);

	return (struct bl_patience){
	        .end = c->op ? bl_earlier(end, bl_now() + BL_TURN_NS) : end,
	        .wakes = &c->client->wakes,
	        .seen = &c->call->wakes,
	        .comes_again = c->call->comes_again,
	};
}

/* Of a single key: the connection that has our doorbell, 0: none. */
static uint64_t *bell_of(const struct bl_contest *c)
{
	return &c->members[0]->hold->bell;
}

void bl_attempt_note_bells(const struct bl_contest *c, struct bl_conn *conn)
{
	conn->bells += (unsigned)c->n;
	for (size_t i = 0; i < c->n; i++)
		c->members[i]->hold->bell = conn->id;
}

/* *ret NULL: our doorbell is gone with its connection; or the connection is busy, or hangs, and
 * any other will do. */
static int borrow_with_bell(struct bl_contest *c, struct bl_conn **ret)
{
	struct bl_patience patience = bl_attempt_patience(c);
	int rc;

	patience.end = bl_earlier(patience.end, bl_now() + BUSY_NS);
	rc = bl_pool_take_id(&c->client->pool, *bell_of(c), patience, ret, c->call->err);
	if (rc == BIZLOCK_OK && !*ret)
		*bell_of(c) = 0;
	return rc == BIZLOCK_TIMEOUT ? BIZLOCK_OK : rc;
}

/* The connection that has our doorbell, if there is one: only there does a statement see that the
 * doorbell is lost. A contender that wrongly believed to have the doorbell would go past the
 * contender that has it now, and draw a fence out of order. */
int bl_attempt_borrow(struct bl_contest *c, struct bl_conn **ret)
{
	int rc = BIZLOCK_OK;

	*ret = NULL;
	if (c->n == 1 && *bell_of(c))
		rc = borrow_with_bell(c, ret);
	if (rc == BIZLOCK_OK && !*ret)
		rc = bl_pool_take(&c->client->pool, bl_attempt_patience(c), ret, c->call->err);
	return rc;
}

/* ---- going for the rows ------------------------------------------------------------------ */

void bl_attempt_note_floor(struct bl_contest *c)
{
	const struct bizlock *b = c->client;

	c->floor = bl_server_in_cluster(&b->server) ? 0 : b->largest_fence;
}

void bl_attempt_sends(struct bl_contest *c)
{
	c->sent = bl_now();
	bl_attempt_note_floor(c);
}

/* With such a fence, a store that compares fences would let an earlier holder write after this one.
 * The rows are swept when the contest ends. */
static int refuse_fence(struct bl_contest *c, uint64_t fence)
{
	const char *table = c->client->sql.table;

	c->unsure = true;
	if (fence == 0)
		return bl_err_set(c->call->err, BIZLOCK_SCHEMA,
		                  "table %s gives no fences: its column fence has to be "
		                  "AUTO_INCREMENT",
		                  table);
	if (fence >= BL_SQL_FENCES)
		return bl_err_set(c->call->err, BIZLOCK_SCHEMA,
		                  "table %s gave fence %" PRIu64
		                  ", which has to be less than %" PRIu64
		                  ": delete rows that have larger ones, and ALTER TABLE %s "
		                  "AUTO_INCREMENT=1",
		                  table, fence, (uint64_t)BL_SQL_FENCES, table);
	return bl_err_set(c->call->err, BIZLOCK_SCHEMA,
	                  "table %s gave fence %" PRIu64 ", but this client has had %" PRIu64
	                  " before: TRUNCATE, ALTER TABLE ... AUTO_INCREMENT, a dump that was "
	                  "restored, a copy in its place, or a failover to a server that lacks "
	                  "the last changes has set its counter back; run "
	                  "`bizlock migrate --raise-fences`",
	                  table, fence, c->floor);
}

static int check_fences(struct bl_contest *c)
{
	for (size_t i = 0; i < c->n; i++) {
		uint64_t fence = c->goals[i]->fence;

		if (fence <= c->floor || fence >= BL_SQL_FENCES)
			return refuse_fence(c, fence);
	}
	return BIZLOCK_OK;
}

/* Has the lease ended before the answer came? */
static bool note_late(struct bl_contest *c)
{
	c->late = bl_lease_end(c->sent, c->request->lease_ms * 1000LL) <= bl_now();
	return c->late;
}

/* Are the rows still ours? They may have been broken, and we may have slept through the lease. */
int bl_attempt_won(struct bl_contest *c)
{
	bool ours = !note_late(c);

	for (size_t i = 0; c->n > 1 && i < c->n; i++)
		ours &= c->goals[i]->seen;
	c->unsure |= !ours;
	return ours ? check_fences(c) : BL_AGAIN;
}

#define PROMPT_MS ((uint32_t)(BL_PROMPT_NS / BL_NS_PER_MS))

/* Renews a single row by a lease that is longer by the wait: its own lease may be no longer than
 * that. */
static int outwait(struct bl_contest *c, struct bl_conn *conn, uint64_t fence)
{
	struct bl_ref own = {.key = &c->call->key, .owner = c->call->owner_full, .fence = fence};
	uint32_t ms = bl_request_row_ms(c->request); /* min_hold_ms may be UINT32_MAX */
	bl_time sent = bl_now();
	bool matched = true;
	int rc = BIZLOCK_OK;

	ms = ms < UINT32_MAX - PROMPT_MS ? ms + PROMPT_MS : UINT32_MAX;
	bl_unlock(c->client);
	if (c->n == 1)
		rc = bl_lock_renew(&conn->session, own, ms, &matched, c->call->err);
	if (rc == BIZLOCK_OK && matched)
		bl_sleep_until(bl_now() + BL_PROMPT_NS);
	bl_lock(c->client);
	if (rc != BIZLOCK_OK || !matched)
		return rc != BIZLOCK_OK ? rc : BL_AGAIN;
	if (c->n == 1)
		c->sent = sent + BL_PROMPT_NS;
	return BIZLOCK_OK;
}

/* The owner of the doorbell may have drawn a fence, and have no row yet. It trusts that fence if
 * its answer is prompt. We have drawn a larger fence, without the doorbell. We must not have the
 * lock first, so we wait until that answer would be late. A server that refuses to tell who has a
 * doorbell gives no doorbells either. */
int bl_attempt_outwait_rival(struct bl_contest *c, struct bl_conn *conn, uint64_t fence)
{
	bool rival = false;
	int rc;

	if (*bell_of(c) == conn->id || c->client->server.several_primaries)
		return BIZLOCK_OK;
	bl_unlock(c->client);
	rc = bl_take_rival(&conn->session, c->goals, c->n, &rival, c->call->err);
	bl_lock(c->client);
	if (rc == BIZLOCK_DB) { /* no rival if it was refused; if it was ended, maybe */
		rival = !c->call->err->native ||
		        bl_classify(c->call->err->native) != BL_CLASS_OTHER;
		bl_err_clear(c->call->err);
	} else if (rc != BIZLOCK_OK) {
		return rc;
	}
	return rival ? outwait(c, conn, fence) : BIZLOCK_OK;
}

/* The rows are ours, but their fences were drawn before that: in between somebody may have held one
 * of the keys by a larger fence, and have released it. A fence that is drawn now is larger. Rows of
 * a set that were there may be those of locks that others share. */
static int draw_again(struct bl_contest *c, struct bl_conn *conn)
{
	bool bell_here = c->n == 1 && *bell_of(c) == conn->id, ours;
	struct bl_claim claim = bl_attempt_claim(c);
	bl_time sent = bl_now();
	int rc;

	c->unsure = true;
	bl_unlock(c->client);
	rc = bl_take_again(&conn->session, &claim, c->goals, c->n,
	                   bell_here ? bl_call_bell(c->call) : NULL, &ours, c->call->err);
	bl_lock(c->client);
	if (rc != BIZLOCK_OK)
		return rc;
	if (!ours) {
		note_late(c);
		return BL_AGAIN;
	}
	for (size_t i = 0; i < c->n && c->n > 1; i++)
		if (c->goals[i]->shared)
			return BL_AGAIN;
	if (c->n == 1)
		c->sent = sent; /* its lease began anew */
	rc = bl_attempt_outwait_rival(c, conn, c->goals[0]->fence);
	return rc == BIZLOCK_OK ? bl_attempt_won(c) : rc;
}

/* All doorbells are to be taken, if the connection has room for them. */
static struct bl_with_bells bells_on(const struct bl_contest *c, const struct bl_conn *conn,
                                     bool with_bells)
{
	return (struct bl_with_bells){.take = with_bells && conn->bells + c->n <= BL_BELLS_MAX};
}

/* Fences that were drawn with the doorbells, and answered promptly, are in order. But if several
 * members of a cluster take writes, each knows only its own doorbells: between draw and row, a
 * contender at another member may have held the lock by a larger fence, and have released it. */
static int order_fences(struct bl_contest *c, struct bl_conn *conn, struct bl_with_bells bells)
{
	bool alone = bells.take && !c->client->server.several_primaries;

	return alone && bl_now() < c->sent + BL_PROMPT_NS ? bl_attempt_won(c) : draw_again(c, conn);
}

/* The doorbells of several keys are kept only together with the rows. */
static int end_several(struct bl_contest *c, struct bl_conn *conn, struct bl_with_bells bells,
                       bool over)
{
	int rc = over ? draw_again(c, conn) : order_fences(c, conn, bells);

	if (!bells.take)
		return rc;
	if (rc == BIZLOCK_OK) {
		bl_attempt_note_bells(c, conn);
	} else if (!conn->session.gone) {
		bl_unlock(c->client);
		bl_take_free_bells(&conn->session, c->goals, c->n);
		bl_lock(c->client);
	}
	return rc;
}

/* Takes the rows on a connection that is lent to us. The contender for a single key keeps a
 * doorbell that it got, with the row or without. */
static int take_on(struct bl_contest *c, struct bl_conn *conn, struct bl_with_bells bells)
{
	struct bl_claim claim = bl_attempt_claim(c);
	enum bl_took took;
	bool over;
	int rc;

	bl_attempt_sends(c);
	bl_unlock(c->client);
	rc = bl_take(&conn->session, &claim, c->goals, c->n, bells, &took, &over, c->call->err);
	bl_lock(c->client);
	c->unsure |= took == BL_TOOK_MAYBE || (rc == BIZLOCK_CONN && bl_may_have_run(c->call->err));
	if (rc != BIZLOCK_OK)
		return rc;
	if (c->n > 1)
		return took == BL_TOOK_ALL ? end_several(c, conn, bells, over) : BL_AGAIN;
	if (bells.take && !bells.had && took != BL_TOOK_NOTHING)
		bl_attempt_note_bells(c, conn);
	if (over)
		return bl_shared_met(c, conn);
	return took == BL_TOOK_ALL ? order_fences(c, conn, bells) : BL_AGAIN;
}

/* Draws again on any connection. */
static int draw_again_anywhere(struct bl_contest *c)
{
	struct bl_conn *conn;
	int rc;

	c->unsure = true;
	rc = bl_attempt_borrow(c, &conn);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = draw_again(c, conn);
	bl_pool_put(&c->client->pool, conn);
	return rc;
}

int bl_attempt_adopt(struct bl_contest *c)
{
	if (c->among)
		return bl_shared_adopt(c);
	c->goals[0]->fence = c->row->fence;
	c->goals[0]->took_over = c->row->took_over;
	return draw_again_anywhere(c);
}

/* The row of a single key, with the doorbell that we have, or without one. */
static int take_row(struct bl_contest *c)
{
	uint64_t bell = *bell_of(c);
	struct bl_with_bells bells = {.take = false};
	struct bl_conn *conn;
	int rc = bl_attempt_borrow(c, &conn);

	if (rc != BIZLOCK_OK)
		return rc;
	if (bell && bell == conn->id)
		bells = (struct bl_with_bells){true, bl_call_bell(c->call)};
	/* If the doorbell is gone, a new look decides whether to go without it. */
	rc = bell != *bell_of(c) ? BL_AGAIN : take_on(c, conn, bells);
	bl_pool_put(&c->client->pool, conn);
	return rc;
}

/* Does the connection have one of the doorbells, for another owner? See bl_held_has_bell(). */
static bool bells_are_here(const struct bl_contest *c, const struct bl_conn *conn)
{
	bool here = false;

	for (size_t i = 0; i < c->n && !here; i++)
		here = bl_held_has_bell(&c->client->held, c->goals[i]->key, conn->id);
	return here;
}

static int take_several(struct bl_contest *c, bool with_bells)
{
	struct bl_patience patience = bl_attempt_patience(c);
	struct bl_conn *conn;
	int rc;

	patience.bells = with_bells ? (unsigned)c->n : 0;
	rc = bl_pool_take(&c->client->pool, patience, &conn, c->call->err);
	if (rc != BIZLOCK_OK)
		return rc;
	if (with_bells && bells_are_here(c, conn))
		rc = BL_AGAIN;
	else
		rc = take_on(c, conn, bells_on(c, conn, with_bells));
	bl_pool_put(&c->client->pool, conn);
	return rc;
}

struct bl_job bl_attempt_job(struct bl_contest *c)
{
	if (c->among)
		return bl_shared_job(c);
	bl_attempt_note_floor(c);
	return (struct bl_job){
	        .entry = {.claim = bl_attempt_claim(c), .goal = c->goals[0], .row = c->row},
	        .bell = bell_of(c)};
}

static int won_in_batch(struct bl_contest *c, const struct bl_job *job)
{
	c->sent = job->sent;
	return job->entry.ordered ? bl_attempt_won(c) : draw_again_anywhere(c);
}

int bl_attempt_answer(struct bl_contest *c, const struct bl_job *job)
{
	c->unsure |= job->entry.maybe;
	if (job->state != BL_JOB_DONE) {
		c->alone = true;
		return bl_attempt(c, true);
	}
	if (c->among && job->sent) /* even if the answer was lost: the row may be found later */
		c->sent = job->sent;
	if (job->rc != BIZLOCK_OK)
		return job->rc;
	if (c->among)
		return bl_shared_answer(c, job);
	if (job->entry.done)
		return won_in_batch(c, job);
	c->seen = true;
	return BL_AGAIN;
}

/* For a single key, takes row and doorbell in a batch with jobs of other threads, or alone. */
int bl_attempt(struct bl_contest *c, bool with_bells)
{
	enum bl_combined combined;
	struct bl_conn *conn;
	struct bl_job job;
	int rc = BL_AGAIN;

	if (c->n > 1)
		return take_several(c, with_bells);
	if (c->among)
		return bl_shared_attempt(c, false);
	if (!with_bells || *bell_of(c))
		return take_row(c);
	job = bl_attempt_job(c);
	job.entry.row = NULL;
	combined = bl_combine_acquire(c->call, &job, bl_attempt_patience(c), &conn);
	c->unsure |= job.entry.maybe;
	switch (combined) {
	case BL_COMBINED_LENT:
		rc = take_on(c, conn, bells_on(c, conn, true));
		bl_pool_put(&c->client->pool, conn);
		break;
	case BL_COMBINED_DONE:
		rc = won_in_batch(c, &job);
		break;
	case BL_COMBINED_FAILED:
		rc = c->call->err->code;
		break;
	case BL_COMBINED_NOT_DONE:
	case BL_COMBINED_STALLS:
		break;
	}
	return rc;
}

int bl_attempt_rung(struct bl_contest *c, struct bl_conn *conn)
{
	struct bl_with_bells bells = {true, c->blocker->goal.bell};

	if (c->n == 1)
		bl_attempt_note_bells(c, conn);
	if (c->among)
		return bl_shared_rung(c, conn);
	return take_on(c, conn, bells);
}

/* ---- looking ----------------------------------------------------------------------------- */

/* How much such a row is in the way: a holder most, because its lease says for how long. */
static int weight(const struct bl_row *row)
{
	if (row->left_us > 0)
		return 3;
	return row->locked ? 2 : row->bell_by != 0;
}

/* Under a row whose lease is over, others may share the lock, or have left rows that are over,
 * too. */
static int look_at_sharers(struct bl_session *s, const struct bl_contest *c, struct bl_member *m,
                           struct bl_row *ret)
{
	struct bl_wish wish = {.key = &m->call.key,
	                       .owner = m->call.owner_full,
	                       .bell = c->wait.bells ? bl_call_bell(&m->call) : NULL,
	                       .exclusive = true};
	struct bl_shared_seen seen = {.mine = false};
	int rc = bl_shared_look(s, &wish, c->locked ? BL_SHARED_READ : BL_SHARED_CLEAR, &seen,
	                        c->call->err);

	m->goal.cleared |= seen.took_over;
	if (rc == BIZLOCK_OK)
		*ret = seen.in_way;
	return rc;
}

static int look_at_key(struct bl_session *s, const struct bl_contest *c, struct bl_member *m,
                       struct bl_row *ret)
{
	const char *bell = c->wait.bells ? bl_call_bell(&m->call) : NULL;
	int rc = bl_lock_look(s, &m->call.key, bell, ret, c->call->err);

	if (rc == BIZLOCK_OK && c->n > 1 && ret->found && ret->left_us <= 0)
		rc = look_at_sharers(s, c, m, ret);
	return rc;
}

int bl_attempt_ask_table(struct bl_contest *c, bool *ret_reads)
{
	struct bl_conn *conn;
	int rc = bl_attempt_borrow(c, &conn);

	*ret_reads = false;
	if (rc != BIZLOCK_OK)
		return rc;
	bl_unlock(c->client);
	rc = bl_lock_ask_table(&conn->session, ret_reads, c->call->err);
	bl_lock(c->client);
	bl_pool_put(&c->client->pool, conn);
	return rc;
}

/* Under a row whose lease is over, others may share the lock. And a holder without the doorbell
 * wakes nobody: the owner of the doorbell would have to poll. In a contest among sharers the first
 * in line sleeps instead, and is woken. */
static bool goes_among(const struct bl_contest *c, const struct bl_row *row)
{
	return row->left_us <= 0 ? row->found : *bell_of(c) != 0;
}

int bl_attempt_look(struct bl_contest *c)
{
	struct bl_row row = {.found = false};
	struct bl_conn *conn;
	int rc = bl_attempt_borrow(c, &conn);

	if (rc != BIZLOCK_OK)
		return rc;
	if (c->among)
		return bl_shared_look_on(c, conn);
	bl_unlock(c->client);
	for (size_t i = 0; i < c->n && rc == BIZLOCK_OK && row.left_us <= 0; i++) {
		rc = look_at_key(&conn->session, c, c->members[i], &row);
		if (rc == BIZLOCK_OK && (i == 0 || weight(&row) > weight(c->row))) {
			c->blocker = c->members[i];
			*c->row = row;
		}
	}
	bl_lock(c->client);
	c->among = rc == BIZLOCK_OK && c->n == 1 && goes_among(c, &row);
	if (c->among)
		return bl_shared_look_on(c, conn);
	bl_pool_put(&c->client->pool, conn);
	return rc;
}
