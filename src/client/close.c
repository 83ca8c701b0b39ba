/* The end of a client: gives back its holds, and takes no longer than a server may take to answer.
 * By then calls, requests, renewer, janitor and watch thread have ended, and only the loss watch
 * still runs. Functions are entered with the mutex free, and take it to look at the holds. */
#include <stdlib.h>
#include <unistd.h>

#include "base/thread.h"
#include "client/client.h"
#include "client/conn/retry.h"
#include "client/hold/hold.h"
#include "core/backoff.h"
#include "store/row/many.h"
#include "store/session/errclass.h"

/* How often a close tries again, on a new connection if the last one was lost. It does not wait for
 * a server that is away, because the leases end anyway. */
#define ATTEMPTS 8

struct closing {
	struct bizlock *b;
	struct bl_item *items; /* room for the holds of one statement */
	bool stayed;           /* a row may have: somebody has it locked */
};

static void pause_before(struct bizlock *b, unsigned attempt)
{
	bl_time pause;

	bl_lock(b);
	pause = bl_backoff_ns(attempt, bl_random(b));
	bl_unlock(b);
	bl_sleep(pause);
}

/* Does the row of h have to go? The row of an ended thread stays until its lease ends: the thread's
 * work under the lock may be half done. */
static bool has_to_go(const struct bizlock *b, const struct bl_hold *h)
{
	if (h->state == BL_HOLD_ORPHAN)
		return h->unsure && h->fence;
	return h->state == BL_HOLD_HELD && b->config.release_on_close && !bl_token_ended(h->thread);
}

static bool any_has_to_go(struct bizlock *b)
{
	bool any = false;

	bl_lock(b);
	for (struct bl_hold *h = NULL; !any && (h = bl_held_walk(&b->held, h)) != NULL;)
		any = has_to_go(b, h) || bl_hold_unknown(h);
	bl_unlock(b);
	return any;
}

/* Picks holds for one statement: either those that may be fenced, or the others. */
static size_t pick_holds(struct bizlock *b, bool fenced, struct bl_item *items)
{
	size_t n = 0;

	bl_lock(b);
	for (struct bl_hold *h = NULL;
	     n < BL_DROP_MAX && (h = bl_held_walk(&b->held, h)) != NULL;) {
		if (!has_to_go(b, h) || bl_hold_rest_us(h) > 0 || h->fenced != fenced ||
		    h->key.slot > 0)
			continue;
		items[n++] = (struct bl_item){.key = h->key, .fence = h->fence};
	}
	bl_unlock(b);
	return n;
}

static void forget(struct bizlock *b, const struct bl_item *items, size_t n)
{
	bl_lock(b);
	for (size_t i = 0; i < n; i++) {
		struct bl_hold *h = bl_held_with_fence(&b->held, &items[i].key, items[i].fence);

		if (!h)
			continue;
		BL_TRACE_HOLD(b, h, "released by close");
		bl_hold_remove(b, h);
	}
	bl_unlock(b);
}

/* Picks a hold that has to rest, or is shared. Fence 0: there is none. */
static struct bl_item pick_single(struct bizlock *b, char owner[BL_OWNER_MAX + 1],
                                  int64_t *ret_rest_us)
{
	struct bl_item item = {.fence = 0};
	struct bl_hold *h = NULL;

	bl_lock(b);
	while (item.fence == 0 && (h = bl_held_walk(&b->held, h)) != NULL) {
		*ret_rest_us = bl_hold_rest_us(h);
		if (!has_to_go(b, h) || (*ret_rest_us <= 0 && h->key.slot == 0))
			continue;
		bl_owner_full(&h->owner, &b->process, owner);
		item = (struct bl_item){.key = h->key, .fence = h->fence};
	}
	bl_unlock(b);
	return item;
}

