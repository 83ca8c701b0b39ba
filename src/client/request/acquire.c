#include "client/request/acquire.h"

#include <stdlib.h>

#include "base/thread.h"
#include "client/contest/contest.h"
#include "client/contest/reentry.h"
#include "client/giveback/release.h"
#include "core/backoff.h"
#include "core/lease.h"

/* How long a call that waits for nothing waits for the janitor, who most often is done at once. */
#define TRY_NS (200 * BL_NS_PER_MS)

/* ---- the hold to work on ------------------------------------------------------------------ */

/* Another call of this owner waits for the key, or tries. */
static bool is_awaited(const struct bl_call *call)
{
	const struct bl_hold *h = bl_held_find(&call->client->held, &call->key, &call->owner);

	return h && h->state == BL_HOLD_ACQUIRING;
}

/* Why there cannot be a new hold yet; NULL: there can. A row that an earlier call may have left
 * is removed as soon as the server can be asked. */
static const char *obstacle(const struct bl_call *call)
{
	const struct bl_hold *h = bl_held_of_key(&call->client->held, &call->key);

	if (is_awaited(call))
		return "the same owner is waiting for it";
	while (h && !bl_hold_unknown(h))
		h = bl_held_next_of_key(h);
	return h ? "the outcome of an earlier acquisition by this process is not known yet" : NULL;
}

/* What is in the way may change until `end`. BL_AGAIN: wait. */
static int wait_for_way(struct bl_call *call, bool once, bl_time end, const char *why)
{
	int rc = bl_call_check(call);

	if (rc != BIZLOCK_OK)
		return rc;
	if (bl_passed(end) || (once && is_awaited(call)))
		return bl_err_set(call->err, once ? BIZLOCK_BUSY : BIZLOCK_TIMEOUT, "%s", why);
	return BL_AGAIN;
}

/* A new hold of this call's owner, ACQUIRING and busy. */
static struct bl_hold *new_hold(struct bl_call *call)
{
	struct bl_token *thread = call->owner.thread ? bl_token_self() : NULL;
	struct bl_hold *h = NULL;

	if (thread || !call->owner.thread)
		h = bl_held_add(&call->client->held, &call->key, &call->owner);
	if (!h) {
		bl_token_drop(thread);
		bl_err_set(call->err, BIZLOCK_NOMEM, "out of memory");
		return NULL;
	}
	h->thread = thread;
	h->busy = true;
	return h;
}

/* Where no call is at work on a hold of this owner. */
static int begin_anew(struct bl_call *call, bool once, bl_time end, struct bl_hold **ret)
{
	const char *why = obstacle(call);

	/* Whoever is to stop takes nothing new, free or not: else a loop that works under one lock
	 * after the other would go on. */
	if (bl_call_check(call) != BIZLOCK_OK)
		return BIZLOCK_CANCELLED;
	if (why)
		return wait_for_way(call, once, end, why);
	*ret = new_hold(call);
	return *ret ? BIZLOCK_OK : BIZLOCK_NOMEM;
}

bl_time bl_acquire_patience(const struct bl_call *call, bool once)
{
	return once ? bl_now() + TRY_NS : call->deadline;
}

int bl_acquire_begin(struct bl_call *call, bool once, struct bl_hold **ret)
{
	bl_time end = bl_acquire_patience(call, once);
	int rc;

	for (;;) {
		*ret = bl_hold_begin(call, &rc);
		if (rc != BIZLOCK_OK || *ret)
			return rc;
		rc = begin_anew(call, once, end, ret);
		if (rc != BL_AGAIN)
			return rc;
		bl_cond_wait_until(&call->client->changed, &call->client->mu,
		                   bl_earlier(end, bl_now() + BL_WAKE_NS));
	}
}

int bl_acquire_try(struct bl_call *call, bool once, bl_time end, struct bl_hold **ret)
{
	bool busy;

	*ret = bl_hold_begin_now(call, &busy);
	if (*ret)
		return BIZLOCK_OK;
	if (busy)
		return wait_for_way(call, false, call->io_deadline,
		                    "another call of this owner is at work on it");
	return begin_anew(call, once, end, ret);
}

void bl_acquire_end(struct bizlock *b, struct bl_hold *h, bool unsure)
{
	h->unsure |= h->state == BL_HOLD_ACQUIRING && unsure;
	if (h->state != BL_HOLD_ACQUIRING)
		bl_hold_done(b, h);
	else if (h->unsure || h->bell)
		bl_hold_orphan(b, h, h->unsure);
	else
		bl_hold_remove(b, h);
}

/* ---- the keys of a call --------------------------------------------------------------------- */

/* What this call makes of its members. */
struct acquisition {
	struct bizlock *b;
	struct bl_member *members;
	size_t n;
	const struct bl_request *request;
	struct bl_contest contest; /* for those that are new */
};

