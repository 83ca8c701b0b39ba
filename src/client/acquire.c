#include "client/acquire.h"

#include "base/thread.h"
#include "core/backoff.h"

/* How long a try waits for what the janitor most often does at once. */
#define TRY_NS (200 * BL_NS_PER_MS)

void bl_acquire_grant(const struct bl_hold *h, uint32_t lease_ms, bool took_over,
                      bizlock_grant *ret)
{
	ret->fence = h->fence;
	ret->depth = h->depth;
	ret->lease_ms = lease_ms;
	ret->flags = took_over ? BIZLOCK_TOOK_OVER : 0;
}

/* One level deeper in the row, which also starts the lease anew. */
static int deepen(struct bl_call *call, struct bl_hold *h, uint32_t lease_ms)
{
	struct bl_change change = {.what = BL_CHANGE_DEPTH,
	                           .ref = bl_hold_ref(call, h),
	                           .hold = h,
	                           .depth = h->depth + 1,
	                           .lease_ms = lease_ms};
	int rc = bl_retry_change(call, &change);

	if (rc != BIZLOCK_OK)
		return bl_hold_held(call, h) ? rc : bl_hold_lost(call, h);
	if (!change.matched || !bl_hold_confirmed(call, h, change.sent, lease_ms))
		return bl_hold_lost(call, h);
	h->depth = h->stored = change.depth;
	return BIZLOCK_OK;
}

/* With the mutex held. */
static bool deepen_in_memory(struct bl_hold *h, uint32_t flags)
{
	bool local = (h->flags | flags) & BIZLOCK_LOCAL_REENTRY && bl_hold_left_ms(h) > 0;

	h->depth += local;
	return local;
}

static bool deepen_locally(struct bl_call *call, struct bl_hold *h, uint32_t flags)
{
	bool local;

	pthread_mutex_lock(&call->client->mu);
	local = deepen_in_memory(h, flags);
	pthread_mutex_unlock(&call->client->mu);
	return local;
}

/* With the mutex held: a hold that no call is at work on. */
static struct bl_hold *idle_hold(struct bizlock *b, const struct bl_key *key,
                                 const struct bl_owner *owner)
{
	struct bl_hold *h = b->state == BL_CLIENT_OPEN ? bl_held_find(&b->held, key, owner) : NULL;

	return h && !h->busy ? h : NULL;
}

bool bl_client_deeper(struct bizlock *b, const struct bl_key *key, const struct bl_owner *owner,
                      uint32_t lease_ms, uint32_t flags, bizlock_grant *ret)
{
	struct bl_hold *h;
	bool done;

	pthread_mutex_lock(&b->mu);
	h = idle_hold(b, key, owner);
	done = h && h->depth < BIZLOCK_DEPTH_MAX && deepen_in_memory(h, flags);
	if (done) {
		bl_acquire_grant(h, lease_ms ? lease_ms : b->config.lease_ms, false, ret);
		bl_count(&b->numbers, BL_COUNT_REENTERED);
	}
	pthread_mutex_unlock(&b->mu);
	return done;
}

bool bl_client_shallower(struct bizlock *b, const struct bl_key *key, const struct bl_owner *owner,
                         uint32_t *ret_depth)
{
	struct bl_hold *h;
	bool done;

	pthread_mutex_lock(&b->mu);
	h = idle_hold(b, key, owner);
	done = h && h->stored < h->depth && bl_hold_left_ms(h) > 0;
	if (done)
		*ret_depth = --h->depth;
	pthread_mutex_unlock(&b->mu);
	return done;
}

int bl_acquire_deeper(struct bl_call *call, struct bl_hold *h, const struct bl_request *request)
{
	if (!bl_hold_stays(call, h)) {
		bl_hold_lost(call, h);
		return bl_err_set(call->err, BIZLOCK_LOST,
		                  "an earlier hold was lost: release its %u levels first (%s)",
		                  h->depth, call->err->msg);
	}
	if (h->depth >= BIZLOCK_DEPTH_MAX)
		return bl_err_set(call->err, BIZLOCK_LIMIT, "re-entered %u times", h->depth);
	if (deepen_locally(call, h, request->flags))
		return BIZLOCK_OK;
	return deepen(call, h, request->lease_ms);
}

void bl_acquire_settle(struct bizlock *b, struct bl_hold *h, const struct bl_won *won,
                       const struct bl_request *request)
{
	h->state = BL_HOLD_HELD;
	h->unsure = false;
	h->depth = h->stored = 1;
	h->fence = won->fence;
	h->flags = request->flags;
	h->lease_ms = request->lease_ms;
	h->min_hold_ms = request->min_hold_ms;
	h->began = won->sent;
	h->passed = 0;
	h->run = won->sent;
	h->until =
	        request->max_hold_ms ? won->sent + request->max_hold_ms * BL_NS_PER_MS : BL_NEVER;
	bl_hold_confirm(b, h, won->sent, request->lease_ms);
}

static int acquire_first(struct bl_call *call, const struct bl_request *request, struct bl_hold *h,
                         bool *ret_took_over)
{
	struct bl_won won;
	int rc = bl_contest(call, request, h, &won);

	if (rc == BIZLOCK_OK)
		*ret_took_over = won.took_over;
	return rc;
}

/* A row may stand there that an earlier call knows nothing certain of: it is
 * cleaned up as soon as the server can be asked. */
