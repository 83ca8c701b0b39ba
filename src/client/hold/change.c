#include "client/hold/change.h"

#include "client/hold/hold.h"
#include "store/session/errclass.h"

/* A statement waits, for a second, for a row that a transaction has fenced, and the hold's owner
 * with it. So a call that may meet such a row looks first. *ret_gone: the row is gone, or another
 * hold's. */
static int look_first(struct bl_call *call, struct bl_session *s, struct bl_hold *h, bool *ret_gone)
{
	struct bl_row row = {.found = false};
	bool locked = false;
	int rc = bl_lock_probe(s, &call->key, &locked, call->err);

	if (rc == BIZLOCK_OK && locked)
		rc = bl_lock_find(s, &call->key, h->fence, &row, call->err);
	if (rc != BIZLOCK_OK)
		return rc;
	h->fenced = locked;
	h->told &= locked;
	*ret_gone = locked && (!row.found || row.fence != h->fence);
	if (locked && !*ret_gone)
		return bl_err_set(call->err, BIZLOCK_BUSY, "fenced by a transaction that is open");
	return rc;
}

/* Commits wait, up to 20 s, while a cluster decides whether to expel a member. The row may be
 * locked by a statement of ours, lost or not, that waits in such a commit. */
static bool may_stall(const struct bizlock *b, const struct bl_hold *h)
{
	return bl_server_in_cluster(&b->server) && !h->told;
}

int bl_hold_try(struct bl_call *call, struct bl_hold *h, struct bl_conn *conn, bl_statement *fn,
                void *arg, struct bl_tried *tried, bool *ret_sent)
{
	bool gone = false;
	int rc = BIZLOCK_OK;

	if (h->fenced) {
		bl_unlock(call->client);
		rc = look_first(call, &conn->session, h, &gone);
		bl_lock(call->client);
		tried->stalls = may_stall(call->client, h);
	}
	*ret_sent = rc == BIZLOCK_OK && !gone;
	if (!*ret_sent)
		return rc;
	rc = bl_try(call, conn, fn, arg, tried);
	/* The statement may have waited for a fence that nobody has told us of. */
	if (rc != BIZLOCK_OK && bl_waited_in_vain(call->err) && !bl_table_locked(call->err))
		h->fenced = true;
	return rc;
}

int bl_hold_change(struct bl_call *call, struct bl_hold *h, bool keeps, bl_time unlocked_by,
                   bl_statement *fn, void *arg, struct bl_tried *ret)
{
	struct bl_conn *conn;
	unsigned attempt = 0;
	bool sent;
	int rc;

	*ret = (struct bl_tried){.repeated = false};
	do {
		rc = bl_lend(call, &conn);
		if (rc != BIZLOCK_OK)
			continue;
		rc = bl_hold_try(call, h, conn, fn, arg, ret, &sent);
		bl_pool_put(&call->client->pool, conn);
	} while (rc != BIZLOCK_OK && !(keeps && h->state != BL_HOLD_HELD) &&
	         !(bl_table_locked(call->err) && bl_passed(unlocked_by)) &&
	         bl_try_again(call, ret, attempt++));
	return bl_tried_rc(call, ret, rc);
}

struct depth {
	struct bl_ref ref;
	uint32_t depth, lease_ms;
	bool *ret_matched;
};

static int write_depth(struct bl_session *s, void *arg, struct bl_err *err)
{
	const struct depth *d = arg;

	return bl_lock_depth(s, d->ref, d->depth, d->lease_ms, d->ret_matched, err);
}

int bl_hold_change_depth(struct bl_call *call, struct bl_hold *h, uint32_t depth, uint32_t lease_ms,
                         bl_time unlocked_by, bool *ret_matched, struct bl_tried *ret)
{
	struct depth d = {bl_hold_ref(call, h), depth, lease_ms, ret_matched};

	*ret_matched = false;
	return bl_hold_change(call, h, true, unlocked_by, write_depth, &d, ret);
}
