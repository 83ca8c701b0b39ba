#include "base/thread.h"
#include "client/hold.h"

/* How late the end of a thread is noticed: nothing tells us. */
#define THREADS_NS (1000 * BL_NS_PER_MS)

void bl_watch_by(struct bizlock *b, bl_time when)
{
	if (when >= b->watch.at)
		return;
	b->watch.at = when;
	pthread_cond_signal(&b->watch.wake);
}

void bl_lose(struct bizlock *b, struct bl_hold *h, enum bl_loss why)
{
	h->state = BL_HOLD_LOST;
	h->why = why;
	h->untold = true;
	bl_line_stir(&b->lines, &h->key);
	bl_count(&b->numbers, BL_COUNT_LOST);
	bl_watch_by(b, 0);
}

void bl_watch_drop(struct bizlock *b, struct bl_hold *h)
{
	if (!h->untold) {
		bl_held_remove(&b->held, h);
		return;
	}
	bl_held_take_out(&b->held, h);
	h->next = b->watch.dropped;
	b->watch.dropped = h;
	bl_watch_by(b, 0);
}

/* What one hold has come to; when to look at it again. */
static bl_time look_at(struct bizlock *b, struct bl_hold *h, bl_time now)
{
	bool ended = bl_token_ended(h->thread);

	if (h->state == BL_HOLD_HELD && h->expires <= now)
		bl_lose(b, h, BL_LOSS_OVER);
	else if (h->state == BL_HOLD_HELD && ended)
		bl_lose(b, h, BL_LOSS_THREAD);
	if (h->state == BL_HOLD_LOST && !h->untold && ended && !h->busy)
		bl_hold_litter(b, h, false); /* nobody is left to give it back */
	if (h->state == BL_HOLD_HELD && !h->thread)
		return h->expires;
	if (h->state == BL_HOLD_HELD)
		return bl_earlier(h->expires, now + THREADS_NS);
	return h->state == BL_HOLD_LOST && h->thread ? now + THREADS_NS : BL_NEVER;
}

static bl_time look(struct bizlock *b)
{
	bl_time now = bl_now(), next = BL_NEVER;

	for (struct bl_hold *h = NULL; (h = bl_held_walk(&b->held, h)) != NULL;)
		next = bl_earlier(next, look_at(b, h, now));
	return next;
}

static struct bl_hold *untold(struct bizlock *b)
{
	struct bl_hold *h = NULL;

	while ((h = bl_held_walk(&b->held, h)) != NULL)
		if (h->untold)
			return h;
	return NULL;
}

static void tell(struct bizlock *b, const struct bl_hold *h)
{
	bl_lost_fn *fn = b->watch.fn;
	void *arg = b->watch.arg;
	struct bl_key key = h->key;
	uint64_t fence = h->fence;

	if (!fn)
		return;
	pthread_mutex_unlock(&b->mu);
	fn(arg, (bizlock_key){key.type, key.id}, fence);
	pthread_mutex_lock(&b->mu);
}

/* Nothing may be assumed of the table after each: the mutex was free. */
static void tell_all(struct bizlock *b)
{
	struct bl_hold *h;

	while ((h = b->watch.dropped) != NULL) {
		b->watch.dropped = h->next;
		tell(b, h);
		bl_hold_free(h);
	}
	while ((h = untold(b)) != NULL) {
		h->untold = false;
		tell(b, h);
	}
}

static void *run(void *arg)
{
	struct bizlock *b = arg;
	struct bl_watch *w = &b->watch;

	pthread_mutex_lock(&b->mu);
	while (!w->stop) {
		bl_time next = look(b);

		w->at = BL_NEVER; /* whoever loses one from here on lowers it again */
		tell_all(b);
		if (w->cut_at <= bl_now()) {
			w->cut_at = BL_NEVER;
			bl_pool_cut(&b->pool);
		}
		w->at = bl_earlier(w->at, bl_earlier(next, w->cut_at));
		if (!w->stop)
			bl_cond_wait_until(&w->wake, &b->mu, w->at);
	}
	pthread_mutex_unlock(&b->mu);
	return NULL;
}

int bl_watch_start(struct bizlock *b, struct bl_err *err)
{
	struct bl_watch *w = &b->watch;

	w->at = 0;
	w->cut_at = BL_NEVER;
	w->stop = false;
	if (bl_cond_init(&w->wake) != 0)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	w->running = bl_thread_start(&w->thread, run, b);
	if (w->running)
		return BIZLOCK_OK;
	pthread_cond_destroy(&w->wake);
	return bl_err_set(err, BIZLOCK_NOMEM, "no thread can be had");
}

void bl_watch_stop(struct bizlock *b)
{
	struct bl_watch *w = &b->watch;

	if (!w->running)
		return;
	pthread_mutex_lock(&b->mu);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&b->mu);
	pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->wake);
	w->running = false;
	while (w->dropped) {
		struct bl_hold *h = w->dropped;

		w->dropped = h->next;
		bl_hold_free(h);
	}
}
