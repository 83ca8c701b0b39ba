/* A set is taken by one statement or not at all. Whoever is in the way is waited for
 * without holding anything but, at most, that one key's doorbell: so nobody waits
 * for a set that waits. */
#include "client/set.h"

#include <stdlib.h>
#include <string.h>

#include "client/acquire.h"
#include "client/contender.h"
#include "core/backoff.h"
#include "core/lease.h"
#include "store/errclass.h"

/* How long a try goes on when nobody is in the way and it fails all the same. */
#define TRY_NS (300 * BL_NS_PER_MS)
#define TRY_FAILURES 3

struct set {
	struct bizlock *b;
	struct bl_member *members;
	size_t n, fresh; /* how many are new: items and rows have that many */
	struct bl_item *items;
	struct bl_set_row *rows;
	const struct bl_request *request;
	struct bl_call *call; /* the first one: for what concerns them all */
	bl_time end, sent;
	unsigned pauses, failures;
	bool unsure; /* a reply was lost: the rows may be there */
};

static int by_primary_key(const void *a, const void *b)
{
	const struct bl_key *x = &((const struct bl_member *)a)->call.key;
	const struct bl_key *y = &((const struct bl_member *)b)->call.key;
	int order = strcmp(x->id, y->id);

	return order ? order : strcmp(x->type, y->type);
}

static int sort(struct bl_member *members, size_t n)
{
	qsort(members, n, sizeof(*members), by_primary_key);
	for (size_t i = 1; i < n; i++)
		if (bl_key_equal(&members[i].call.key, &members[i - 1].call.key))
			return bl_err_set(members->call.err, BIZLOCK_INVALID,
			                  "keys: %s/%s is there twice", members[i].call.key.type,
			                  members[i].call.key.id);
	return BIZLOCK_OK;
}

/* ---- steps ------------------------------------------------------------------------ */

static int begin_all(struct set *s)
{
	int rc = BIZLOCK_OK;

	for (size_t i = 0; i < s->n && rc == BIZLOCK_OK; i++) {
		struct bl_member *m = &s->members[i];

		pthread_mutex_lock(&s->b->mu);
		rc = bl_acquire_begin(&m->call, s->request->once, &m->hold);
		m->is_new = rc == BIZLOCK_OK && m->hold->state == BL_HOLD_ACQUIRING;
		pthread_mutex_unlock(&s->b->mu);
		if (m->is_new)
			s->items[s->fresh++].key = m->call.key;
		else if (rc == BIZLOCK_OK && !bl_hold_held(&m->call, m->hold))
			rc = bl_hold_lost(&m->call, m->hold);
	}
	return rc;
}

static int take_on(struct set *s, struct bl_conn *conn)
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

static int take(struct set *s)
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
static int sweep(struct set *s)
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

static void pause_until(struct set *s, bl_time until)
{
	bl_time next = bl_now() + bl_backoff_ns(s->pauses++, bl_client_random(s->b));

	bl_call_sleep(s->call, bl_earlier(next, until));
}

/* Waits at the doorbell of the key that is in the way, and tries while we have it. */
static int hear(struct set *s, const struct bl_member *m, struct bl_conn *conn, bl_time until)
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

static int wait_for(struct set *s, const struct bl_member *m, const struct bl_row *row)
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

static int refuse(struct set *s, const struct bl_member *m, const struct bl_row *row)
{
	char holder[320];

	bl_describe(row, holder, sizeof(holder));
	return bl_err_set(s->call->err, s->request->once ? BIZLOCK_BUSY : BIZLOCK_TIMEOUT,
	                  "%s/%s: %s", m->call.key.type, m->call.key.id, holder);
}

/* Somebody was in the way: who, and what now? */
static int look_and_wait(struct set *s)
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
static int survive(struct set *s, int rc)
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

static int contest(struct set *s)
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

static void settle_all(struct set *s)
{
	size_t at = 0;

	pthread_mutex_lock(&s->b->mu);
	for (size_t i = 0; i < s->n; i++) {
		struct bl_member *m = &s->members[i];
		struct bl_won won = {.sent = s->sent};

		if (!m->is_new)
			continue;
		won.fence = s->rows[at].fence;
		m->took_over = s->rows[at++].took_over;
		bl_acquire_settle(s->b, m->hold, &won, s->request);
	}
	pthread_mutex_unlock(&s->b->mu);
}

static int deepen_all(struct set *s)
{
	int rc = BIZLOCK_OK;

	for (size_t i = 0; i < s->n && rc == BIZLOCK_OK; i++) {
		struct bl_member *m = &s->members[i];

		if (m->is_new)
			continue;
		rc = bl_acquire_deeper(&m->call, m->hold, s->request);
		m->deeper = rc == BIZLOCK_OK;
	}
	return rc;
}

/* What was done so far, when the rest failed. The error stays. */
static void undo(struct set *s)
{
	struct bl_err kept = *s->call->err;

	for (size_t i = 0; i < s->n; i++)
		if (s->members[i].deeper)
			bl_release_level(&s->members[i].call, s->members[i].hold);
	*s->call->err = kept;
}

static void end_all(struct set *s, bool unsure)
{
	pthread_mutex_lock(&s->b->mu);
	for (size_t i = 0; i < s->n; i++) {
		struct bl_hold *h = s->members[i].hold;

		if (!h)
			continue;
		h->unsure |= h->state == BL_HOLD_ACQUIRING && unsure;
		bl_acquire_end(s->b, h);
	}
	pthread_mutex_unlock(&s->b->mu);
}

/* The holds are busy: nobody changes them while we look. */
static void grant_all(const struct set *s, bizlock_grant *ret, bl_time began)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct bl_member *m = &s->members[i];
		bizlock_grant grant = BIZLOCK_GRANT_INIT;

		bl_acquire_grant(m->hold, s->request->lease_ms, m->took_over, &grant);
		bl_acquire_count(&s->b->numbers, &grant, began);
		if (ret)
			ret[m->place] = grant;
	}
}

static int acquire_all(struct set *s, bizlock_grant *ret, bl_time began)
{
	int rc = begin_all(s);
	bool taken = false;

	if (rc == BIZLOCK_OK && s->fresh > 0) {
		rc = contest(s);
		taken = rc == BIZLOCK_OK;
	}
	if (rc == BIZLOCK_OK)
		rc = deepen_all(s);
	if (rc == BIZLOCK_OK && taken)
		settle_all(s);
	if (rc == BIZLOCK_OK)
		grant_all(s, ret, began);
	else
		undo(s);
	end_all(s, s->unsure || taken);
	return rc;
}

int bl_client_acquire_all(struct bl_member *members, size_t n, const struct bl_request *request,
                          bizlock_grant *ret)
{
	struct bl_call *call = &members->call;
	struct set s = {.b = call->client, .members = members, .n = n, .request = request};
	bl_time began = bl_now();
	int rc = sort(members, n);

	if (rc != BIZLOCK_OK)
		return rc;
	s.call = call;
	s.end = request->once ? BL_NEVER : call->deadline;
	s.items = calloc(n, sizeof(*s.items));
	s.rows = calloc(n, sizeof(*s.rows));
	if (s.items && s.rows)
		rc = acquire_all(&s, ret, began);
	else
		rc = bl_err_set(call->err, BIZLOCK_NOMEM, "out of memory");
	if (rc != BIZLOCK_OK)
		bl_acquire_count_refused(&s.b->numbers, rc);
	free(s.items);
	free(s.rows);
	return rc;
}