/* A row that a transaction has fenced stays: the others must not wait for it. */
static int drop_singles(struct closing *c, struct bl_session *s)
{
	struct bizlock *b = c->b;

	for (;;) {
		char owner[BL_OWNER_MAX + 1], bell[BL_BELL_MAX + 1];
		struct bl_err ignored;
		bool matched, locked;
		int64_t rest_us;
		struct bl_item item = pick_single(b, owner, &rest_us);
		struct bl_ref ref = {.key = &item.key, .owner = owner, .fence = item.fence};
		int rc;

		if (item.fence == 0)
			return BIZLOCK_OK;
		bl_bell_name(bell, b->bell_seed, &item.key);
		ref.bell = item.key.slot > 0 && b->bells ? bell : NULL;
		rc = bl_lock_probe(s, &item.key, &locked, &ignored);
		c->stayed |= rc == BIZLOCK_OK && locked;
		if (rc == BIZLOCK_OK && !locked)
			rc = bl_lock_drop(s, ref, NULL, rest_us, &matched, &ignored);
		if (rc != BIZLOCK_OK)
			return rc;
		forget(b, &item, 1);
	}
}

/* Removes the rows that acquisitions of unknown outcome may have left. If somebody has one locked,
 * the others can go. */
static int close_unknown(struct closing *c, struct bl_session *s)
{
	struct bizlock *b = c->b;
	struct bl_err ignored;
	int rc = BIZLOCK_OK;

	bl_lock(b);
	for (struct bl_hold *h = NULL; rc == BIZLOCK_OK && (h = bl_held_walk(&b->held, h));) {
		char owner[BL_OWNER_MAX + 1];
		struct bl_ref ref = {
		        .key = &h->key, .owner = owner, .fence = bl_hold_sweep_fence(b, h)};
		bool matched;

		if (!bl_hold_unknown(h))
			continue;
		bl_owner_full(&h->owner, &b->process, owner);
		bl_unlock(b);
		rc = bl_shared_sweep(s, ref, &matched, &ignored);
		if (rc == BIZLOCK_DB) {
			c->stayed = true;
			rc = BIZLOCK_OK;
		}
		bl_lock(b);
	}
	bl_unlock(b);
	return rc;
}

/* The statement skips rows that somebody has locked. A row that a transaction has fenced stays
 * until its lease ends. A row that a statement has locked for a moment must go: so the statement is
 * repeated. */
static int drop(struct closing *c, struct bl_session *s, const struct bl_item *items, size_t n)
{
	struct bizlock *b = c->b;
	const char *suffix = b->process.suffix;
	struct bl_err ignored;
	uint64_t dropped;
	int64_t left = (int64_t)n;
	int rc = BIZLOCK_OK;

	for (unsigned i = 0; rc == BIZLOCK_OK && left > 0 && i < ATTEMPTS; i++) {
		if (i > 0)
			pause_before(b, i);
		rc = bl_many_drop(s, items, n, suffix, &dropped, &ignored);
		left -= rc == BIZLOCK_OK ? (int64_t)dropped : 0;
		if (rc == BIZLOCK_OK && left > 0) /* others may have been gone before */
			rc = bl_many_count(s, items, n, suffix, false, &left, &ignored);
	}
	if (rc == BIZLOCK_OK) {
		c->stayed |= left > 0;
		forget(b, items, n);
	}
	if (rc != BIZLOCK_DB || bl_classify(ignored.native) != BL_CLASS_TOO_LARGE || n == 1)
		return rc;
	rc = drop(c, s, items, n / 2);
	return rc == BIZLOCK_OK ? drop(c, s, items + n / 2, n - n / 2) : rc;
}

static int drop_all(struct closing *c, struct bl_session *s, bool fenced)
{
	size_t n;
	int rc = BIZLOCK_OK;

	while (rc == BIZLOCK_OK && (n = pick_holds(c->b, fenced, c->items)) > 0)
		rc = drop(c, s, c->items, n);
	return rc;
}

