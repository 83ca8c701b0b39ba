#include "client/watch/watcher.h"

#include "client/state.h"
#include "store/session/kill.h"

/* How long a watcher sleeps. Releases wake it, so this is how late it is after a wake-up that did
 * not come. If wake-ups do not come, it looks again soon, and then less and less often. */
#define SHORTEST_NS (16 * BL_NS_PER_MS)
#define FIRST_NS (128 * BL_NS_PER_MS)
#define LONGEST_NS (1000 * BL_NS_PER_MS)

/* When to ask again for a connection. */
#define AGAIN_NS (5 * BL_NS_PER_MS)

/* A watcher that has nothing to watch keeps its connection for this long. */
#define IDLE_NS (1000 * BL_NS_PER_MS)

/* `watched` is the first field of a wait. */
static struct bl_watch_wait *wait_of(struct bl_watched *item)
{
	return (struct bl_watch_wait *)(void *)item;
}

void bl_watcher_end(struct bizlock *b, struct bl_watcher *w)
{
	struct bl_conn *conn = w->conn;

	for (size_t i = 0; i < w->n; i++) {
		bl_watch_answer(wait_of(w->items[i]), BL_WATCH_NO);
		bl_watch_let_go(wait_of(w->items[i]));
	}
	*w = (struct bl_watcher){.conn = NULL};
	/* A KILL QUERY that is under way must not meet another's statement. */
	bl_session_leave(&conn->session);
	bl_pool_watch_over(&b->pool);
	bl_pool_put(&b->pool, conn);
}

/* Puts items that are still waited for first, and returns how many. */
static size_t sort_out(struct bl_watcher *w)
{
	size_t waited_for = 0;

	for (size_t i = 0; i < w->n; i++) {
		struct bl_watched *item = w->items[i];
		const struct bl_watch_wait *wait = wait_of(item);

		if (wait->left || wait->answer != BL_WATCH_WAITS)
			continue;
		w->items[i] = w->items[waited_for];
		w->items[waited_for++] = item;
	}
	return waited_for;
}

/* Answers those of the first n items whose keys are free. Of the others, notes the leases, and
 * which keys have another holder than before. */
static void judge(struct bizlock *b, struct bl_watcher *w, size_t n, bl_time now)
{
	bool missed = false, any = false;

	for (size_t i = 0; i < n; i++) {
		struct bl_watch_wait *wait = wait_of(w->items[i]);

		if (!wait->watched.seen)
			continue;
		any = true;
		if (wait->watched.left_us <= 0) {
			missed |= w->missed && !wait->silent && wait->watched.named;
			bl_watch_answer(wait, BL_WATCH_FREE);
		} else if (wait->watched.among) {
			if (wait->until <= now)
				bl_watch_answer(wait, BL_WATCH_LOOK);
		} else {
			wait->until = now + wait->watched.left_us * 1000;
			if (wait->watched.passed) {
				bl_yields_note_hot(&b->yields, wait->watched.key);
				if (wait->woken && bl_pool_has_room_at_bells(&b->pool, true))
					bl_watch_answer(wait, BL_WATCH_DIRECT);
			}
		}
	}
	if (missed)
		w->distance = SHORTEST_NS;
	if (w->told && !any)
		w->doubt = bl_earlier(w->doubt, now + BL_SILENT_NS);
	w->look = w->missed = w->told = false;
}

/* Until when it sleeps: not for longer than any of the leases. */
static bl_time sleep_until(struct bizlock *b, const struct bl_watcher *w, size_t n, bl_time now)
{
	bl_time distance = w->distance, until = w->doubt;

	for (size_t i = 0; i < n; i++) {
		const struct bl_watch_wait *wait = wait_of(w->items[i]);

		if (wait->silent || !wait->watched.named)
			distance = bl_earlier(distance, BL_SILENT_NS);
		until = bl_earlier(until, wait->until);
	}
	distance -= (bl_time)(bl_random(b) % (uint64_t)(distance / 4));
	return bl_earlier(until, now + distance);
}

/* Items that are no longer waited for lose their names at once: a release of their keys would wake
 * the watcher for nothing. */
