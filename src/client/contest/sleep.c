#include "client/contest/sleep.h"

#include <inttypes.h>
#include <string.h>

#include "client/contest/attempt.h"
#include "client/contest/share.h"
#include "client/watch/watch.h"
#include "core/backoff.h"

int bl_contest_pause(struct bl_contest *c, bl_time until)
{
	bl_time next = bl_now() + bl_backoff_ns(c->pauses++, bl_random(c->client));

	c->parked_until = bl_earlier(next, bl_earlier(until, c->call->io_deadline));
	BL_TRACE_WAIT(c, "looks again in %" PRId64 " ms", bl_left_ms(c->parked_until));
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
	BL_TRACE_WAIT(c, "sleeps at the doorbell, %" PRId64 " ms at most", bl_left_ms(until));
	bl_unlock(c->client);
	rc = bl_bell_wait(&conn->session, m->goal.bell, bl_left_ms(until), conn->wake_fd, &heard,
	                  c->call->err);
	bl_lock(c->client);
	if (rc != BIZLOCK_OK)
		return rc;
	BL_TRACE_WAIT(c, "%s",
	              heard == BL_HEARD_RING ? "the doorbell rang" : "the doorbell did not ring");
	if (heard == BL_HEARD_RING)
		return bl_attempt_rung(c, conn);
	/* A wait that the server cut short must not become a busy loop. */
	return heard == BL_HEARD_NONE ? bl_contest_pause(c, until) : BL_AGAIN;
}

/* *ret_none: no connection is left for it. */
static int sleep_at_bell(struct bl_contest *c, bl_time until, bool *ret_none)
{
	struct bizlock *b = c->client;
	bool hot = bl_yields_is_hot(&b->yields, &c->blocker->call.key);
	int rc = bl_pool_take_for_bell(&b->pool, hot, &c->conn, c->call->err);

	*ret_none = rc == BIZLOCK_OK && !c->conn;
	if (!c->conn)
		return rc;
	bl_watch_promote(b);
	rc = sleep_on(c, c->conn, until);
	bl_pool_bell_over(&b->pool);
	bl_pool_put(&b->pool, c->conn);
	c->conn = NULL;
	bl_watch_promote(b);
	return rc;
}

/* A release rings, and so wakes watchers, only if the holder has the doorbell. */
static bool is_silent(const struct bl_contest *c)
{
	return !c->row->bell || c->row->bell != c->row->bell_by;
}

/* Somebody else has the doorbell. */
static bool is_in_line(const struct bl_contest *c)
{
	return c->wait.bells && c->row->bell_by && !c->stays && !c->members[0]->hold->bell;
}

/* Can a watcher tell when a shared lock may be free? It watches the doorbell that somebody else
 * has; for the first in line, which has the doorbell itself, it watches the rows of the others. */
static bool tells_shared(const struct bl_contest *c)
{
	return !bl_shared_polls(c->client) && (c->members[0]->hold->bell || is_in_line(c));
}

/* If not, another contender is about to take the lock, or this one has to look for itself. */
static bool can_be_watched(const struct bl_contest *c)
{
	return c->row->left_us > 0 && (!c->among || tells_shared(c));
}

static struct bl_watch_for what_to_watch(const struct bl_contest *c)
{
	const struct bl_call *call = &c->blocker->call;
	struct bl_watch_for what = {.watched.key = &call->key, .until = BL_NEVER};
	bl_time now = bl_now();

	memcpy(what.watched.bell, c->blocker->goal.bell, sizeof(what.watched.bell));
	what.silent = !c->among && is_silent(c);
	if (!c->among)
		return what;
	what.watched.among = true;
	what.watched.first = c->members[0]->hold->bell;
	/* A contender that wants the lock alone waits for slot 0 first, and there for the
	 * others. */
	what.watched.exclusive = c->stays;
	what.watched.limit = c->request->limit;
	what.until = now + c->row->left_us * 1000;
	if (c->stays) /* its row keeps newcomers out, and must not end meanwhile */
		what.until = bl_earlier(what.until, now + bl_shared_place_ms(c) * BL_NS_PER_MS / 6);
	return what;
}

static void trace_watched(const struct bl_contest *c)
{
	BL_TRACE_WAIT(c, "is watched, for it has no connection to sleep on");
}

static void trace_found_free(const struct bl_contest *c)
{
	BL_TRACE_WAIT(c, "its watcher has seen it free");
}

static enum bl_watched_end watch(struct bl_contest *c)
{
	struct bl_watch_for what = what_to_watch(c);

	if (!can_be_watched(c))
		return BL_WATCH_NO;
	trace_watched(c);
	return bl_watch_wait(c->call, &what, c->wait.end);
}

/* A thread that sleeps at a free doorbell gets it, and with it the first place in line. A request,
 * or a thread that finds no connection to sleep on, must take the doorbell itself: sharers pass
 * while nobody has it. False: the key is to be watched. */
