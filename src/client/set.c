#include "client/set_contest.h"

#include <stdlib.h>
#include <string.h>

#include "client/acquire.h"
#include "core/lease.h"

static int by_primary_key(const void *a, const void *b)
{
	const struct bl_key *x = &((const struct bl_member *)a)->call.key;
	const struct bl_key *y = &((const struct bl_member *)b)->call.key;
	int order = strcmp(x->id, y->id);

	return order ? order : strcmp(x->type, y->type);
}

int bl_members_sort(struct bl_member *members, size_t n)
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

static int of_member(const struct bl_member *m, int rc)
{
	if (rc != BIZLOCK_OK)
		bl_err_wrap(m->call.err, "%s/%s", m->call.key.type, m->call.key.id);
	return rc;
}

/* What this owner has already is let go again at once: busy for as long as we wait,
 * it would not be renewed. */
static int begin_one(struct bl_set *s, struct bl_member *m)
{
	struct bizlock *b = s->b;
	bool lost = false;
	int rc;

	pthread_mutex_lock(&b->mu);
	rc = bl_acquire_begin(&m->call, s->request->once, &m->hold);
	m->is_new = rc == BIZLOCK_OK && m->hold->state == BL_HOLD_ACQUIRING;
	if (rc == BIZLOCK_OK && !m->is_new) {
		lost = m->hold->state == BL_HOLD_LOST;
		bl_hold_done(b, m->hold);
		m->hold = NULL;
	}
	pthread_mutex_unlock(&b->mu);
	if (lost)
		rc = bl_err_set(m->call.err, BIZLOCK_LOST,
		                "an earlier hold was lost: release its levels first");
	return of_member(m, rc);
}

static int begin_all(struct bl_set *s)
{
	int rc = BIZLOCK_OK;

	for (size_t i = 0; i < s->n && rc == BIZLOCK_OK; i++) {
		rc = begin_one(s, &s->members[i]);
		if (s->members[i].is_new)
			s->items[s->fresh++] = (struct bl_item){.key = s->members[i].call.key,
			                                        .bell = s->members[i].call.bell};
	}
	return rc;
}

static void settle_all(struct bl_set *s)
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

static int try_deeper(struct bl_set *s, struct bl_member *m)
{
	int rc;

	pthread_mutex_lock(&s->b->mu);
	m->hold = bl_hold_begin(&m->call, &rc);
	pthread_mutex_unlock(&s->b->mu);
	if (rc == BIZLOCK_OK && !m->hold)
		rc = bl_err_set(m->call.err, BIZLOCK_LOST, "it was released meanwhile");
	if (rc == BIZLOCK_OK)
		rc = bl_acquire_deeper(&m->call, m->hold, s->request);
	m->deeper = rc == BIZLOCK_OK;
	return rc;
}

static void let_go(struct bl_set *s, struct bl_member *m)
{
	pthread_mutex_lock(&s->b->mu);
	bl_hold_done(s->b, m->hold);
	pthread_mutex_unlock(&s->b->mu);
	m->hold = NULL;
}

/* As for a single key: nobody waits with the hold busy. */
static int deepen_one(struct bl_set *s, struct bl_member *m)
{
	int rc = try_deeper(s, m);

	for (unsigned i = 0; rc == BIZLOCK_BUSY && !s->request->once; i++) {
		let_go(s, m);
		rc = bl_acquire_again(&m->call, i);
		if (rc == BIZLOCK_OK)
			rc = try_deeper(s, m);
	}
	return of_member(m, rc);
}

static int deepen_all(struct bl_set *s)
{
	int rc = BIZLOCK_OK;

	for (size_t i = 0; i < s->n && rc == BIZLOCK_OK; i++)
		if (!s->members[i].is_new)
			rc = deepen_one(s, &s->members[i]);
	return rc;
}

/* To go deeper may take long, and nobody renews what is not settled yet. */
static int check_still_held(struct bl_set *s)
{
	if (!bl_passed(bl_lease_end(s->sent, s->request->lease_ms * 1000LL)))
		return BIZLOCK_OK;
	return bl_err_set(s->call->err, BIZLOCK_LOST,
	                  "the leases of the new ones were over before those held already could "
	                  "be re-entered");
}

/* Taken in vain: their rows and doorbells are given back in the background. */
static void regret_all(struct bl_set *s)
{
	size_t at = 0;

	pthread_mutex_lock(&s->b->mu);
	for (size_t i = 0; i < s->n; i++)
		if (s->members[i].is_new) {
			s->members[i].hold->fence = s->rows[at++].fence;
			s->members[i].hold->unsure = true;
		}
	pthread_mutex_unlock(&s->b->mu);
}

/* What was done so far, when the rest failed. The error stays. */
static void undo(struct bl_set *s)
{
	struct bl_err kept = *s->call->err;

	for (size_t i = 0; i < s->n; i++)
		if (s->members[i].deeper)
			bl_release_level(&s->members[i].call, s->members[i].hold);
	*s->call->err = kept;
}

static void end_all(struct bl_set *s, bool unsure)
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
static void grant_all(const struct bl_set *s, bizlock_grant *ret, bl_time began)
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

static int acquire_all(struct bl_set *s, bizlock_grant *ret, bl_time began)
{
	int rc = begin_all(s);
	bool taken = false;

	if (rc == BIZLOCK_OK && s->fresh > 0) {
		rc = bl_set_contest(s);
		taken = rc == BIZLOCK_OK;
	}
	if (rc == BIZLOCK_OK)
		rc = deepen_all(s);
	if (rc == BIZLOCK_OK && taken)
		rc = check_still_held(s);
	if (rc == BIZLOCK_OK && taken)
		settle_all(s);
	else if (taken)
		regret_all(s);
	if (rc == BIZLOCK_OK)
		grant_all(s, ret, began);
	else
		undo(s);
	end_all(s, s->unsure);
	return rc;
}

int bl_client_acquire_all(struct bl_member *members, size_t n, const struct bl_request *request,
                          bizlock_grant *ret)
{
	struct bl_call *call = &members->call;
	struct bl_set s = {.b = call->client, .members = members, .n = n, .request = request};
	bl_time began = bl_now();
	int rc = bl_members_sort(members, n);

	if (rc != BIZLOCK_OK)
		return rc;
	s.call = call;
	s.end = request->once ? BL_NEVER : call->deadline;
	s.bells = s.b->bells && !(request->flags & BIZLOCK_NO_QUEUE);
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