/* An error of one of several names its key. */
static int of_member(const struct acquisition *a, struct bl_member *m, int rc)
{
	if (rc != BIZLOCK_OK && a->n > 1)
		bl_err_wrap(m->call.err, "%s/%s", m->call.key.type, m->call.key.id);
	return rc;
}

static void let_go(struct acquisition *a, struct bl_member *m)
{
	bl_hold_done(a->b, m->hold);
	m->hold = NULL;
}

/* The call's key may be that of a hold which its owner has had. */
void bl_acquire_aim(struct bl_member *m, const struct bl_request *request)
{
	m->call.key.slot = request->flags & BIZLOCK_SHARED ? BL_SLOT_ANY : 0;
	m->hold->key.slot = m->call.key.slot;
	m->goal = (struct bl_goal){.key = &m->call.key, .bell = m->call.bell};
}

/* A hold that this owner has already is let go of at once where there are other keys: if it were
 * busy while we wait for them, it would not be renewed. */
static int begin_one(struct acquisition *a, struct bl_member *m)
{
	int rc = bl_acquire_begin(&m->call, a->request->once, &m->hold);

	if (rc != BIZLOCK_OK)
		return rc;
	m->is_new = m->hold->state == BL_HOLD_ACQUIRING;
	if (m->is_new) {
		bl_acquire_aim(m, a->request);
		a->contest.members[a->contest.n] = m;
		a->contest.goals[a->contest.n++] = &m->goal;
		return rc;
	}
	if (m->hold->state == BL_HOLD_LOST)
		rc = bl_reentry_refused(&m->call, m->hold);
	if (a->n > 1)
		let_go(a, m);
	return rc;
}

int bl_acquire_deeper(struct bl_member *m, const struct bl_request *request)
{
	int rc = bl_reenter(&m->call, m->hold, request);

	m->deeper = rc == BIZLOCK_OK;
	return rc;
}

/* BL_AGAIN: another thread has released it meanwhile, and a single key can be acquired anew. */
static int try_deeper(struct acquisition *a, struct bl_member *m)
{
	int rc = BIZLOCK_OK;

	if (!m->hold)
		m->hold = bl_hold_begin(&m->call, &rc);
	if (rc == BIZLOCK_OK && !m->hold)
		return a->n == 1
		               ? BL_AGAIN
		               : bl_err_set(m->call.err, BIZLOCK_LOST, "it was released meanwhile");
	return rc == BIZLOCK_OK ? bl_acquire_deeper(m, a->request) : rc;
}

/* A hold that is fenced goes deeper when the fence ends. It is not busy while this call waits
 * for that: so it can be renewed, verified and released, and is lost when its lease is over. */
static int deepen_one(struct acquisition *a, struct bl_member *m)
{
	int rc = try_deeper(a, m);

	for (unsigned i = 0; rc == BIZLOCK_BUSY && !a->request->once; i++) {
		bl_time next = bl_now() + bl_backoff_ns(i, bl_random(a->b));

		let_go(a, m);
		if (bl_passed(m->call.deadline))
			return m->call.err->code = BIZLOCK_TIMEOUT;
		bl_call_sleep(&m->call, bl_earlier(m->call.deadline, next));
		rc = bl_call_check(&m->call);
		if (rc == BIZLOCK_OK)
			rc = try_deeper(a, m);
	}
	return rc;
}

/* Of several: re-entry may have taken long, and nobody renews what is not settled yet. */
static int check_still_held(const struct acquisition *a)
{
	if (a->n == 1 || !bl_passed(bl_lease_end(a->contest.sent, a->request->lease_ms * 1000LL)))
		return BIZLOCK_OK;
	return bl_err_set(a->members->call.err, BIZLOCK_LOST,
	                  "the leases of the new ones were over before those held already could "
	                  "be re-entered");
}

/* The new ones are held. */
static void settle_all(struct acquisition *a)
{
	const struct bl_contest *c = &a->contest;

	for (size_t i = 0; i < c->n && !c->handed_over; i++)
		bl_hold_settle(a->b, c->members[i]->hold, c->goals[i]->fence, c->sent, a->request);
}

/* The new ones were taken in vain: their rows and doorbells are given back in the background. */
static void give_back_all(struct acquisition *a)
{
	const struct bl_contest *c = &a->contest;

	for (size_t i = 0; i < c->n; i++) {
		c->members[i]->hold->fence = c->goals[i]->fence;
		bl_hold_orphan(a->b, c->members[i]->hold, true);
		c->members[i]->hold = NULL;
	}
}

/* The rest failed: what was re-entered so far is undone. The error stays. */
static void undo_reentries(struct acquisition *a)
{
	struct bl_err kept = *a->members->call.err;

	for (size_t i = 0; i < a->n; i++)
		if (a->members[i].deeper)
			bl_release_level(&a->members[i].call, a->members[i].hold);
	*a->members->call.err = kept;
}

