#include "client/contest/crashed.h"

#include <string.h>

#include "client/contest/attempt.h"
#include "store/shared/sharers.h"

/* What the row's owner has in common with all owners of its client: "@pid.nonce@host". NULL: the
 * process that is named need not live for the hold. An exported hold is meant to outlive it. */
static const char *process_of(const struct bl_row *row)
{
	size_t len;

	return bl_owner_is_export(row->owner, &len) ? NULL : strchr(row->owner, '@');
}

/* The files are looked at with the mutex free, because a file system may block. */
static bool is_crashed(struct bl_contest *c)
{
	struct bizlock *b = c->client;
	const char *process = process_of(c->row);
	bool over;

	if (!process || !*b->life.dir || strcmp(process, b->process.suffix) == 0)
		return false;
	bl_unlock(b);
	over = bl_life_is_over(&b->life, process);
	bl_lock(b);
	return over;
}

/* Ends the lease of this very hold, and of no later one. A row that a transaction has fenced stays
 * as it is: the statement would wait for the transaction. */
static int end_lease(struct bl_contest *c, struct bl_session *s)
{
	struct bl_key key = c->blocker->call.key;
	struct bl_ref hold = {.key = &key, .owner = c->row->owner, .fence = c->row->fence};
	bool found = true, fenced = false;
	int rc = BIZLOCK_OK;

	key.slot = 0;
	if (c->row->shares)
		rc = bl_shared_find(s, &key, hold.fence, &found, c->call->err);
	if (rc == BIZLOCK_OK && found)
		rc = bl_lock_probe(s, &key, &fenced, c->call->err);
	if (rc == BIZLOCK_OK && found && !fenced)
		rc = bl_lock_renew(s, hold, 0, &found, c->call->err);
	return rc == BIZLOCK_OK && !fenced ? BL_AGAIN : rc;
}

int bl_crashed_end_lease(struct bl_contest *c)
{
	struct bl_conn *conn;
	int rc;

	/* A server that goes on showing a lease that was ended is not asked for ever. */
	if (c->row->fence == c->ended || c->locked || !is_crashed(c))
		return BIZLOCK_OK;
	BL_TRACE_WAIT(c, "%s is gone, by its file in %s: ends its lease", c->row->owner,
	              c->client->life.dir);
	rc = bl_attempt_borrow(c, &conn);
	if (rc != BIZLOCK_OK)
		return rc;
	bl_unlock(c->client);
	rc = end_lease(c, &conn->session);
	bl_lock(c->client);
	bl_pool_put(&c->client->pool, conn);
	if (rc == BL_AGAIN)
		c->ended = c->row->fence;
	return rc;
}
