/* The first in line for a lock waits until the others have left. */
#include "client/lock/shared_parts.h"
#include "client/lock/sleep.h"
#include "core/lease.h"

/* A sleep that nobody ends costs no more than this. */
#define SLEEP_MS 1000

/* Its row in slot 0 must outlast the wait: it keeps newcomers out. */
static int renew_place(struct bl_contest *c, struct bl_conn *conn)
{
	struct bl_ref own = bl_shared_own_row(c);
	bl_time sent = bl_now();
	bool matched = false;
	int rc;

	if (sent < bl_lease_due(c->sent, bl_shared_place_ms(c)))
		return BIZLOCK_OK;
	c->has_place = true;
	bl_unlock(c->client);
	rc = bl_lock_renew(&conn->session, own, bl_shared_place_ms(c), &matched, c->call->err);
	bl_lock(c->client);
	if (rc == BIZLOCK_OK && matched)
		c->sent = sent;
	return rc;
}

/* A shorter sleep proves nothing: a wake-up takes a moment, too. */
#define PROOF_NS (100 * BL_NS_PER_MS)

static int64_t sleep_ms(const struct bl_contest *c, bl_time until)
{
	int64_t most = bl_shared_polls(c->client) ? BL_SHARED_POLL_MS : SLEEP_MS;
	int64_t ms = bl_left_ms(until);

	if (c->stays && most > bl_shared_place_ms(c) / 6)
		most = bl_shared_place_ms(c) / 6;
	return ms < most ? ms : most;
}

static int sleep_on(struct bl_contest *c, struct bl_conn *conn, bl_time until)
{
	struct bl_wish wish = bl_shared_wish_of(c);
	int64_t ms = sleep_ms(c, until);
	enum bl_heard heard;
	bl_time proof;
	int rc;

	wish.exclusive = c->stays; /* or it waits for slot 0 first */
	bl_conn_quiet(conn);
	rc = bl_call_check(c->call);
	if (rc != BIZLOCK_OK)
		return rc;
	bl_unlock(c->client);
	proof = bl_now() + PROOF_NS;
	rc = bl_shared_sleep(&conn->session, &wish, ms > 0 ? ms : 1, conn->wake_fd, &heard,
	                     c->call->err);
	bl_lock(c->client);
	if (rc != BIZLOCK_OK)
		return rc;
	c->overslept = heard == BL_HEARD_NONE && bl_passed(proof) && c->row->left_us > ms * 1000;
	if (heard == BL_HEARD_RING && c->client->overslept > 0 && !bl_shared_polls(c->client))
		c->client->overslept--;
	return BL_AGAIN;
}

/* The first in line sleeps in a statement, on the connection that has its doorbell, while enough
 * connections are left for other calls. A client without watchers has no choice. */
static bool may_sleep_on(const struct bl_contest *c, const struct bl_conn *conn)
{
	const struct bl_pool *pool = &c->client->pool;
	uint64_t bell = bl_shared_hold_of(c)->bell;

	return !c->op && c->row->left_us > 0 && bell && bell == conn->id &&
	       (bl_pool_has_room_at_bells(pool, false) || bl_pool_watchers_max(pool) == 0);
}

int bl_shared_outwait(struct bl_contest *c, bl_time until)
{
	bool asleep = false;
	struct bl_conn *conn;
	int rc;

	if (c->row->left_us <= 0 && !c->stays)
		return bl_contest_pause(c, until);
	if (bl_shared_wants_exclusive(c) && !c->stays && !c->others.exclusively &&
	    !c->request->once)
		return bl_shared_attempt(c, false);
	rc = bl_attempt_borrow(c, &conn);
	if (rc != BIZLOCK_OK)
		return rc;
	if (c->stays)
		rc = renew_place(c, conn);
	if (rc == BIZLOCK_OK && may_sleep_on(c, conn)) {
		asleep = true;
		bl_pool_bell_begins(&c->client->pool, conn);
		rc = sleep_on(c, conn, until);
		bl_pool_bell_over(&c->client->pool);
	}
	bl_pool_put(&c->client->pool, conn);
	if (asleep)
		bl_watch_promote(c->client);
	if (rc != BIZLOCK_OK || asleep)
		return rc;
	if (c->op)
		return bl_contest_sleep(c, until);
	if (c->row->left_us > 0 && bl_shared_hold_of(c)->bell && !bl_shared_polls(c->client))
		return bl_contest_watch(c, until);
	return bl_contest_pause(c, bl_earlier(until, bl_now() + BL_SHARED_POLL_MS * BL_NS_PER_MS));
}
