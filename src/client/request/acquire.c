#include "client/request/acquire.h"

#include <stdlib.h>

#include "base/thread.h"
#include "client/contest/contest.h"
#include "client/contest/reentry.h"
#include "client/giveback/release.h"
#include "core/backoff.h"
#include "core/lease.h"

/* How long a call with wait_ms 0 waits for the janitor, which most often is done at once. */
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

/* The obstacle `why` may go by `end`. BL_AGAIN: wait. */
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

/* Begins a new hold: no call is at work on a hold of this owner. */
static int begin_anew(struct bl_call *call, bool once, bl_time end, struct bl_hold **ret)
{
	const char *why = obstacle(call);

	/* A call that is to stop takes no new lock, free or not: else a loop that works under one
	 * lock after the other would go on. */
	if (bl_call_check(call) != BIZLOCK_OK)
		return BIZLOCK_CANCELLED;
	if (why)
		return wait_for_way(call, once, end, why);
	*ret = new_hold(call);
	return *ret ? BIZLOCK_OK : BIZLOCK_NOMEM;
}

/* BL_AGAIN: not yet. */
static int try_to_begin(struct bl_call *call, bool once, bl_time end, struct bl_hold **ret)
{
	bool busy;

	*ret = bl_hold_begin_now(call, &busy);
	if (*ret)
		return BIZLOCK_OK;
	if (!busy)
		return begin_anew(call, once, end, ret);
	if (bl_call_interrupted(call))
		return bl_call_check(call);
	if (!bl_passed(call->io_deadline))
		return BL_AGAIN;
	return bl_err_set(call->err, BIZLOCK_TIMEOUT,
	                  "another call of this owner is at work on it");
}

static bl_time patience_of(const struct bl_call *call, bool once)
{
	return once ? bl_now() + TRY_NS : call->deadline;
}

/* An obstacle to a new hold ends with a signal, but an interrupt comes without one. A call that has
 * no patience left still waits for another call of its owner. */
static bl_time next_look(bl_time patience)
{
	bl_time soon = bl_now() + BL_WAKE_NS;

	return bl_passed(patience) ? soon : bl_earlier(soon, patience);
}