static int acquire_members(struct acquisition *a)
{
	struct bl_contest *c = &a->contest;
	bool taken = false;
	int rc = BIZLOCK_OK;

	for (size_t i = 0; i < a->n && rc == BIZLOCK_OK; i++)
		rc = of_member(a, &a->members[i], begin_one(a, &a->members[i]));
	if (rc == BIZLOCK_OK && c->n > 0) {
		c->call = &c->members[0]->call;
		c->in_queue = a->n == 1 && !a->request->once;
		rc = bl_contest(c);
		taken = rc == BIZLOCK_OK;
		if (c->n == 1) /* a contest for several keys names the one in the way */
			rc = of_member(a, c->members[0], rc);
	}
	for (size_t i = 0; i < a->n && rc == BIZLOCK_OK; i++)
		if (!a->members[i].is_new)
			rc = of_member(a, &a->members[i], deepen_one(a, &a->members[i]));
	if (rc == BIZLOCK_OK && taken)
		rc = check_still_held(a);
	if (rc == BIZLOCK_OK && taken)
		settle_all(a);
	else if (taken)
		give_back_all(a);
	if (rc != BIZLOCK_OK)
		undo_reentries(a);
	return rc;
}

/* ---- their end ------------------------------------------------------------------------- */

static void count_grant(struct bl_numbers *n, const bizlock_grant *grant, bl_time began)
{
	if (grant->depth > 1) {
		bl_count(n, BL_COUNT_REENTERED);
		return;
	}
	bl_count(n, BL_COUNT_ACQUIRED);
	if (grant->flags & BIZLOCK_TOOK_OVER)
		bl_count(n, BL_COUNT_TAKEN_OVER);
	bl_count_wait(n, (uint64_t)(bl_now() - began) / 1000);
}

void bl_acquire_refused(struct bizlock *b, int rc)
{
	struct bl_numbers *n = &b->numbers;

	if (rc == BIZLOCK_BUSY)
		bl_count(n, BL_COUNT_BUSY);
	else if (rc == BIZLOCK_TIMEOUT)
		bl_count(n, BL_COUNT_TIMED_OUT);
	else if (rc == BIZLOCK_CANCELLED)
		bl_count(n, BL_COUNT_CANCELLED);
	else if (rc == BIZLOCK_UNKNOWN)
		bl_count(n, BL_COUNT_UNKNOWN);
}

void bl_acquire_granted(struct bizlock *b, const struct bl_member *m,
                        const struct bl_request *request, bl_time began, bizlock_grant *ret)
{
	if (m->deeper)
		bl_hold_demand(b, m->hold, request);
	*ret = (bizlock_grant)BIZLOCK_GRANT_INIT;
	bl_hold_grant(m->hold, request->lease_ms, m->is_new && m->goal.took_over, ret);
	count_grant(&b->numbers, ret, began);
}

/* Grants each, if all were acquired, and is done with their holds. */
static void end_all(struct acquisition *a, int rc, bl_time began, bizlock_grant *ret)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct bl_member *m = &a->members[i];

		if (rc == BIZLOCK_OK)
			bl_acquire_granted(a->b, m, a->request, began, &ret[m->index]);
		if (m->hold)
			bl_acquire_end(a->b, m->hold, a->contest.unsure);
	}
	if (rc != BIZLOCK_OK)
		bl_acquire_refused(a->b, rc);
}

int bl_client_acquire(struct bl_member *members, size_t n, const struct bl_request *request,
                      bizlock_grant *ret)
{
	struct bizlock *b = members->call.client;
	struct acquisition a = {.b = b,
	                        .members = members,
	                        .n = n,
	                        .request = request,
	                        .contest = {.client = b, .request = request}};
	struct bl_row row = {.found = false};
	struct bl_member *one;
	struct bl_goal *goal;
	bl_time began = bl_now();
	int rc = bl_members_sort(members, n);

	if (rc != BIZLOCK_OK)
		return rc;
	a.contest.row = &row;
	a.contest.members = n == 1 ? &one : calloc(n, sizeof(struct bl_member *));
	a.contest.goals = n == 1 ? &goal : calloc(n, sizeof(struct bl_goal *));
	bl_lock(b);
	if (a.contest.members && a.contest.goals)
		do {
			rc = acquire_members(&a);
		} while (rc == BL_AGAIN);
	else
		rc = bl_err_set(members->call.err, BIZLOCK_NOMEM, "out of memory");
	end_all(&a, rc, began, ret);
	bl_unlock(b);
	if (n > 1) {
		free(a.contest.members);
		free(a.contest.goals);
	}
	return rc;
}