/* The doorbells go with their connections. Rows that may have to be waited for come last. */
static int release_all(struct bl_session *s, void *arg, struct bl_err *err)
{
	struct closing *c = arg;
	int rc = drop_all(c, s, false);

	(void)err; /* the code of close says all that its caller can use */
	if (rc == BIZLOCK_OK)
		rc = drop_all(c, s, true);
	if (rc == BIZLOCK_OK)
		rc = drop_singles(c, s);
	return rc == BIZLOCK_OK ? close_unknown(c, s) : rc;
}

/* Is all released that has to be? No call is under way any more. The loss watch still runs: it may
 * have to cut off our connection. */
static bool close_holds(struct bizlock *b, bl_time end)
{
	size_t room = b->held.count < BL_DROP_MAX ? b->held.count : BL_DROP_MAX;
	struct closing c = {.b = b};
	struct bl_err ignored;
	int rc = BIZLOCK_CONN;

	if (!any_has_to_go(b))
		return true;
	c.items = calloc(room, sizeof(struct bl_item));
	for (unsigned i = 0; c.items && rc != BIZLOCK_OK && i < ATTEMPTS && !bl_passed(end); i++) {
		rc = bl_run_once(b, end, release_all, &c, &ignored);
		if (rc != BIZLOCK_OK)
			pause_before(b, i);
	}
	free(c.items);
	return rc == BIZLOCK_OK && !c.stayed;
}

static bool leave_open_state(struct bizlock *b, bl_answer_op *answer)
{
	struct bl_op *op;
	bl_time deadline = bl_deadline_in_ms(b->config.io_timeout_ms);
	bool all_released;

	bl_lock(b);
	b->state = BL_CLIENT_CLOSING;
	bl_client_interrupt(b);
	b->loss_watch.cut_at = deadline;
	bl_worker_by(b->pool.watch, deadline);
	bl_renewer_stop_soon(b);
	bl_worker_stop_soon(&b->janitor.worker);
	while (b->calls > 0)
		pthread_cond_wait(&b->changed, &b->mu);
	bl_unlock(b);
	bl_ops_stop(b);
	bl_renewer_stop(b);
	bl_worker_stop(&b->janitor.worker, &b->mu);
	bl_watch_stop(b);
	all_released = close_holds(b, deadline);
	bl_loss_watch_stop(b);
	while ((op = bl_ops_take_done(b)) != NULL)
		answer(b, op);
	return all_released;
}

/* Waits for calls that are under way. True: the client is open. An open that has begun goes on to
 * its end, but does not wait for a server that is away; the same holds for calls that need no open
 * client. */
static bool await_open(struct bizlock *b)
{
	bool open;

	atomic_store(&b->closing, true);
	bl_lock(b);
	while (b->state == BL_CLIENT_OPENING || (b->state == BL_CLIENT_NEW && b->calls > 0))
		pthread_cond_wait(&b->changed, &b->mu);
	open = b->state == BL_CLIENT_OPEN;
	bl_unlock(b);
	return open;
}

/* In a forked child the mutex may be held by a thread that does not exist there, and
 * what that thread was working on is half changed. Then the memory is not freed. */
static bool forked_whole(struct bizlock *b)
{
	return b->calls == 0 && !b->renewer.worker.at_work && !b->janitor.worker.at_work &&
	       !b->watch.worker.at_work && b->ops.at_work + b->ops.at_bells == 0 &&
	       pthread_mutex_trylock(&b->mu) == 0;
}

bool bl_client_close(struct bizlock *b, bl_answer_op *answer)
{
	bool forked = !bl_process_is(b->stamp), all_released = true;

	if (forked && !forked_whole(b))
		return true;
	if (forked)
		bl_trace_forget(&b->trace);
	else if (await_open(b))
		all_released = leave_open_state(b, answer);
	bl_client_tear_down(b, forked);
	bl_config_free(&b->config);
	bl_config_free(&b->set);
	if (!forked) {
		bl_trace_end(&b->trace);
		pthread_cond_destroy(&b->changed);
		pthread_mutex_destroy(&b->mu);
	}
	free(b);
	return all_released;
}
