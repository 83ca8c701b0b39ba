#include "client/lock/sleep.h"

#include "client/lock/attempt.h"
#include "client/lock/watch.h"
#include "core/backoff.h"

void bl_contest_pause(struct bl_contest *c, bl_time until)
{
	bl_time next = bl_now() + bl_backoff_ns(c->pauses++, bl_random(c->client));

	bl_call_sleep(c->call, bl_earlier(next, until));
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
	if (heard == BL_HEARD_NONE)
		bl_contest_pause(c, until);
	return BL_AGAIN;
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
static enum bl_watched_end watch(struct bl_contest *c)
{
	const struct bl_member *m = c->blocker;
	bool silent = !c->row.bell || c->row.bell != c->row.bell_by;

	if (c->row.left_us <= 0) /* another contender is about to take it */
		return BL_WATCH_NO;
	return bl_watch_wait(c->call, &m->call.key, m->call.bell, silent, c->wait.end);
}

int bl_contest_sleep(struct bl_contest *c, bl_time until)
{
	for (;;) {
		struct bl_conn *conn;
		int rc = bl_pool_take_for_bell(&c->client->pool, &conn, c->call->err);

		if (rc != BIZLOCK_OK)
			return rc;
		if (conn)
			return sleep_at_bell(c, conn, until);
		switch (watch(c)) {
		case BL_WATCH_DIRECT:
			continue;
		case BL_WATCH_FREE:
			if (c->n == 1 && !c->unsure)
				return bl_attempt(c, c->wait.bells);
			return BL_AGAIN;
		case BL_WATCH_WAITS:
		case BL_WATCH_NO:
			bl_contest_pause(c, until);
			return BL_AGAIN;
		}
	}
}
