/* A set is taken by one statement or not at all. Whoever is in the way is waited for
 * without holding anything but, at most, that one key's doorbell: so nobody waits
 * for a set that waits. */
#include "client/set_contest.h"

#include "client/contender.h"
#include "client/hold.h"
#include "core/backoff.h"
#include "core/lease.h"
#include "store/errclass.h"

/* How long a try goes on when nobody is in the way and it fails all the same. */
#define TRY_NS (300 * BL_NS_PER_MS)
#define TRY_FAILURES 3

static int take_on(struct bl_set *s, struct bl_conn *conn)
{
	struct bl_set_claim claim = {s->call->owner_full, s->request->note, s->request->lease_ms};
	bool all = false;
	int rc;

	s->sent = bl_now();
	rc = bl_set_take(&conn->session, s->items, s->fresh, &claim, s->rows, &all, s->call->err);
	s->unsure |= rc == BIZLOCK_CONN && bl_may_have_run(s->call->err);
	if (rc != BIZLOCK_OK || !all)
		return rc != BIZLOCK_OK ? rc : BL_AGAIN;
	/* Rows that are gone again were broken; and we may have slept through it all. */
	for (size_t i = 0; i < s->fresh; i++)
		all &= s->rows[i].seen;
	all &= bl_lease_end(s->sent, s->request->lease_ms * 1000LL) > bl_now();
	s->unsure |= !all;
	return all ? BIZLOCK_OK : BL_AGAIN;
}

static int take(struct bl_set *s)
{
	struct bl_patience patience = {
	        .end = s->request->once ? s->call->io_deadline : s->call->deadline,
	        .wakes = &s->b->wakes,
	        .seen = s->call->wakes,
	};
	struct bl_conn *conn;
	int rc;

	pthread_mutex_lock(&s->b->mu);
	rc = bl_pool_take(&s->b->pool, patience, &conn, s->call->err);
	pthread_mutex_unlock(&s->b->mu);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = take_on(s, conn);
	pthread_mutex_lock(&s->b->mu);
	bl_pool_put(&s->b->pool, conn);
	pthread_mutex_unlock(&s->b->mu);
	return rc;
}

/* Rows of a take whose reply was lost would be in our own way. */
static int sweep(struct bl_set *s)
{
	int rc = BIZLOCK_OK;

	for (size_t i = 0; i < s->n && rc == BIZLOCK_OK; i++) {
		struct bl_member *m = &s->members[i];
		struct bl_change change = {.what = BL_CHANGE_SWEEP,
		                           .ref = {&m->call.key, m->call.owner_full, 0}};

		if (!m->is_new)
			continue;
		pthread_mutex_lock(&s->b->mu);
		change.ref.fence = bl_hold_twin(s->b, m->hold);
		pthread_mutex_unlock(&s->b->mu);
		rc = bl_retry_change(&m->call, &change);
	}
	s->unsure = rc != BIZLOCK_OK;
	return rc;
}

static void pause_until(struct bl_set *s, bl_time until)
{
	bl_time next = bl_now() + bl_backoff_ns(s->pauses++, bl_client_random(s->b));

	bl_call_sleep(s->call, bl_earlier(next, until));
}

/* Waits at the doorbell of the key that is in the way, and tries while we have it. */
static int hear(struct bl_set *s, const struct bl_member *m, struct bl_conn *conn, bl_time until)
{
	struct bl_err ignored;
	enum bl_heard heard;
	int rc;

	bl_conn_quiet(conn);
	rc = bl_call_check(s->call);
	if (rc == BIZLOCK_OK)
		rc = bl_bell_wait(&conn->session, m->call.bell, bl_left_ms(until), conn->wake_fd,
		                  &heard, s->call->err);
	if (rc != BIZLOCK_OK)
		return rc;
	if (heard != BL_HEARD_RING)
		return BL_AGAIN;
	rc = take_on(s, conn);
	if (!conn->session.gone && bl_bell_free(&conn->session, m->call.bell, &ignored))
		bl_session_leave(&conn->session);
	return rc;
}