int bl_acquire_begin(struct bl_call *call, bool once, struct bl_hold **ret)
{
	bl_time patience = patience_of(call, once);
	int rc;

	while ((rc = try_to_begin(call, once, patience, ret)) == BL_AGAIN)
		bl_cond_wait_until(&call->client->changed, &call->client->mu, next_look(patience));
	return rc;
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

/* An error of one of several names its key. */
static int of_member(const struct bl_acquisition *a, struct bl_member *m, int rc)
{
	if (rc > BIZLOCK_OK && a->n > 1)
		bl_err_wrap(m->call.err, "%s/%s", m->call.key.type, m->call.key.id);
	return rc;
}

static int park(struct bl_acquisition *a, bl_time until, pthread_cond_t *ends)
{
	a->until = until;
	a->ends = ends;
	return BL_PARKED;
}

/* A request that waits for nothing can be cancelled, too, while a call of its owner is at work. */
static bool is_stopped(const struct bl_acquisition *a, const struct bl_member *m)
{
	return a->contest.op ? bl_call_check(&m->call) != BIZLOCK_OK
	                     : bl_call_interrupted(&m->call);
}

static void let_go(struct bl_acquisition *a, struct bl_member *m)
{
	bl_hold_done(a->client, m->hold);
	m->hold = NULL;
}

/* Sets the slot of the call's key anew: it may be that of an earlier hold of this owner. */
static void aim(struct bl_acquisition *a, struct bl_member *m)
{
	m->call.key.slot = a->request->flags & BIZLOCK_SHARED ? BL_SLOT_ANY : 0;
	m->hold->key.slot = m->call.key.slot;
	m->hold->promised = a->contest.op != NULL;
	m->goal = (struct bl_goal){.key = &m->call.key, .bell = bl_call_bell(&m->call)};
	a->contest.members[a->contest.n] = m;
	a->contest.goals[a->contest.n++] = &m->goal;
}

/* If there are other keys, a hold that this owner has already is let go of at once: if it were busy
 * while we wait for them, it would not be renewed. */
static int begin_one(struct bl_acquisition *a, struct bl_member *m)
{
	int rc = try_to_begin(&m->call, a->request->once, a->patience, &m->hold);

	if (rc == BL_AGAIN)
		rc = is_stopped(a, m) ? bl_call_check(&m->call)
		                      : park(a, next_look(a->patience), &a->client->changed);
	if (rc != BIZLOCK_OK)
		return rc;
	m->is_new = m->hold->state == BL_HOLD_ACQUIRING;
	if (m->is_new) {
		aim(a, m);
		return rc;
	}
	if (m->hold->state == BL_HOLD_LOST)
		rc = bl_reentry_refused(&m->call, m->hold);
	if (a->n > 1)
		let_go(a, m);
	return rc;
}

static int begin_all(struct bl_acquisition *a)
{
	int rc = BIZLOCK_OK;

	for (; a->at < a->n && rc == BIZLOCK_OK; a->at += rc == BIZLOCK_OK) {
		rc = of_member(a, &a->members[a->at], begin_one(a, &a->members[a->at]));
		if (rc == BIZLOCK_OK)
			a->patience = patience_of(&a->members->call, a->request->once);
	}
	return rc;
}

static void contend(struct bl_acquisition *a)
{
	a->at = 0;
	a->phase = a->contest.n > 0 ? BL_ACQUIRE_CONTENDS : BL_ACQUIRE_DEEPENS;
	if (a->contest.n == 0)
		return;
	a->contest.call = &a->contest.members[0]->call;
	a->contest.in_queue = a->n == 1 && !a->request->once;
}

#define LEAVE_NS (2 * BL_MOMENT_NS)

/* A request keeps a thread while it gives back what it has, so it gives up soon: the janitor does
 * the rest. */
static void leave_soon(struct bl_acquisition *a)
{
	bl_time end = bl_now() + LEAVE_NS;

	for (size_t i = 0; i < a->n && a->contest.op; i++) {
		struct bl_call *call = &a->members[i].call;

		call->io_deadline = bl_earlier(call->io_deadline, end);
	}
}

static int end_contest(struct bl_acquisition *a, int rc)
{
	struct bl_contest *c = &a->contest;

	if (rc == BL_PARKED)
		return park(a, c->parked_until, &c->place.first);
	if (rc == BL_AGAIN)
		return rc;
	if (rc != BIZLOCK_OK || a->n == 1) /* else other keys may have to be re-entered */
		leave_soon(a);
	bl_contest_leave(c, rc);
	a->taken = rc == BIZLOCK_OK;
	a->phase = BL_ACQUIRE_DEEPENS;
	/* A contest for several keys names the one in the way. */
	return c->n == 1 ? of_member(a, c->members[0], rc) : rc;
}

/* BL_AGAIN: another thread has released it meanwhile, and a single key can be acquired anew. */
static int try_deeper(struct bl_acquisition *a, struct bl_member *m)
{
	int rc = BIZLOCK_OK;
	bool busy = false;

	if (!m->hold)
		m->hold = bl_hold_begin_now(&m->call, &busy);
	if (busy && is_stopped(a, m))
		return bl_call_check(&m->call);
	if (busy && !bl_passed(m->call.io_deadline))
		return park(a, next_look(m->call.io_deadline), &a->client->changed);
	if (busy)
		return bl_err_set(m->call.err, BIZLOCK_TIMEOUT,
		                  "another call of this owner is at work on it");
	if (!m->hold)
		return a->n == 1
		               ? BL_AGAIN
		               : bl_err_set(m->call.err, BIZLOCK_LOST, "it was released meanwhile");
	rc = bl_reenter(&m->call, m->hold, a->request);
	m->deeper = rc == BIZLOCK_OK;
	return rc;
}

/* A hold that is fenced goes deeper when the fence ends. It is not busy while this call waits
 * for that: so it can be renewed, verified and released, and is lost when its lease is over. */
static int deepen_one(struct bl_acquisition *a, struct bl_member *m)
{
	bl_time next = bl_now() + bl_backoff_ns(a->pauses, bl_random(a->client));
	int rc = a->pauses > 0 ? bl_call_check(&m->call) : BIZLOCK_OK;

	if (rc == BIZLOCK_OK)
		rc = try_deeper(a, m);
	if (rc != BIZLOCK_BUSY || a->request->once)
		return rc;
	let_go(a, m);
	if (bl_passed(m->call.deadline))
		return m->call.err->code = BIZLOCK_TIMEOUT;
	a->pauses++;
	return park(a, bl_earlier(m->call.deadline, next), NULL);
}

static int deepen_all(struct bl_acquisition *a)
{
	int rc = BIZLOCK_OK;

	for (; a->at < a->n && rc == BIZLOCK_OK; a->at += rc == BIZLOCK_OK)
		if (!a->members[a->at].is_new)
			rc = of_member(a, &a->members[a->at], deepen_one(a, &a->members[a->at]));
	return rc;
}

/* With several keys, re-entry may have taken long, and new holds are not renewed before they are
 * settled. */
static int check_still_held(const struct bl_acquisition *a)
{
	if (a->n == 1 || !a->taken ||
	    !bl_passed(bl_lease_end(a->contest.sent, a->request->lease_ms * 1000LL)))
		return BIZLOCK_OK;
	return bl_err_set(a->members->call.err, BIZLOCK_LOST,
	                  "the leases of the new ones were over before those held already could "
	                  "be re-entered");
}

int bl_acquisition_step(struct bl_acquisition *a)
{
	for (;;) {
		int rc = BIZLOCK_OK;

		if (a->phase == BL_ACQUIRE_BEGINS) {
			if (a->request->min_hold_ms > 0)
				bl_hide_life(a->client);
			rc = begin_all(a);
			if (rc == BIZLOCK_OK)
				contend(a);
		}
		if (rc == BIZLOCK_OK && a->phase == BL_ACQUIRE_CONTENDS)
			rc = end_contest(a, bl_contest_step(&a->contest));
		if (rc == BIZLOCK_OK && a->phase == BL_ACQUIRE_DEEPENS)
			rc = deepen_all(a);
		if (rc != BL_AGAIN || a->phase != BL_ACQUIRE_DEEPENS)
			return rc == BIZLOCK_OK ? check_still_held(a) : rc;
		a->phase = BL_ACQUIRE_BEGINS;
	}
}

int bl_acquisition_go_on(struct bl_acquisition *a, int rc)
{
	rc = end_contest(a, bl_contest_go_on(&a->contest, rc));
	return rc == BIZLOCK_OK ? bl_acquisition_step(a) : rc;
}

/* ---- their end ------------------------------------------------------------------------- */

/* The new holds become HELD. */
static void settle_all(struct bl_acquisition *a)
{
	const struct bl_contest *c = &a->contest;

	for (size_t i = 0; i < c->n && !c->handed_over; i++)
		bl_hold_settle(a->client, c->members[i]->hold, c->goals[i]->fence, c->sent,
		               a->request);
}

/* The new holds were taken in vain: their rows and doorbells are given back in the background. */
static void give_back_all(struct bl_acquisition *a)
{
	const struct bl_contest *c = &a->contest;

	for (size_t i = 0; i < c->n; i++) {
		c->members[i]->hold->fence = c->goals[i]->fence;
		bl_hold_orphan(a->client, c->members[i]->hold, true);
		c->members[i]->hold = NULL;
	}
}

/* The rest failed: undoes the re-entries so far. The error stays. */
static void undo_reentries(struct bl_acquisition *a)
{
	struct bl_err kept = *a->members->call.err;

	for (size_t i = 0; i < a->n; i++)
		if (a->members[i].deeper)
			bl_release_level(&a->members[i].call, a->members[i].hold);
	*a->members->call.err = kept;
}

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

static void count_refused(struct bl_numbers *n, int rc)
{
	if (rc == BIZLOCK_BUSY)
		bl_count(n, BL_COUNT_BUSY);
	else if (rc == BIZLOCK_TIMEOUT)
		bl_count(n, BL_COUNT_TIMED_OUT);
	else if (rc == BIZLOCK_CANCELLED)
		bl_count(n, BL_COUNT_CANCELLED);
	else if (rc == BIZLOCK_UNKNOWN)
		bl_count(n, BL_COUNT_UNKNOWN);
}

static void grant(struct bl_acquisition *a, const struct bl_member *m, bizlock_grant *ret)
{
	if (m->deeper)
		bl_hold_demand(a->client, m->hold, a->request);
	*ret = (bizlock_grant)BIZLOCK_GRANT_INIT;
	bl_hold_grant(m->hold, a->request->lease_ms, m->is_new && m->goal.took_over, ret);
	count_grant(&a->client->numbers, ret, a->began);
	BL_TRACE(&a->client->trace, &m->call.key, &m->call.owner, "granted, depth %u%s", ret->depth,
	         ret->flags & BIZLOCK_TOOK_OVER ? ", taken over from an owner that never released"
	                                        : "");
}

void bl_acquisition_end(struct bl_acquisition *a, int rc, bizlock_grant *ret)
{
	if (rc != BIZLOCK_OK)
		count_refused(&a->client->numbers, rc);
	leave_soon(a);
	if (a->taken && rc == BIZLOCK_OK)
		settle_all(a);
	else if (a->taken)
		give_back_all(a);
	if (rc != BIZLOCK_OK)
		undo_reentries(a);
	for (size_t i = 0; i < a->n; i++) {
		struct bl_member *m = &a->members[i];

		if (rc == BIZLOCK_OK)
			grant(a, m, &ret[m->index]);
		else
			BL_TRACE(&a->client->trace, &m->call.key, &m->call.owner,
			         "not acquired: %s", a->members->call.err->msg);
		if (m->hold)
			bl_acquire_end(a->client, m->hold, a->contest.unsure);
		m->hold = NULL;
	}
	bl_acquisition_forget(a);
}

void bl_acquisition_forget(struct bl_acquisition *a)
{
	bl_contest_forget(&a->contest);
	if (a->n > 1) {
		free(a->contest.members);
		free(a->contest.goals);
		a->contest.members = NULL;
		a->contest.goals = NULL;
	}
}

int bl_acquisition_begin(struct bl_acquisition *a, struct bl_member *members, size_t n,
                         const struct bl_request *request)
{
	struct bizlock *b = members->call.client;

	*a = (struct bl_acquisition){.client = b,
	                             .members = members,
	                             .n = n,
	                             .request = request,
	                             .began = bl_now(),
	                             .patience = patience_of(&members->call, request->once)};
	a->contest = (struct bl_contest){.client = b, .request = request};
	a->contest.members = n == 1 ? &a->one : calloc(n, sizeof(struct bl_member *));
	a->contest.goals = n == 1 ? &a->goal : calloc(n, sizeof(struct bl_goal *));
	if (a->contest.members && a->contest.goals)
		return bl_members_sort(members, n);
	return bl_err_set(members->call.err, BIZLOCK_NOMEM, "out of memory");
}

/* ---- a thread -------------------------------------------------------------------------------- */

int bl_client_acquire(struct bl_member *members, size_t n, const struct bl_request *request,
                      bizlock_grant *ret)
{
	struct bizlock *b = members->call.client;
	struct bl_row row = {.found = false};
	struct bl_acquisition a;
	int rc = bl_acquisition_begin(&a, members, n, request);

	if (rc != BIZLOCK_OK) {
		bl_acquisition_forget(&a);
		return rc;
	}
	a.contest.row = &row;
	bl_lock(b);
	bl_list_add(&b->waits, &a.waits);
	while ((rc = bl_acquisition_step(&a)) == BL_PARKED) {
		if (a.ends)
			bl_cond_wait_until(a.ends, &b->mu, a.until);
		else
			bl_call_sleep(&members[a.at].call, a.until);
		a.ends = NULL;
	}
	bl_list_remove(&b->waits, &a.waits);
	bl_acquisition_end(&a, rc, ret);
	bl_unlock(b);
	return rc;
}

/* ---- ended by another thread -------------------------------------------------------------------
 */

static bool is_for(const struct bl_acquisition *a, const struct bl_call *call)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct bl_call *m = &a->members[i].call;

		if (bl_key_equal(&m->key, &call->key) && bl_owner_equal(&m->owner, &call->owner))
			return true;
	}
	return false;
}

/* A thread that does not sleep here looks by itself, after each statement and BL_WAKE_NS. */
static void interrupt(struct bl_acquisition *a)
{
	for (size_t i = 0; i < a->n; i++)
		bl_call_interrupt(&a->members[i].call);
	if (a->ends)
		pthread_cond_broadcast(a->ends);
	if (a->contest.conn)
		bl_conn_wake(a->contest.conn);
}

int bl_client_cancel_wait(struct bl_call *call)
{
	struct bizlock *b = call->client;
	bool found = false;

	bl_lock(b);
	for (struct bl_link *at = b->waits.first; at; at = at->next) {
		struct bl_acquisition *a = BL_LISTED(at, struct bl_acquisition, waits);

		if (is_for(a, call)) {
			interrupt(a);
			found = true;
		}
	}
	bl_watch_check_all(b);
	bl_unlock(b);
	if (found)
		return BIZLOCK_OK;
	return bl_err_set(call->err, BIZLOCK_NOT_OWNER, "no thread waits for it under this name");
}
