/* A set is taken by one statement or not at all, doorbells and rows. Whoever is in the
 * way is waited for without holding anything but, at most, that one key's doorbell: so
 * nobody waits for a set that waits. */
#include "client/set_contest.h"

#include "client/contender.h"
#include "client/hold.h"
#include "core/backoff.h"
#include "core/lease.h"
#include "store/errclass.h"

/* How long a try goes on when nobody is in the way and it fails all the same. */
#define TRY_NS (300 * BL_NS_PER_MS)
#define TRY_FAILURES 3

/* Rows that are gone again were broken; and we may have slept through it all. */
static bool still_ours(const struct bl_set *s)
{
	bool all = bl_lease_end(s->sent, s->request->lease_ms * 1000LL) > bl_now();

	for (size_t i = 0; i < s->fresh; i++)
		all &= s->rows[i].seen;
	return all;
}

static void note_bells(struct bl_set *s, struct bl_conn *conn)
{
	pthread_mutex_lock(&s->b->mu);
	conn->bells += (unsigned)s->fresh;
	for (size_t i = 0; i < s->n; i++)
		if (s->members[i].is_new)
			s->members[i].hold->bell = conn->id;
	pthread_mutex_unlock(&s->b->mu);
}

/* rung: the doorbell that the connection has already, or NULL. */
static int take_on(struct bl_set *s, struct bl_conn *conn, bool ring, const char *rung)
{
	struct bl_set_claim claim = {.owner = s->call->owner_full,
	                             .note = s->request->note,
	                             .lease_ms = s->request->lease_ms,
	                             .ring = ring && conn->bells + s->fresh <= BL_BELLS_MAX,
	                             .rung = rung};
	enum bl_set_took took;
	int rc;

	s->sent = bl_now();
	rc = bl_set_take(&conn->session, s->items, s->fresh, &claim, s->rows, &took, s->call->err);
	s->unsure |= took == BL_SET_MAYBE || (rc == BIZLOCK_CONN && bl_may_have_run(s->call->err));
	if (rc != BIZLOCK_OK || took != BL_SET_ALL)
		return rc != BIZLOCK_OK ? rc : BL_AGAIN;
	if (!claim.ring || bl_now() >= s->sent + BL_PROMPT_NS)
		rc = bl_set_draw_again(&conn->session, s->items, s->fresh, claim.owner, s->rows,
		                       s->call->err);
	if (rc == BIZLOCK_OK && still_ours(s)) {
		if (claim.ring)
			note_bells(s, conn);
		return BIZLOCK_OK;
	}
	if (claim.ring && !conn->session.gone)
		bl_set_free_bells(&conn->session, s->items, s->fresh);
	s->unsure = true;
	return rc != BIZLOCK_OK ? rc : BL_AGAIN;
}

/* Does the connection have a doorbell of ours, for another owner? It would be rung. */
static bool bells_are_here(const struct bl_set *s, const struct bl_conn *conn)
{
	bool here = false;

	for (size_t i = 0; i < s->fresh && !here; i++)
		here = bl_bell_is_here(s->b, &s->items[i].key, conn);
	return here;
}

static int take(struct bl_set *s)
{
	bool ring = s->bells && !s->past;
	struct bl_patience patience = {
	        .end = s->request->once ? s->call->io_deadline : s->call->deadline,
	        .wakes = &s->b->wakes,
	        .seen = s->call->wakes,
	        .bells = ring ? (unsigned)s->fresh : 0,
	};
	struct bl_conn *conn;
	bool here;
	int rc;

	s->past = false;
	pthread_mutex_lock(&s->b->mu);
	rc = bl_pool_take(&s->b->pool, patience, &conn, s->call->err);
	here = rc == BIZLOCK_OK && ring && bells_are_here(s, conn);
	pthread_mutex_unlock(&s->b->mu);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = here ? BL_AGAIN : take_on(s, conn, ring, NULL);
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
	enum bl_heard heard;
	int rc;

	bl_conn_quiet(conn);
	rc = bl_call_check(s->call);
	if (rc == BIZLOCK_OK)
		rc = bl_bell_wait(&conn->session, m->call.bell, bl_left_ms(until), conn->wake_fd,
		                  &heard, s->call->err);
	if (rc != BIZLOCK_OK)
		return rc;
	if (heard == BL_HEARD_RING)
		return take_on(s, conn, true, m->call.bell);
	/* A wait that the server cut short must not become a busy loop. */
	if (heard == BL_HEARD_NONE)
		pause_until(s, until);
	return BL_AGAIN;
}

