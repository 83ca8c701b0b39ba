/* What happens to a hold when its lease or its thread ends: it is lost, the user is told, and holds
 * of an ended thread go to the janitor. */
#include <stdlib.h>
#include <sys/eventfd.h>

#include "base/thread.h"
#include "client/hold/hold.h"

#define CUT_NS (50 * BL_NS_PER_MS)

/* How late the end of a thread may be noticed: nothing tells us of it. */
#define THREADS_NS (1000 * BL_NS_PER_MS)

/* Sees what has become of one hold; returns when to look at it again. */
static bl_time look_at_hold(struct bizlock *b, struct bl_hold *h, bl_time now)
{
	bool ended = bl_token_ended(h->thread);

	if (h->state == BL_HOLD_HELD && h->expires <= now)
		bl_hold_lose(b, h, BL_LOSS_OVER);
	else if (h->state == BL_HOLD_HELD && ended)
		bl_hold_lose(b, h, BL_LOSS_THREAD);
	if (h->state == BL_HOLD_LOST && ended && !h->busy &&
	    !(h->untold && bl_listener_is_set(&b->loss_watch.listener)))
		bl_hold_orphan(b, h, false); /* nobody is left to give it back */
	if (h->state == BL_HOLD_HELD && !h->thread)
		return h->expires;
	if (h->state == BL_HOLD_HELD)
		return bl_earlier(h->expires, now + THREADS_NS);
	return h->state == BL_HOLD_LOST && h->thread ? now + THREADS_NS : BL_NEVER;
}

static bl_time look_at_all(struct bizlock *b)
{
	bl_time now = bl_now(), next = BL_NEVER;

	for (struct bl_hold *h = NULL; (h = bl_held_walk(&b->held, h)) != NULL;)
		next = bl_earlier(next, look_at_hold(b, h, now));
	return next;
}

/* ---- the line of untold losses -------------------------------------------------------------- */

void bl_loss_note(struct bizlock *b, struct bl_hold *h)
{
	h->untold = true;
	bl_list_add(&b->loss_watch.untold, &h->loss);
	bl_worker_by(&b->loss_watch.worker, 0);
}

void bl_loss_forget(struct bizlock *b, struct bl_hold *h)
{
	if (!h->untold)
		return;
	h->untold = false;
	bl_list_remove(&b->loss_watch.untold, &h->loss);
	if (h->gone)
		bl_hold_free(h);
}

void bl_loss_tell_to(struct bizlock *b, struct bl_listener listener)
{
	struct bl_loss_watch *w = &b->loss_watch;
	struct bl_link *next, *first = bl_listener_is_set(&listener) ? NULL : w->untold.first;

	for (struct bl_link *at = first; at; at = next) {
		struct bl_hold *h = BL_LISTED(at, struct bl_hold, loss);

		next = at->next;
		if (h->gone || h->state == BL_HOLD_ORPHAN)
			bl_loss_forget(b, h);
	}
	w->listener = listener;
}

/* With the mutex free. */
static void tell(const struct bl_listener *to, const struct bl_key *key,
                 const struct bl_owner *owner, uint64_t fence)
{
	bizlock_loss loss = {
	        .size = sizeof(loss),
	        .key = {key->type, key->id},
	        .owner = owner->thread ? NULL : owner->name,
	        .thread = owner->thread ? strtoull(owner->name, NULL, 10) : 0,
	        .fence = fence,
	};

	if (to->loss)
		to->loss(to->arg, &loss);
	else
		to->lost(to->arg, loss.key, loss.fence);
}

/* The line may have changed after each call, because the mutex was free. Returns how many calls. */
static unsigned tell_each(struct bizlock *b)
{
	struct bl_loss_watch *w = &b->loss_watch;
	unsigned calls = 0;

	if (w->telling)
		return calls;
	w->telling = true;
	for (; bl_listener_is_set(&w->listener) && w->untold.first; calls++) {
		struct bl_hold *h = BL_LISTED(w->untold.first, struct bl_hold, loss);
		struct bl_listener listener = w->listener;
		struct bl_key key = h->key;
		struct bl_owner owner = h->owner;
		uint64_t fence = h->fence;

		bl_loss_forget(b, h);
		bl_unlock(b);
		tell(&listener, &key, &owner, fence);
		bl_lock(b);
	}
	w->telling = false;
	return calls;
}

/* ---- by bizlock_dispatch() ------------------------------------------------------------------ */

