#include "client/retry.h"

#include "client/combine.h"
#include "core/backoff.h"
#include "store/errclass.h"
#include "store/tx.h"

#define FENCED "fenced by a transaction that is open"

/* The connection of the bell if it is still there, or else any. *ret_bell: the
 * bell's name when it is to be released on it. */
static int lend_for(struct bl_call *call, uint64_t bell, struct bl_conn **ret,
                    const char **ret_bell, struct bl_err *err)
{
	struct bl_pool *pool = &call->client->pool;
	struct bl_conn *conn = NULL;
	int rc = BIZLOCK_OK;

	pthread_mutex_lock(&call->client->mu);
	if (bell)
		rc = bl_pool_take_id(pool, bell, (struct bl_patience){.end = call->io_deadline},
		                     &conn, err);
	*ret_bell = conn ? call->bell : NULL;
	if (rc == BIZLOCK_OK && !conn)
		rc = bl_pool_take(pool, (struct bl_patience){.end = call->io_deadline}, &conn, err);
	pthread_mutex_unlock(&call->client->mu);
	if (rc == BIZLOCK_OK)
		*ret = conn;
	return rc;
}

/* bells: so many of its own were given back, whatever came of the rest. */
static void put(struct bl_call *call, struct bl_conn *conn, unsigned bells)
{
	pthread_mutex_lock(&call->client->mu);
	if (!conn->session.gone)
		conn->bells -= bells;
	bl_pool_put(&call->client->pool, conn);
	pthread_mutex_unlock(&call->client->mu);
}

static int change_on(struct bl_call *call, struct bl_session *s, struct bl_change *ch,
                     const char *bell)
{
	struct bl_err *err = call->err;

	switch (ch->what) {
	case BL_CHANGE_DEPTH:
		return bl_lock_depth(s, ch->ref, ch->depth, ch->lease_ms, &ch->matched, err);
	case BL_CHANGE_RENEW:
		return bl_lock_renew(s, ch->ref, ch->lease_ms, &ch->matched, err);
	case BL_CHANGE_ADOPT:
		return bl_lock_adopt(s, ch->ref, ch->heir, ch->depth, ch->lease_ms, ch->exported,
		                     &ch->matched, err);
	case BL_CHANGE_DROP:
		return bl_lock_drop(s, ch->ref, bell, ch->rest_us, &ch->matched, err);
	case BL_CHANGE_DROP_SET:
		return bl_set_drop(s, ch->items, ch->count, call->client->process.suffix, bell,
		                   ch->rows, err);
	case BL_CHANGE_SWEEP:
		return bl_lock_sweep(s, ch->ref, &ch->matched, err);
	case BL_CHANGE_BREAK:
		return bl_lock_break(s, ch->ref, &ch->matched, err);
	case BL_CHANGE_ROW:
		return bl_row_provide(s, ch->ref.key, &ch->matched, err);
	case BL_CHANGE_ROW_LOOK:
		return bl_row_look(s, ch->ref.key, &ch->matched, err);
	case BL_CHANGE_REAP:
		return ch->step(s, ch->reap, err);
	case BL_CHANGE_KICK:
		return bl_bell_kick(s, call->bell, ch->keeper, err);
	case BL_CHANGE_BELL:
		return bell ? bl_bell_free(s, bell, err) : BIZLOCK_OK;
	}
	return BIZLOCK_OK;
}

/* A statement would wait for a row that a transaction has fenced, for a second at a time,
 * and the hold's owner with it. So whoever may meet one looks first. *ret_gone: there is
 * nothing to wait for, or to change. */
static int look_first(struct bl_session *s, struct bl_change *ch, bool *ret_gone,
                      struct bl_err *err)
{
	struct bl_row row;
	bool locked = false;
	int rc = bl_lock_probe(s, ch->ref.key, &locked, err);

	*ret_gone = false;
	if (rc == BIZLOCK_OK && locked)
		rc = bl_lock_look(s, ch->ref.key, NULL, &row, err);
	if (rc != BIZLOCK_OK)
		return rc;
	ch->hold->fenced = locked;
	*ret_gone = locked && (!row.found || row.fence != ch->ref.fence);
	return locked && !*ret_gone ? bl_err_set(err, BIZLOCK_BUSY, FENCED) : rc;
}

static bool may_be_fenced(const struct bl_change *ch)
{
	return ch->hold && ch->hold->fenced;
}

static unsigned bells_of(const struct bl_change *ch)
{
	return ch->what == BL_CHANGE_DROP_SET ? (unsigned)ch->count : 1;
}

static int try_on(struct bl_call *call, struct bl_change *ch, struct bl_conn *conn,
                  const char *bell)
{
	bool gone = false;
	int rc = BIZLOCK_OK;

	if (may_be_fenced(ch))
		rc = look_first(&conn->session, ch, &gone, call->err);
	if (rc != BIZLOCK_OK || gone) {
		put(call, conn, 0);
		return rc;
	}
	ch->sent = bl_now();
	rc = change_on(call, &conn->session, ch, bell);
	ch->repeated |= rc == BIZLOCK_CONN && bl_may_have_run(call->err);
	/* Refused, the packet's second half was not run: the bell is still held,
	 * and only this connection's end is sure to release it. */
	if (bell && rc != BIZLOCK_OK)
		bl_session_leave(&conn->session);
	put(call, conn, bell ? bells_of(ch) : 0);
	if (bell)
		ch->bell = 0;
	return rc;
}

static int try_alone(struct bl_call *call, struct bl_change *ch)
{
	struct bl_conn *conn;
	const char *bell;
	int rc = lend_for(call, ch->bell, &conn, &bell, call->err);

	if (rc != BIZLOCK_OK)
		return rc;
	if (!bell)
		ch->bell = 0;
	return try_on(call, ch, conn, bell);
}

