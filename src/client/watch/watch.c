/* Two kinds of threads meet here. A waiting thread puts its wait into the list of waits by age,
 * sleeps on the wait's condition variable, and takes the wait out again. The watch thread gives
 * fresh waits to watchers, and answers waits whose keys are free. The mutex guards the list and the
 * answers. Watchers belong to the watch thread alone; key and doorbell of a wait do not change. */
#include "client/watch/watch.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/state.h"
#include "client/watch/watcher.h"

/* Fresh waits are gathered for this long: a watcher that sleeps has to be woken to take them. */
#define GATHER_NS (2 * BL_NS_PER_MS)

/* Another watcher is opened when the others have this many waits each: a look at more takes
 * milliseconds. */
#define COMFORT 256

/* Waits that come together go to one watcher, up to this many: the fences of their keys are near
 * each other then, and a look at them is cheap. */
#define TOGETHER 256

/* A waiting thread looks this often for interrupts: no signal comes while a server keeps the watch
 * thread waiting. */
#define TICK_NS (1000 * BL_NS_PER_MS)

void bl_watch_init(struct bl_watch *w)
{
	*w = (struct bl_watch){.wake_fd = -1};
}

void bl_watch_interrupt(struct bl_watch *w)
{
	int fd = atomic_load(&w->wake_fd), kept = errno;

	if (fd >= 0)
		eventfd_write(fd, 1);
	errno = kept;
}

/* The watch thread sleeps in poll() while it has watchers, and otherwise on its condition. */
static void nudge(struct bl_watch *w)
{
	bl_worker_by(&w->worker, bl_now());
	bl_watch_interrupt(w);
}

/* ---- the list of ages ----------------------------------------------------------------------- */

static struct bl_watch_wait *younger(const struct bl_watch_wait *wait)
{
	return BL_LISTED(wait->age.next, struct bl_watch_wait, age);
}

static struct bl_watch_wait *oldest(const struct bl_watch *w)
{
	return BL_LISTED(w->waits.first, struct bl_watch_wait, age);
}

static void age_add(struct bl_watch *w, struct bl_watch_wait *wait)
{
	bl_list_add(&w->waits, &wait->age);
	if (!w->fresh)
		w->fresh = wait;
}

static void age_remove(struct bl_watch *w, struct bl_watch_wait *wait)
{
	if (w->fresh == wait)
		w->fresh = younger(wait);
	bl_list_remove(&w->waits, &wait->age);
}

void bl_watch_answer(struct bl_watch_wait *wait, enum bl_watched_end a)
{
	if (wait->left || wait->answer != BL_WATCH_WAITS)
		return;
	wait->answer = a;
	if (wait->woken)
		wait->woken(wait);
	else
		pthread_cond_signal(&wait->ends);
}

static void wait_free(struct bl_watch_wait *wait)
{
	pthread_cond_destroy(&wait->ends);
	free(wait);
}

void bl_watch_let_go(struct bl_watch_wait *wait)
{
	wait->has_one = false;
	if (wait->left)
		wait_free(wait);
}

/* The oldest wait of a thread, for a hot key or for any; or NULL. */
static struct bl_watch_wait *oldest_wait(const struct bizlock *b, bool hot)
{
	struct bl_watch_wait *wait = b->watch.threads ? oldest(&b->watch) : NULL;

	while (wait && (wait->answer != BL_WATCH_WAITS || wait->woken ||
	                (hot && !bl_yields_is_hot(&b->yields, wait->watched.key))))
		wait = younger(wait);
	return wait;
}

void bl_watch_promote(struct bizlock *b)
{
	struct bl_watch_wait *wait = NULL;

	if (bl_pool_can_sleep_at_bell(&b->pool, true))
		wait = oldest_wait(b, true);
	if (!wait && bl_pool_can_sleep_at_bell(&b->pool, false))
		wait = oldest_wait(b, false);
	if (wait)
		bl_watch_answer(wait, BL_WATCH_DIRECT);
}

/* ---- fresh waits ---------------------------------------------------------------------------- */

static struct bl_watcher *least(struct bl_watch *watch)
{
	struct bl_watcher *best = NULL;

	for (unsigned i = 0; i < watch->size; i++) {
		struct bl_watcher *w = &watch->watchers[i];

		if (w->conn && (!best || w->n / TOGETHER < best->n / TOGETHER))
			best = w;
	}
	return best;
}

