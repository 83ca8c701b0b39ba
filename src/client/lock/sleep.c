#include "client/lock/sleep.h"

#include "client/lock/attempt.h"
#include "client/lock/watch.h"
#include "core/backoff.h"

int bl_contest_pause(struct bl_contest *c, bl_time until)
{
	bl_time next = bl_now() + bl_backoff_ns(c->pauses++, bl_random(c->client));

	c->parked_until = bl_earlier(next, bl_earlier(until, c->call->io_deadline));
	if (c->op)
		return bl_passed(c->parked_until) ? BL_AGAIN : BL_PARKED;
	bl_call_sleep(c->call, c->parked_until);
	return BL_AGAIN;
}

static int sleep_on(struct bl_contest *c, struct bl_conn *conn, bl_time until)
{
	const struct bl_member *m = c->blocker;
	enum bl_heard heard;
	int rc;

	bl_conn_quiet(conn);
	rc = bl_call_check(c->call);
	if (rc != BIZLOCK_OK)
		return rc;
	bl_unlock(c->client);
	rc = bl_bell_wait(&conn->session, m->call.bell, bl_left_ms(until), conn->wake_fd, &heard,
	                  c->call->err);
	bl_lock(c->client);
	if (rc != BIZLOCK_OK)
		return rc;
	if (heard == BL_HEARD_RING)
		return bl_attempt_rung(c, conn);
	/* A wait that the server cut short must not become a busy loop. */
	return heard == BL_HEARD_NONE ? bl_contest_pause(c, until) : BL_AGAIN;
}

static int sleep_at_bell(struct bl_contest *c, struct bl_conn *conn, bl_time until)
{
	struct bizlock *b = c->client;
	int rc = sleep_on(c, conn, until);

	bl_pool_bell_over(&b->pool);
	bl_pool_put(&b->pool, conn);
	bl_watch_promote(b);
	return rc;
}

/* A release rings, and so wakes watchers, only if the holder has the doorbell. */
static bool is_silent(const struct bl_contest *c)
{
	return !c->row->bell || c->row->bell != c->row->bell_by;
}

static enum bl_watched_end watch(struct bl_contest *c)
{
	const struct bl_member *m = c->blocker;

	/* Another contender is about to take it; or no watcher looks at rows of that kind. */
	if (c->row->left_us <= 0 || m->call.key.shared)
		return BL_WATCH_NO;
	return bl_watch_wait(c->call, &m->call.key, m->call.bell, is_silent(c), c->wait.end);
}

/* ---- a request ---------------------------------------------------------------------------- */

/* With the doorbell it keeps others waiting, so it looks as often as a thread does that nobody can
 * wake. But with so much for each request between two looks, thousands of them leave the server in
 * peace. */
#define SHARE_NS (BL_NS_PER_MS / 4)

int bl_contest_look_later(struct bl_contest *c, bl_time until)
{
	bl_time now = bl_now(), share = (bl_time)c->client->ops.count * SHARE_NS, distance;

	if (c->members[0]->hold->bell)
		distance = BL_SHARED_POLL_MS * BL_NS_PER_MS;
	else
		distance = bl_backoff_ns(c->pauses++, bl_random(c->client));
	if (distance < share)
		distance = share;
	if (c->stays) /* its row keeps newcomers out, and must not end meanwhile */
		until = bl_earlier(until, now + c->request->lease_ms * BL_NS_PER_MS / 6);
	c->parked_until = bl_earlier(now + distance, bl_earlier(until, c->call->io_deadline));
	return bl_passed(c->parked_until) ? BL_AGAIN : BL_PARKED;
}

static void wake_request(struct bl_watch_wait *wait)
{
	bl_place_wake(wait->whose);
}

/* It is watched at once: connections that sleep at doorbells are for threads. */
static int park(struct bl_contest *c, bl_time until)
{
	const struct bl_member *m = c->blocker;

	if (m->call.key.shared) /* no watcher looks at rows of that kind */
		return bl_contest_look_later(c, until);
	if (c->row->left_us > 0)
		c->watched = bl_watch_join(c->client, &m->call.key, m->call.bell, is_silent(c));
	if (!c->watched)
		return bl_contest_pause(c, until);
	c->watched->woken = wake_request;
	c->watched->whose = &c->place;
	c->parked_until = bl_watch_look_at(c->watched, c->wait.end);
	return BL_PARKED;
}

int bl_contest_unwatch(struct bl_contest *c)
{
	enum bl_watched_end got = c->watched->answer;

	c->parked_until = bl_watch_look_at(c->watched, c->wait.end);
	if (got == BL_WATCH_WAITS && !bl_passed(c->parked_until) &&
	    bl_call_check(c->call) == BIZLOCK_OK)
		return BL_PARKED;
	bl_watch_leave(c->client, c->watched);
	c->watched = NULL;
	c->abroad |= got == BL_WATCH_FREE;
	return got == BL_WATCH_NO ? bl_contest_pause(c, c->wait.end) : BL_AGAIN;
}

/* ---- a thread ----------------------------------------------------------------------------- */

int bl_contest_sleep(struct bl_contest *c, bl_time until)
{
	const struct bl_key *key = &c->blocker->call.key;
	struct bizlock *b = c->client;

	if (c->op)
		return park(c, until);
	for (;;) {
		struct bl_conn *conn;
		int rc = bl_pool_take_for_bell(&b->pool, bl_yields_is_hot(&b->yields, key), &conn,
		                               c->call->err);

		if (rc != BIZLOCK_OK)
			return rc;
		if (conn)
			return sleep_at_bell(c, conn, until);
		switch (watch(c)) {
		case BL_WATCH_DIRECT:
			continue;
		case BL_WATCH_FREE:
			if (c->n > 1 || c->unsure)
				return BL_AGAIN;
			rc = bl_attempt(c, c->wait.bells);
			if (rc == BL_AGAIN)
				bl_yields_note_hot(&b->yields, key);
			return rc;
		case BL_WATCH_WAITS:
		case BL_WATCH_NO:
			return bl_contest_pause(c, until);
		}
	}
}