static bool littered(const struct bizlock *b, const struct bl_key *key)
{
	const struct bl_hold *h = bl_held_of_key(&b->held, key);

	while (h && !bl_hold_unknown(h))
		h = bl_held_next_of_key(h);
	return h != NULL;
}

/* Another call of this owner waits for the key, or tries. */
static bool is_awaited(const struct bizlock *b, const struct bl_call *call)
{
	const struct bl_hold *h = bl_held_find(&b->held, &call->key, &call->owner);

	return h && h->state == BL_HOLD_ACQUIRING;
}

/* Why there is no new hold yet; NULL: there may be one. With the mutex held. */
static const char *obstacle(const struct bl_call *call)
{
	if (is_awaited(call->client, call))
		return "the same owner is waiting for it";
	if (littered(call->client, &call->key))
		return "the outcome of an earlier acquisition by this process is not known yet";
	return NULL;
}

/* With the mutex held: until nothing is in the way, or what is has changed; `end`: of the
 * patience. */
static int wait_for_way(struct bl_call *call, bool once, bl_time end)
{
	const char *why = obstacle(call);
	int rc = bl_call_check(call);

	if (rc != BIZLOCK_OK)
		return rc;
	if (bl_passed(end) || (once && is_awaited(call->client, call)))
		return bl_err_set(call->err, once ? BIZLOCK_BUSY : BIZLOCK_TIMEOUT, "%s", why);
	bl_cond_wait_until(&call->client->changed, &call->client->mu,
	                   bl_earlier(end, bl_now() + BL_WAKE_NS));
	return rc;
}

/* A new hold of this call's owner, ACQUIRING and busy. With the mutex held. */
static struct bl_hold *add_hold(struct bl_call *call)
{
	struct bizlock *b = call->client;
	struct bl_token *thread = call->owner.thread ? bl_token_self() : NULL;
	struct bl_hold *h = NULL;

	if (thread || !call->owner.thread)
		h = bl_held_add(&b->held, &call->key, &call->owner);
	if (!h) {
		bl_token_drop(thread);
		bl_err_set(call->err, BIZLOCK_NOMEM, "out of memory");
		return NULL;
	}
	h->thread = thread;
	h->busy = true;
	return h;
}

int bl_acquire_begin(struct bl_call *call, bool once, struct bl_hold **ret)
{
	bl_time end = once ? bl_now() + TRY_NS : call->deadline;
	int rc;

	for (;;) {
		*ret = bl_hold_begin(call, &rc);
		if (rc != BIZLOCK_OK || *ret)
			return rc;
		if (!obstacle(call))
			break;
		rc = wait_for_way(call, once, end);
		if (rc != BIZLOCK_OK)
			return rc;
	}
	*ret = add_hold(call);
	return *ret ? BIZLOCK_OK : BIZLOCK_NOMEM;
}

int bl_acquire_again(struct bl_call *call, unsigned attempt)
{
	bl_time pause = bl_backoff_ns(attempt, bl_client_random(call->client));

	if (bl_passed(call->deadline))
		return call->err->code = BIZLOCK_TIMEOUT;
	bl_call_sleep(call, bl_earlier(call->deadline, bl_now() + pause));
	return bl_call_check(call);
}

void bl_acquire_end(struct bizlock *b, struct bl_hold *h)
{
	if (h->state != BL_HOLD_ACQUIRING)
		bl_hold_done(b, h);
	else if (h->unsure || h->bell)
		bl_hold_litter(b, h, h->unsure);
	else
		bl_hold_drop(b, h);
}

static int acquire_once(struct bl_call *call, const struct bl_request *request, bizlock_grant *ret)
{
	struct bizlock *b = call->client;
	bool took_over = false, first;
	struct bl_hold *h;
	int rc;

	pthread_mutex_lock(&b->mu);
	rc = bl_acquire_begin(call, request->once, &h);
	first = rc == BIZLOCK_OK && h->state == BL_HOLD_ACQUIRING;
	pthread_mutex_unlock(&b->mu);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = first ? acquire_first(call, request, h, &took_over)
	           : bl_acquire_deeper(call, h, request);
	if (rc == BIZLOCK_OK)
		bl_acquire_grant(h, request->lease_ms, took_over, ret);
	pthread_mutex_lock(&b->mu);
	bl_acquire_end(b, h);
	pthread_mutex_unlock(&b->mu);
	return rc;
}

/* A hold that is fenced goes deeper when that ends. Nobody waits for it with the hold busy: it
 * is renewed, verified and released meanwhile, and lost when its lease is over. */
static int acquire(struct bl_call *call, const struct bl_request *request, bizlock_grant *ret)
{
	int rc = acquire_once(call, request, ret);

	for (unsigned i = 0; rc == BIZLOCK_BUSY && !request->once; i++) {
		rc = bl_acquire_again(call, i);
		if (rc == BIZLOCK_OK)
			rc = acquire_once(call, request, ret);
	}
	return rc;
}

void bl_acquire_count(struct bl_numbers *n, const bizlock_grant *grant, bl_time began)
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

void bl_acquire_count_refused(struct bl_numbers *n, int rc)
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

int bl_client_acquire(struct bl_call *call, const struct bl_request *request, bizlock_grant *ret)
{
	bl_time began = bl_now();
	int rc = acquire(call, request, ret);

	if (rc == BIZLOCK_OK)
		bl_acquire_count(&call->client->numbers, ret, began);
	else
		bl_acquire_count_refused(&call->client->numbers, rc);
	return rc;
}