static int wait_at_bell(struct bl_set *s, const struct bl_member *m, bl_time until)
{
	struct bl_conn *conn;
	int rc;

	pthread_mutex_lock(&s->b->mu);
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

/* As a contest for one key does: no longer than the lease, or than a grace when no
 * release will ring. A doorbell that nobody has would be ours at once, and for nothing. */
static int while_held(struct bl_set *s, const struct bl_member *m, const struct bl_row *row)
{
	bl_time until = bl_earlier(s->end, bl_now() + row->left_us * 1000);

	s->stuck_by = 0;
	if (s->request->once || bl_passed(s->end))
		return refuse(s, m, row);
	if (!s->bells || !row->bell_by) {
		pause_until(s, until);
		return BL_AGAIN;
	}
	if (row->bell != row->bell_by)
		until = bl_earlier(until, bl_now() + BL_GRACE_NS);
	return wait_at_bell(s, m, until);
}

/* The row is free, but not its doorbell. */
static int while_blocked(struct bl_set *s, const struct bl_member *m, const struct bl_row *row)
{
	bool first = s->stuck_by == 0;

	if (s->stuck_by == row->bell_by && bl_passed(s->stuck_until)) {
		s->past = true;
		s->stuck_until = bl_now() + BL_GRACE_NS;
		return BL_AGAIN;
	}
	if (s->stuck_by != row->bell_by) {
		s->stuck_by = row->bell_by;
		s->stuck_until = bl_now() + BL_GRACE_NS +
		                 (bl_time)(bl_client_random(s->b) % BL_GRACE_JITTER_NS);
		if (first && s->request->once && s->end < s->stuck_until)
			s->end = s->stuck_until;
	}
	if (bl_passed(s->end))
		return refuse(s, m, row);
	if (!s->request->once)
		return wait_at_bell(s, m, bl_earlier(s->stuck_until, s->end));
	pause_until(s, bl_earlier(s->stuck_until, s->end));
	return BL_AGAIN;
}

/* Who is in the way? A holder, or else somebody who only has a doorbell. *ret NULL:
 * nobody any more. */
static int look(struct bl_set *s, const struct bl_member **ret, struct bl_row *ret_row)
{
	struct bl_row row = {.found = false};
	int rc = BIZLOCK_OK;

	*ret = NULL;
	for (size_t i = 0; i < s->n && rc == BIZLOCK_OK && row.left_us <= 0; i++) {
		if (!s->members[i].is_new)
			continue;
		rc = bl_retry_look(&s->members[i].call, &row, s->call->err);
		if (row.left_us > 0 || (s->bells && row.bell_by && !*ret)) {
			*ret = &s->members[i];
			*ret_row = row;
		}
	}
	return rc;
}

static int look_and_wait(struct bl_set *s)
{
	const struct bl_member *m = NULL;
	struct bl_row row = {.found = false};
	int rc = look(s, &m, &row);

	if (rc != BIZLOCK_OK)
		return rc;
	if (s->end == BL_NEVER && s->request->once)
		s->end = bl_now() + TRY_NS;
	if (m && row.left_us > 0)
		return while_held(s, m, &row);
	if (m)
		return while_blocked(s, m, &row);
	s->stuck_by = 0;
	if (bl_passed(s->end))
		return refuse(s, s->members, &row);
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
	bl_retry_count(s->b, err);
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
