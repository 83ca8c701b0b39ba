#include "client/request/verify.h"

#include <inttypes.h>

#include "client/conn/retry.h"
#include "client/hold/hold.h"
#include "core/lease.h"
#include "store/shared/sharers.h"

struct search {
	struct bl_ref ref;
	struct bl_row row;
};

static int find_row(struct bl_session *s, void *arg, struct bl_err *err)
{
	struct search *f = arg;

	return bl_lock_find(s, f->ref.key, f->ref.fence, &f->row, err);
}

static int verify_hold(struct bl_call *call, struct bl_hold *h)
{
	bl_time sent = bl_now(), before = h->expires;
	struct search f = {.ref = bl_hold_ref(call, h)};
	const struct bl_row *row = &f.row;
	int rc;

	if (h->state != BL_HOLD_HELD)
		return bl_hold_lost(call, h);
	bl_hold_let_renew(call->client, h);
	rc = bl_read(call, find_row, &f);
	if (rc != BIZLOCK_OK)
		return rc;
	if (h->state != BL_HOLD_HELD || !row->found || row->fence != h->fence || row->left_us <= 0)
		return bl_hold_lost(call, h);
	if (h->expires == before) { /* else a renewal knows better by now */
		h->expires = bl_lease_end(sent, bl_hold_sure_us(call->client, h, row->left_us));
		h->expires = bl_earlier(h->expires, h->until);
		bl_worker_by(&call->client->loss_watch.worker, h->expires);
	}
	return rc;
}

int bl_client_verify(struct bl_call *call)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;
	int rc;

	bl_lock(b);
	h = bl_hold_begin_held(call, &rc);
	if (h) {
		rc = verify_hold(call, h);
		bl_hold_done(b, h);
	}
	bl_unlock(b);
	return rc;
}

struct fence_search {
	struct bl_key *key; /* its slot is set once it is known */
	uint64_t fence;
	struct bl_row row;
};

static int find_fence(struct bl_session *s, void *arg, struct bl_err *err)
{
	struct fence_search *f = arg;
	bool found; /* else the key stays in slot 0, and its row says who is there */
	int rc = bl_shared_find(s, f->key, f->fence, &found, err);

	return rc == BIZLOCK_OK ? bl_lock_find(s, f->key, f->fence, &f->row, err) : rc;
}

/* A row without an owner rests. A row of depth 0 is a place in line: its owner waits for sharers to
 * leave. */
static bool is_held(const struct bl_row *row)
{
	return row->found && row->owner[0] && row->depth > 0 && row->left_us > 0;
}

int bl_verify_find(struct bl_call *call, uint64_t fence, struct bl_row *ret)
{
	struct fence_search f = {.key = &call->key, .fence = fence};
	char holder[BL_ROW_TEXT_MAX] = "nobody has the lock";
	int rc = bl_read(call, find_fence, &f);

	if (rc != BIZLOCK_OK)
		return rc;
	if (is_held(&f.row) && f.row.fence == fence) {
		*ret = f.row;
		return BIZLOCK_OK;
	}
	if (is_held(&f.row))
		bl_row_describe(&f.row, holder, sizeof(holder));
	return bl_err_set(call->err, BIZLOCK_LOST, "nobody holds it with fence %" PRIu64 "; %s",
	                  fence, holder);
}

int bl_client_verify_fence(struct bl_call *call, uint64_t fence)
{
	struct bl_row row;
	int rc;

	bl_lock(call->client);
	rc = bl_verify_find(call, fence, &row);
	bl_unlock(call->client);
	return rc;
}