static void give(struct bl_watcher *w, struct bl_watch *watch)
{
	struct bl_watch_wait *wait = watch->fresh;

	watch->fresh = younger(wait);
	wait->has_one = true;
	w->items[w->n++] = &wait->watched;
	w->grown = true;
}

/* Gives fresh waits to watchers. While no watcher is free, they stay fresh. If the server cannot be
 * reached, they end: the waiters will see why. */
static void admit(struct bizlock *b)
{
	struct bl_watch *watch = &b->watch;

	if (!watch->fresh || !bl_passed(watch->fresh->since + GATHER_NS))
		return;
	while (watch->fresh) {
		struct bl_watcher *w = least(watch);
		int rc = !w || w->n >= COMFORT ? bl_watcher_open(b) : BIZLOCK_OK;

		w = least(watch);
		if (!watch->fresh || (!w && rc == BIZLOCK_OK) || (w && w->n == BL_WATCH_MAX))
			break;
		if (w)
			give(w, watch);
		else
			for (; watch->fresh; watch->fresh = younger(watch->fresh))
				bl_watch_answer(watch->fresh, BL_WATCH_NO);
	}
	for (unsigned i = 0; i < watch->size; i++) {
		struct bl_watcher *w = &watch->watchers[i];

		if (w->asleep && w->grown && !w->called)
			bl_watcher_call(b, w);
	}
}

/* ---- the thread ----------------------------------------------------------------------------- */

void bl_watch_check_all(struct bizlock *b)
{
	for (struct bl_watch_wait *wait = oldest(&b->watch); wait; wait = younger(wait))
		pthread_cond_signal(&wait->ends);
}

static void tell_interrupts(struct bizlock *b)
{
	unsigned wakes = atomic_load(&b->wakes);

	if (wakes == b->watch.wakes)
		return;
	b->watch.wakes = wakes;
	bl_watch_check_all(b);
}

/* How late an answer may be. */
static bl_time late(const struct bizlock *b)
{
	return bl_config_answer_ms(&b->config) * BL_NS_PER_MS;
}

static void sleep_at_all(struct bizlock *b, bl_time until)
{
	struct bl_watch *watch = &b->watch;
	struct pollfd fds[1 + 2 * watch->size];
	int64_t ms;

	fds[0] = (struct pollfd){.fd = watch->wake_fd, .events = POLLIN};
	for (unsigned i = 0; i < watch->size; i++) {
		const struct bl_watcher *w = &watch->watchers[i];
		const struct bl_conn *conn = w->asleep ? w->conn : NULL;

		fds[1 + 2 * i] =
		        (struct pollfd){.fd = conn ? conn->socket.fd : -1, .events = POLLIN};
		fds[2 + 2 * i] = (struct pollfd){.fd = conn ? conn->wake_fd : -1, .events = POLLIN};
	}
	bl_unlock(b);
	ms = bl_left_ms(until);
	poll(fds, 1 + 2 * watch->size, ms > INT_MAX ? INT_MAX : (int)ms);
	bl_lock(b);
	watch->worker.at_work = true;
	if (fds[0].revents) {
		eventfd_t ignored;

		eventfd_read(watch->wake_fd, &ignored);
	}
	for (unsigned i = 0; i < watch->size; i++) {
		struct bl_watcher *w = &watch->watchers[i];
		bool silent = fds[2 + 2 * i].revents; /* or everybody is interrupted */
		bool answers = !silent && fds[1 + 2 * i].revents;

		if (w->asleep && (silent || answers || bl_passed(w->until + late(b))))
			bl_watcher_awake(b, w, answers);
	}
}

/* Sleeps until there is something to do. */
static void rest(struct bizlock *b)
{
	struct bl_watch *watch = &b->watch;
	bool any = false, at_once = false;
	bl_time until = BL_NEVER;

	if (!watch->fresh)
		bl_pool_keep_none(&b->pool);
	for (unsigned i = 0; i < watch->size; i++) {
		const struct bl_watcher *w = &watch->watchers[i];

		any |= w->conn != NULL;
		if (w->conn)
			until = bl_earlier(until, w->asleep ? w->until + late(b) : w->until);
		at_once |= w->conn && !w->asleep && w->n > 0;
	}
	if (watch->fresh)
		until = bl_earlier(until,
		                   bl_later(watch->fresh->since + GATHER_NS, watch->not_before));
	watch->worker.at = until;
	if (at_once || watch->worker.stop)
		return;
	watch->worker.at_work = false;
	if (any)
		sleep_at_all(b, until);
	else
		bl_worker_sleep(&watch->worker, &b->mu);
	watch->worker.at_work = true;
}

