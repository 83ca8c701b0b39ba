#include "base/thread.h"
#include "client/hold.h"

#define CUT_NS (50 * BL_NS_PER_MS)

/* How late the end of a thread is noticed: nothing tells us. */
#define THREADS_NS (1000 * BL_NS_PER_MS)

void bl_lose(struct bizlock *b, struct bl_hold *h, enum bl_loss why)
{
	h->state = BL_HOLD_LOST;
	h->why = why;
	h->untold = true;
	bl_line_stir(&b->lines, &h->key);
	bl_count(&b->numbers, BL_COUNT_LOST);
	bl_worker_by(&b->watch.worker, 0);
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
	bl_worker_by(&b->watch.worker, 0);
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

/* Again and again, once the time is over: who was cut off may have sent anew, and who was
 * connecting could not be cut off. */
static void cut(struct bizlock *b)
{
	if (!bl_passed(b->watch.cut_at))
		return;
	b->watch.cut_at = bl_now() + CUT_NS;
	bl_pool_cut(&b->pool);
}

static void *run(void *arg)
{
	struct bizlock *b = arg;
	struct bl_worker *w = &b->watch.worker;

	pthread_mutex_lock(&b->mu);
	while (!w->stop) {
		bl_time next = look(b);

		w->at = BL_NEVER; /* whoever loses one from here on lowers it again */
		tell_all(b);
		cut(b);
		w->at = bl_earlier(w->at, bl_earlier(next, b->watch.cut_at));
		bl_worker_sleep(w, &b->mu);
	}
	pthread_mutex_unlock(&b->mu);
	return NULL;
}

int bl_watch_start(struct bizlock *b, struct bl_err *err)
{
	b->watch.worker = (struct bl_worker){.running = false};
	b->watch.cut_at = BL_NEVER;
	return bl_worker_start(&b->watch.worker, run, b, err);
}

void bl_watch_stop(struct bizlock *b)
{
	struct bl_watch *w = &b->watch;

	bl_worker_stop(&w->worker, &b->mu);
	while (w->dropped) {
		struct bl_hold *h = w->dropped;

		w->dropped = h->next;
		bl_hold_free(h);
	}
}