static bool line_up(struct bl_contest *c, int *ret_rc)
{
	if (!c->among || !c->wait.bells || c->row->bell_by || c->row->left_us <= 0 ||
	    c->members[0]->hold->bell || c->others.mine)
		return false;
	*ret_rc = bl_shared_line_up(c);
	return *ret_rc != BL_AGAIN || c->members[0]->hold->bell;
}

/* ---- a request ---------------------------------------------------------------------------- */

/* If no watcher can tell when a request may have the lock, the request looks itself. With the
 * doorbell it keeps others waiting, so it looks as often as a thread that nobody can wake. But it
 * looks at most once in SHARE_NS (250 us) times the number of pending requests: so thousands of
 * them do not overload the server. */
#define SHARE_NS (BL_NS_PER_MS / 4)

static int look_later(struct bl_contest *c, bl_time until)
{
	bl_time now = bl_now(), share = (bl_time)c->client->ops.all.count * SHARE_NS, distance;

	if (c->members[0]->hold->bell)
		distance = BL_SHARED_POLL_MS * BL_NS_PER_MS;
	else
		distance = bl_backoff_ns(c->pauses++, bl_random(c->client));
	if (distance < share)
		distance = share;
	if (c->stays) /* its row keeps newcomers out, and must not end meanwhile */
		until = bl_earlier(until, now + bl_shared_place_ms(c) * BL_NS_PER_MS / 6);
	c->parked_until = bl_earlier(now + distance, bl_earlier(until, c->call->io_deadline));
	BL_TRACE_WAIT(c, "looks again in %" PRId64 " ms", bl_left_ms(c->parked_until));
	return bl_passed(c->parked_until) ? BL_AGAIN : BL_PARKED;
}

static void wake_request(struct bl_watch_wait *wait)
{
	bl_place_wake(wait->whose);
}

static bool may_sleep_at_bell(const struct bl_contest *c)
{
	return bl_yields_is_hot(&c->client->yields, &c->blocker->call.key) &&
	       bl_pool_has_room_at_bells(&c->client->pool, true);
}

/* A request sleeps at a doorbell only while another contender has it. A free doorbell would be its
 * own at once, and then it would have to poll. */
static int park(struct bl_contest *c, bl_time until)
{
	struct bl_watch_for what;
	int rc;

	if (line_up(c, &rc))
		return rc;
	c->parked_until = until;
	c->sleeps = is_in_line(c) && !c->crowded && may_sleep_at_bell(c);
	if (c->sleeps)
		return BL_PARKED;
	what = what_to_watch(c);
	if (can_be_watched(c))
		c->watched = bl_watch_join(c->client, &what);
	if (!c->watched)
		return c->among ? look_later(c, until) : bl_contest_pause(c, until);
	trace_watched(c);
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
	if (got == BL_WATCH_FREE)
		trace_found_free(c);
	c->crowded &= got != BL_WATCH_DIRECT;
	/* The doorbell of a shared lock is a place in line, worth having without the lock. */
	if (got == BL_WATCH_FREE && c->among && !c->members[0]->hold->bell && !c->unsure)
		return bl_attempt(c, c->wait.bells);
	return got == BL_WATCH_NO ? bl_contest_pause(c, c->wait.end) : BL_AGAIN;
}

int bl_contest_sleep_at_bell(struct bl_contest *c, bl_time until)
{
	bool none;
	int rc = sleep_at_bell(c, until, &none);

	c->crowded = none || rc == BIZLOCK_CONN || rc == BIZLOCK_DB;
	return c->crowded ? bl_contest_pause(c, until) : rc;
}

/* ---- a thread ----------------------------------------------------------------------------- */

int bl_contest_watch(struct bl_contest *c, bl_time until)
{
	enum bl_watched_end end = watch(c);

	return end == BL_WATCH_WAITS || end == BL_WATCH_NO ? bl_contest_pause(c, until) : BL_AGAIN;
}

int bl_contest_sleep(struct bl_contest *c, bl_time until)
{
	const struct bl_key *key = &c->blocker->call.key;
	struct bizlock *b = c->client;

	if (c->op)
		return park(c, until);
	for (;;) {
		bool none;
		int rc = sleep_at_bell(c, until, &none);

		if (!none)
			return rc;
		if (line_up(c, &rc))
			return rc;
		switch (watch(c)) {
		case BL_WATCH_DIRECT:
			continue;
		case BL_WATCH_FREE:
			trace_found_free(c);
			if (c->n > 1 || c->unsure)
				return BL_AGAIN;
			rc = bl_attempt(c, c->wait.bells);
			if (rc == BL_AGAIN)
				bl_yields_note_hot(&b->yields, key);
			return rc;
		case BL_WATCH_LOOK:
			return BL_AGAIN;
		case BL_WATCH_WAITS:
		case BL_WATCH_NO:
			return bl_contest_pause(c, until);
		}
	}
}