static int wait_for(struct bl_set *s, const struct bl_member *m, const struct bl_row *row)
{
	bl_time until = bl_earlier(s->end, bl_now() + row->left_us * 1000);
	bool rings = s->b->bells && !(s->request->flags & BIZLOCK_NO_QUEUE) && row->bell &&
	             row->bell == row->bell_by;
	struct bl_conn *conn = NULL;
	int rc = BIZLOCK_OK;

	pthread_mutex_lock(&s->b->mu);
	if (rings)
		rc = bl_pool_take_for_bell(&s->b->pool, &conn, s->call->err);
	pthread_mutex_unlock(&s->b->mu);
	if (rc != BIZLOCK_OK)
		return rc;
	if (!conn) {
		pause_until(s, until);
		return BL_AGAIN;
	}
	rc = hear(s, m, conn, until);
	pthread_mutex_lock(&s->b->mu);
	bl_pool_bell_over(&s->b->pool);
	bl_pool_put(&s->b->pool, conn);
	pthread_mutex_unlock(&s->b->mu);
	return rc;
}

static int refuse(struct bl_set *s, const struct bl_member *m, const struct bl_row *row)
{
	char holder[320];

	bl_describe(row, holder, sizeof(holder));
	return bl_err_set(s->call->err, s->request->once ? BIZLOCK_BUSY : BIZLOCK_TIMEOUT,
	                  "%s/%s: %s", m->call.key.type, m->call.key.id, holder);
}

/* Somebody was in the way: who, and what now? */
static int look_and_wait(struct bl_set *s)
{
	const struct bl_member *m = NULL;
	struct bl_row row = {.found = false};
	int rc = BIZLOCK_OK;

	for (size_t i = 0; i < s->n && rc == BIZLOCK_OK && row.left_us <= 0; i++) {
		if (!s->members[i].is_new)
			continue;
		m = &s->members[i];
		rc = bl_retry_look(&s->members[i].call, &row, s->call->err);
	}
	if (rc != BIZLOCK_OK)
		return rc;
	if (s->end == BL_NEVER && s->request->once)
		s->end = bl_now() + TRY_NS;
	if ((s->request->once && row.left_us > 0) || bl_passed(s->end))
		return refuse(s, m, &row);
	if (row.left_us > 0)
		return wait_for(s, m, &row);
	pause_until(s, s->end);
	return BL_AGAIN;
}

/* As in a contest for one key. */
static int survive(struct bl_set *s, int rc)
{
	struct bl_err *err = s->call->err;
	enum bl_class class = bl_classify(err->native);
	bool over = bl_passed(s->end);

	if (rc == BIZLOCK_CONN)
		over |= s->request->once && ++s->failures >= TRY_FAILURES;
	else if (class != BL_CLASS_RETRY && class != BL_CLASS_STOPPED)
		return rc;
	if (over && rc == BIZLOCK_CONN)
		return err->code = s->unsure ? BIZLOCK_UNKNOWN : BIZLOCK_CONN;
	if (over)
		return bl_err_set(err, s->request->once ? BIZLOCK_BUSY : BIZLOCK_TIMEOUT,
		                  "others were quicker, again and again");
	pause_until(s, s->end);
	return BL_AGAIN;
}

int bl_set_contest(struct bl_set *s)
{
	int rc = take(s);

	for (;;) {
		if (rc == BIZLOCK_CONN || rc == BIZLOCK_DB)
			rc = survive(s, rc);
		if (rc != BL_AGAIN)
			return rc;
		rc = bl_call_check(s->call);
		if (rc != BIZLOCK_OK)
			return rc;
		if (s->unsure)
			rc = sweep(s);
		if (rc == BIZLOCK_OK)
			rc = look_and_wait(s);
		if (rc == BL_AGAIN)
			rc = take(s);
	}
}