/* The row can go through any connection, and others want it. The doorbell stays where it
 * is for now: who comes from now on goes past it, who sleeps at it is woken when it is
 * given back, later. */
static int try_past(struct bl_call *call, struct bl_change *ch)
{
	struct bl_conn *conn;
	const char *none;
	int rc = lend_for(call, 0, &conn, &none, call->err);

	if (rc != BIZLOCK_OK)
		return rc;
	return try_on(call, ch, conn, conn->id == ch->bell ? call->bell : NULL);
}

/* A last release, with what other threads want from the server now. Of what the batch
 * has left the statement for one knows why. */
static int try_in_company(struct bl_call *call, struct bl_change *ch)
{
	struct bl_job job = {.entry = {.hold = ch->ref, .bell = call->bell}};
	struct bl_conn *conn;
	int rc = bl_combine_release(call, &job, ch->bell, &conn);

	if (rc != BIZLOCK_OK)
		return rc;
	if (conn)
		return try_on(call, ch, conn, call->bell);
	if (job.state != BL_JOB_DONE)
		return job.state == BL_JOB_LEFT ? try_past(call, ch) : try_alone(call, ch);
	ch->repeated |= job.entry.maybe;
	if (job.rc != BIZLOCK_OK)
		return job.rc;
	if (!job.entry.done)
		return try_alone(call, ch);
	ch->bell = 0;
	ch->matched = true;
	ch->sent = job.sent;
	return BIZLOCK_OK;
}

static int try_once(struct bl_call *call, struct bl_change *ch)
{
	bool drops = ch->what == BL_CHANGE_DROP && ch->bell && ch->rest_us <= 0;

	return drops ? try_in_company(call, ch) : try_alone(call, ch);
}

static bool may_heal(const struct bl_err *err)
{
	enum bl_class class = bl_classify(err->native);

	return err->code == BIZLOCK_CONN || class == BL_CLASS_RETRY || class == BL_CLASS_STOPPED;
}

static bool worth_another(const struct bl_call *call, const struct bl_err *err)
{
	return may_heal(err) && !bl_passed(call->io_deadline) && !bl_call_closing(call) &&
	       !bl_call_interrupted(call);
}

void bl_retry_count(struct bizlock *b, const struct bl_err *err)
{
	enum bl_class class = bl_classify(err->native);

	if (class == BL_CLASS_RETRY)
		bl_count(&b->numbers, BL_COUNT_RETRIED_CONFLICT);
	else if (class == BL_CLASS_STOPPED)
		bl_count(&b->numbers, BL_COUNT_RETRIED_STOPPED);
	else if (class == BL_CLASS_GONE)
		bl_count(&b->numbers, BL_COUNT_RETRIED_LOST);
}

static void pause_before(struct bl_call *call, const struct bl_err *err, unsigned attempt)
{
	bl_retry_count(call->client, err);
	bl_call_pause(call, bl_now() + bl_backoff_ns(attempt, bl_client_random(call->client)));
}

/* A statement of bizlock's own, such as another contender's try, has a row for a moment, too. */
static bool may_be_momentary(const struct bl_call *call, struct bl_change *ch)
{
	if (call->err->code != BIZLOCK_BUSY)
		return false;
	if (!ch->fenced_at)
		ch->fenced_at = bl_now();
	return !bl_passed(bl_earlier(ch->fenced_at + BL_MOMENT_NS, call->io_deadline));
}

/* What keeps a hold is in vain once it is lost. */
static bool is_in_vain(struct bl_call *call, const struct bl_change *ch)
{
	bool lost;

	if (!ch->hold || (ch->what != BL_CHANGE_DEPTH && ch->what != BL_CHANGE_RENEW))
		return false;
	pthread_mutex_lock(&call->client->mu);
	lost = ch->hold->state == BL_HOLD_LOST;
	pthread_mutex_unlock(&call->client->mu);
	return lost;
}

/* A row that kept a statement waiting may be fenced without our having been asked. Of a set
 * nobody knows which one it is. */
static bool goes_on(struct bl_call *call, struct bl_change *ch)
{
	bool waited = bl_waited_in_vain(call->err);

	if (waited && ch->what == BL_CHANGE_DROP_SET)
		return false;
	if (waited && ch->hold)
		ch->hold->fenced = true;
	return (worth_another(call, call->err) || may_be_momentary(call, ch)) &&
	       !is_in_vain(call, ch);
}

int bl_retry_change(struct bl_call *call, struct bl_change *change)
{
	int rc = try_once(call, change);

	for (unsigned i = 0; rc != BIZLOCK_OK && goes_on(call, change); i++) {
		pause_before(call, call->err, i);
		rc = try_once(call, change);
	}
	if (rc != BIZLOCK_OK && change->repeated)
		return call->err->code = BIZLOCK_UNKNOWN;
	if (rc != BIZLOCK_OK && may_heal(call->err) && bl_call_interrupted(call))
		return bl_call_check(call);
	return rc;
}

static int look_once(struct bl_call *call, struct bl_row *ret, struct bl_err *err)
{
	struct bl_conn *conn;
	const char *ignored;
	int rc = lend_for(call, 0, &conn, &ignored, err);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_lock_look(&conn->session, &call->key, call->bell, ret, err);
	put(call, conn, 0);
	return rc;
}

int bl_retry_look(struct bl_call *call, struct bl_row *ret, struct bl_err *err)
{
	int rc = look_once(call, ret, err);

	for (unsigned i = 0; rc != BIZLOCK_OK && worth_another(call, err); i++) {
		pause_before(call, err, i);
		rc = look_once(call, ret, err);
	}
	return rc;
}
