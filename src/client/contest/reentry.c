#include "client/contest/reentry.h"

#include "client/hold/change.h"
#include "client/hold/hold.h"
#include "store/session/errclass.h"

static const char *mixed(const struct bl_hold *h, uint32_t flags)
{
	if (h->key.slot > 0 && !(flags & BIZLOCK_SHARED))
		return "this owner shares it: release that first, and then acquire it alone";
	return NULL;
}

static bool is_valid(const struct bl_hold *h, bl_time now)
{
	return h->state == BL_HOLD_HELD && h->expires > now;
}

static bool deepen_in_memory(struct bl_hold *h, uint32_t flags, bl_time now)
{
	bool local = (h->flags | flags) & BIZLOCK_LOCAL_REENTRY && is_valid(h, now);

	h->depth += local;
	return local;
}

/* A hold that no call is at work on. */
static struct bl_hold *idle_hold(struct bizlock *b, bizlock_key key, const char *owner)
{
	struct bl_hold *h = b->state == BL_CLIENT_OPEN ? bl_held_named(&b->held, key, owner) : NULL;

	return h && !h->busy ? h : NULL;
}

bool bl_client_deeper(struct bizlock *b, bizlock_key key, const char *owner, uint32_t lease_ms,
                      uint32_t flags, bl_time now, bizlock_grant *ret)
{
	struct bl_hold *h;
	bool done;

	bl_lock(b);
	h = idle_hold(b, key, owner);
	done = h && h->depth < BIZLOCK_DEPTH_MAX && !mixed(h, flags) &&
	       deepen_in_memory(h, flags, now);
	if (done && (h->flags & ~flags & BIZLOCK_NO_RENEW || flags & ~h->flags & BIZLOCK_RENEW))
		bl_hold_demand(b, h, &(struct bl_request){.flags = flags});
	if (done) {
		bl_hold_grant(h, lease_ms ? lease_ms : b->config.lease_ms, false, ret);
		bl_count(&b->numbers, BL_COUNT_REENTERED);
		BL_TRACE_HOLD(b, h, "re-entered, depth %u, in memory", h->depth);
	}
	bl_unlock(b);
	return done;
}

bool bl_client_shallower(struct bizlock *b, bizlock_key key, const char *owner, bl_time now,
                         uint32_t *ret_depth)
{
	struct bl_hold *h;
	bool done;

	bl_lock(b);
	h = idle_hold(b, key, owner);
	done = h && h->stored < h->depth && is_valid(h, now);
	if (done) {
		*ret_depth = --h->depth;
		BL_TRACE_HOLD(b, h, "release of a level, in memory: done");
	}
	bl_unlock(b);
	return done;
}

int bl_reentry_refused(struct bl_call *call, struct bl_hold *h)
{
	bl_hold_lost(call, h);
	return bl_err_set(call->err, BIZLOCK_LOST,
	                  "an earlier hold was lost: release its %u levels first (%s)", h->depth,
	                  call->err->msg);
}

int bl_reenter(struct bl_call *call, struct bl_hold *h, const struct bl_request *request)
{
	struct bl_tried tried;
	uint32_t lease_ms, row_ms;
	bool matched;
	int rc;

	if (h->state != BL_HOLD_HELD)
		return bl_reentry_refused(call, h);
	if (mixed(h, request->flags))
		return bl_err_set(call->err, BIZLOCK_MISUSE, "%s", mixed(h, request->flags));
	if (h->depth >= BIZLOCK_DEPTH_MAX)
		return bl_err_set(call->err, BIZLOCK_LIMIT, "re-entered %u times", h->depth);
	/* Other keys of a set may keep the call waiting, even if this key needs no statement. */
	bl_hold_let_renew(call->client, h);
	if (!request->min_hold_ms && deepen_in_memory(h, request->flags, bl_now()))
		return BIZLOCK_OK;
	lease_ms = bl_hold_lease_now(h, request->lease_ms);
	row_ms = request->min_hold_ms > lease_ms ? request->min_hold_ms : lease_ms;
	rc = bl_hold_change_depth(call, h, h->depth + 1, row_ms, call->deadline, &matched, &tried);
	if (h->state != BL_HOLD_HELD || (rc == BIZLOCK_OK && !matched))
		return bl_hold_lost(call, h);
	if (rc == BIZLOCK_DB && bl_table_locked(call->err) && !request->once)
		return call->err->code = BIZLOCK_TIMEOUT;
	if (rc != BIZLOCK_OK)
		return rc;
	bl_hold_confirm(call->client, h, tried.sent, lease_ms);
	h->stored = ++h->depth;
	return rc;
}