static int put_to_sleep(struct bizlock *b, struct bl_watcher *w, size_t n, bl_time now)
{
	struct bl_session *s = &w->conn->session;
	struct bl_err ignored;
	int rc;

	w->until = n > 0 ? sleep_until(b, w, n, now) : now + IDLE_NS;
	bl_unlock(b);
	rc = bl_watch_free_names(s, w->items, n, w->n, &ignored);
	if (rc == BIZLOCK_OK && n > 0)
		rc = bl_watch_sleep(s, w->items, n, bl_left_ms(w->until), &ignored);
	bl_lock(b);
	for (size_t i = n; i < w->n; i++)
		bl_watch_let_go(wait_of(w->items[i]));
	w->n = n;
	w->asleep = rc == BIZLOCK_OK && n > 0;
	return rc;
}

void bl_watcher_tend(struct bizlock *b, struct bl_watcher *w)
{
	struct bl_session *s = &w->conn->session;
	size_t n = sort_out(w);
	int rc = BIZLOCK_OK;

	if (n > 0) {
		struct bl_err ignored;

		bl_unlock(b);
		rc = bl_watch_take_names(s, w->items, n, &ignored);
		if (rc == BIZLOCK_OK)
			rc = bl_watch_look(s, w->items, n, w->look, &ignored);
		bl_lock(b);
	}
	w->grown = false;
	if (rc == BIZLOCK_OK && n > 0)
		judge(b, w, n, bl_now());
	bl_watch_promote(b); /* also where all connections were in use at an earlier look */
	if (rc == BIZLOCK_OK)
		rc = put_to_sleep(b, w, sort_out(w), bl_now());
	if (rc != BIZLOCK_OK)
		bl_watcher_end(b, w);
}

/* Keys whose leases are over, or soon will be, are looked at together, and not each at its own
 * time. */
static void forget_fences(struct bl_watcher *w, bl_time now)
{
	bool any = false;

	for (size_t i = 0; i < w->n; i++)
		any |= wait_of(w->items[i])->until <= now;
	for (size_t i = 0; i < w->n; i++)
		if (w->doubt <= now || (any && wait_of(w->items[i])->until <= now + LONGEST_NS))
			w->items[i]->fence = 0;
	if (w->doubt <= now)
		w->doubt = BL_NEVER;
}

void bl_watcher_awake(struct bizlock *b, struct bl_watcher *w, bool answers)
{
	enum bl_watch_end end = BL_WATCH_OVER;
	struct bl_err ignored;
	int rc = BIZLOCK_CONN;

	bl_unlock(b);
	if (answers)
		rc = bl_watch_awake(&w->conn->session, &end, &ignored);
	bl_lock(b);
	if (rc != BIZLOCK_OK) {
		bl_watcher_end(b, w);
		return;
	}
	w->asleep = false;
	w->told |= end == BL_WATCH_WOKEN && !w->called;
	w->look |= end == BL_WATCH_CHANGED || (end == BL_WATCH_WOKEN && !w->called);
	w->missed &= end != BL_WATCH_WOKEN;
	w->called = false;
	forget_fences(w, bl_now());
	if (end != BL_WATCH_OVER || !bl_passed(w->until))
		return;
	w->missed = true;
	w->distance = bl_earlier(2 * w->distance, LONGEST_NS);
}

void bl_watcher_call(struct bizlock *b, struct bl_watcher *w)
{
	struct bl_patience patience = {.end = bl_now() + SHORTEST_NS};
	struct bl_mark mark = w->conn->session.mark;
	struct bl_conn *conn;
	struct bl_err ignored;

	w->called = true;
	if (bl_pool_take(&b->pool, patience, &conn, &ignored) == BIZLOCK_OK) {
		bl_unlock(b);
		bl_kill_statement(&conn->session, &mark, &ignored);
		bl_lock(b);
		bl_pool_put(&b->pool, conn);
	}
}

int bl_watcher_open(struct bizlock *b)
{
	struct bl_watch *watch = &b->watch;
	struct bl_watcher *w = watch->watchers;
	struct bl_err ignored;
	int rc;

	while (w < watch->watchers + watch->size && w->conn)
		w++;
	if (w == watch->watchers + watch->size || !bl_passed(watch->not_before))
		return BIZLOCK_OK;
	rc = bl_pool_take_for_watch(&b->pool, &w->conn, &ignored);
	w->distance = FIRST_NS;
	w->doubt = BL_NEVER;
	if (!w->conn)
		watch->not_before = bl_now() + AGAIN_NS;
	return rc;
}