int bl_loss_fd(struct bizlock *b)
{
	struct bl_loss_watch *w = &b->loss_watch;

	if (w->fd < 0)
		w->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return w->fd;
}

void bl_loss_ask_dispatch(struct bizlock *b)
{
	struct bl_loss_watch *w = &b->loss_watch;

	if (w->fd >= 0 && !w->asked)
		w->asked = eventfd_write(w->fd, 1) == 0;
}

void bl_loss_answer_dispatch(struct bizlock *b)
{
	struct bl_loss_watch *w = &b->loss_watch;
	eventfd_t ignored;

	if (w->asked)
		eventfd_read(w->fd, &ignored);
	w->asked = false;
}

unsigned bl_loss_dispatch(struct bizlock *b)
{
	unsigned calls = 0;

	bl_lock(b);
	if (b->loss_watch.due) {
		b->loss_watch.due = false;
		calls = tell_each(b);
	}
	bl_unlock(b);
	return calls;
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* Again and again, once the time is over: a thread that was cut off may have sent anew. */
static void cut(struct bizlock *b)
{
	if (!bl_passed(b->loss_watch.cut_at))
		return;
	b->loss_watch.cut_at = bl_now() + CUT_NS;
	bl_pool_cut(&b->pool);
	bl_failover_stop(b->failover);
}

/* The renewer has a time of its own for answers, answer_by. Once that is over, its next statement
 * is late from the beginning. */
static bl_time cut_late(struct bizlock *b)
{
	struct bl_renewer *r = &b->renewer;
	bl_time next = bl_pool_cut_late(&b->pool);

	if (!r->worker.at_work || !r->at)
		return next;
	next = bl_earlier(next, bl_session_cut_late(r->at, r->socket));
	return bl_earlier(next, bl_later(r->at->answer_by, bl_now() + CUT_NS));
}

/* Cuts off statements that take too long. Returns when to look again. */
static bl_time watch_statements(struct bizlock *b)
{
	cut(b);
	return bl_earlier(cut_late(b), b->loss_watch.cut_at);
}

static void *stand_in(void *arg)
{
	struct bizlock *b = arg;
	struct bl_worker *w = &b->loss_watch.stand_in;

	bl_lock(b);
	while (!w->stop) {
		w->at = watch_statements(b);
		bl_worker_sleep(w, &b->mu);
	}
	bl_unlock(b);
	return NULL;
}

/* The user's function may itself send statements to a server that keeps it busy. So another thread
 * stands in meanwhile; if none can be started, only the timeouts of the connector remain. */
static void tell_all(struct bizlock *b)
{
	struct bl_loss_watch *w = &b->loss_watch;
	struct bl_err ignored;

	if (!bl_listener_is_set(&w->listener) || !w->untold.first)
		return;
	if (w->fd >= 0) {
		w->due = true;
		bl_loss_ask_dispatch(b);
		return;
	}
	w->stand_in = (struct bl_worker){.running = false};
	if (bl_worker_start(&w->stand_in, stand_in, b, &ignored) == BIZLOCK_OK)
		b->pool.watch = &w->stand_in;
	tell_each(b);
	b->pool.watch = &w->worker;
	bl_unlock(b);
	bl_worker_stop(&w->stand_in, &b->mu);
	bl_lock(b);
}

static void *watch_losses(void *arg)
{
	struct bizlock *b = arg;
	struct bl_worker *w = &b->loss_watch.worker;

	bl_lock(b);
	while (!w->stop) {
		bl_time next = look_at_all(b);

		w->at = BL_NEVER; /* a loss from here on lowers it again */
		tell_all(b);
		w->at = bl_earlier(w->at, bl_earlier(next, watch_statements(b)));
		bl_worker_sleep(w, &b->mu);
	}
	bl_unlock(b);
	return NULL;
}

int bl_loss_watch_start(struct bizlock *b, struct bl_err *err)
{
	b->loss_watch.worker = (struct bl_worker){.running = false};
	b->loss_watch.cut_at = BL_NEVER;
	b->pool.watch = &b->loss_watch.worker;
	return bl_worker_start(&b->loss_watch.worker, watch_losses, b, err);
}

void bl_loss_watch_stop(struct bizlock *b)
{
	struct bl_loss_watch *w = &b->loss_watch;

	bl_worker_stop(&w->worker, &b->mu);
	while (w->untold.first)
		bl_loss_forget(b, BL_LISTED(w->untold.first, struct bl_hold, loss));
}