static void *watch_always(void *arg)
{
	struct bizlock *b = arg;
	struct bl_watch *watch = &b->watch;

	bl_lock(b);
	watch->worker.at_work = true; /* but for its sleeps */
	while (!watch->worker.stop) {
		tell_interrupts(b);
		admit(b);
		for (unsigned i = 0; i < watch->size; i++) {
			struct bl_watcher *w = &watch->watchers[i];

			if (w->conn && !w->asleep && w->n > 0)
				bl_watcher_tend(b, w);
			else if (w->conn && !w->asleep && bl_passed(w->until))
				bl_watcher_end(b, w);
		}
		rest(b);
	}
	bl_pool_keep_none(&b->pool);
	for (unsigned i = 0; i < watch->size; i++)
		if (watch->watchers[i].conn)
			bl_watcher_end(b, &watch->watchers[i]);
	bl_unlock(b);
	return NULL;
}

static bool is_started(struct bizlock *b)
{
	struct bl_watch *w = &b->watch;
	struct bl_err ignored;

	if (w->worker.running)
		return true;
	w->size = bl_pool_watchers_max(&b->pool);
	if (w->size == 0)
		return false;
	if (!w->watchers)
		w->watchers = calloc(w->size, sizeof(*w->watchers));
	if (w->wake_fd < 0)
		w->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return w->watchers && w->wake_fd >= 0 &&
	       bl_worker_start(&w->worker, watch_always, b, &ignored) == BIZLOCK_OK;
}

void bl_watch_stop(struct bizlock *b)
{
	bl_lock(b);
	b->watch.worker.stop = true;
	bl_watch_interrupt(&b->watch);
	bl_unlock(b);
	bl_worker_stop(&b->watch.worker, &b->mu);
	bl_watch_forget(b);
}

void bl_watch_forget(struct bizlock *b)
{
	if (b->watch.wake_fd >= 0)
		close(b->watch.wake_fd);
	free(b->watch.watchers);
	bl_watch_init(&b->watch);
}

/* ---- a thread that waits -------------------------------------------------------------------- */

static struct bl_watch_wait *wait_new(const struct bl_watch_for *what)
{
	/* There may be thousands of waits: only the used part of the key is copied, which ends with
	 * its id. */
	size_t key_size = offsetof(struct bl_key, id) + what->watched.key->id_len + 1;
	struct bl_watch_wait *wait = calloc(1, sizeof(*wait) + key_size);

	if (!wait)
		return NULL;
	if (bl_cond_init(&wait->ends) != 0) {
		free(wait);
		return NULL;
	}
	memcpy(wait->key, what->watched.key, key_size);
	wait->watched = what->watched;
	wait->watched.key = (const void *)wait->key;
	wait->silent = what->silent;
	wait->since = bl_now();
	wait->until = what->until;
	return wait;
}

bl_time bl_watch_look_at(const struct bl_watch_wait *wait, bl_time end)
{
	return wait->has_one ? end : bl_earlier(end, wait->since + BL_SILENT_NS);
}

struct bl_watch_wait *bl_watch_join(struct bizlock *b, const struct bl_watch_for *what)
{
	struct bl_watch_wait *wait = is_started(b) ? wait_new(what) : NULL;

	if (!wait)
		return NULL;
	age_add(&b->watch, wait);
	if (b->watch.fresh == wait)
		nudge(&b->watch);
	return wait;
}

void bl_watch_leave(struct bizlock *b, struct bl_watch_wait *wait)
{
	age_remove(&b->watch, wait);
	wait->left = true;
	if (!wait->has_one)
		wait_free(wait);
}

enum bl_watched_end bl_watch_wait(struct bl_call *call, const struct bl_watch_for *what,
                                  bl_time end)
{
	struct bizlock *b = call->client;
	struct bl_watch_wait *wait = bl_watch_join(b, what);
	enum bl_watched_end got;

	if (!wait)
		return BL_WATCH_NO;
	b->watch.threads++;
	while (wait->answer == BL_WATCH_WAITS && !bl_passed(bl_watch_look_at(wait, end)) &&
	       !bl_call_interrupted(call))
		bl_cond_wait_until(&wait->ends, &b->mu,
		                   bl_earlier(bl_watch_look_at(wait, end), bl_now() + TICK_NS));
	got = wait->answer == BL_WATCH_WAITS ? BL_WATCH_NO : wait->answer;
	b->watch.threads--;
	bl_watch_leave(b, wait);
	return got;
}
