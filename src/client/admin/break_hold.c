/* Breaking a lock: an operator's force-unlock. */
#include <inttypes.h>

#include "client/admin/admin.h"
#include "client/conn/retry.h"
#include "client/hold/hold.h"
#include "store/session/kill.h"
#include "store/shared/sharers.h"

struct breaking {
	struct bl_call *call; /* on the key; its slot is set once it is known */
	struct bl_ref ref;
	uint64_t keeper; /* the server's number of the connection that has the doorbell */
	bool there;      /* the row was there at the first look */
	bool matched;
};

/* Finds the slot of a sharer by its fence. */
static int find_slot(struct bl_session *s, void *arg, struct bl_err *err)
{
	struct breaking *b = arg;
	bool found; /* else the key stays in slot 0 */

	return bl_shared_find(s, &b->call->key, b->ref.fence, &found, err);
}

static int break_row(struct bl_session *s, void *arg, struct bl_err *err)
{
	struct breaking *b = arg;

	return bl_lock_break(s, b->ref, &b->matched, err);
}

static int kill_keeper(struct bl_session *s, void *arg, struct bl_err *err)
{
	const struct breaking *b = arg;

	return bl_kill_keeper(s, bl_call_bell(b->call), b->keeper, err);
}

/* Nothing was broken: why? */
static int not_broken(const struct breaking *b, const struct bl_tried *tried)
{
	struct bl_call *call = b->call;
	struct bl_row row;
	char holder[BL_ROW_TEXT_MAX];
	int rc = bl_look(call, &row);

	if (rc != BIZLOCK_OK)
		return rc;
	if (row.found && row.left_us > 0) {
		bl_row_describe(&row, holder, sizeof(holder));
		return bl_err_set(call->err, BIZLOCK_BUSY, "%s", holder);
	}
	/* The row is gone, and a reply was lost: this call has broken the hold. */
	if (b->there && tried->repeated)
		return BIZLOCK_OK;
	return bl_err_set(call->err, BIZLOCK_LOST,
	                  "nobody holds it with fence %" PRIu64 " any more", b->ref.fence);
}

/* If the broken hold is this client's own, it is lost at once. The server might not tell: the reply
 * to a release is lost with the connection that is killed below. If this call did not see who
 * removed the row, a call that is at work on the hold may have done so, and the hold is left to
 * that call. */
static void lose_own(const struct breaking *b)
{
	struct bizlock *client = b->call->client;

	for (struct bl_hold *h = bl_held_of_key(&client->held, &b->call->key); h;
	     h = bl_held_next_of_key(h))
		if (h->state == BL_HOLD_HELD && h->fence == b->ref.fence &&
		    (b->matched || !h->busy))
			bl_hold_lose(client, h, BL_LOSS_BROKEN);
}

/* A holder that has to be broken most often hangs. It would keep the doorbell, and its waiters
 * would sleep to the end of the lease they saw: so its connection is killed. If the KILL fails,
 * they do sleep that long. */
static int break_lock(struct breaking *b)
{
	struct bl_tried tried;
	struct bl_row row;
	int rc = bl_read(b->call, find_slot, b);

	if (rc == BIZLOCK_OK)
		rc = bl_look(b->call, &row);
	b->there = rc == BIZLOCK_OK && row.found && row.fence == b->ref.fence;
	if (rc == BIZLOCK_OK)
		rc = bl_run(b->call, break_row, b, &tried);
	if (rc == BIZLOCK_OK && !b->matched)
		rc = not_broken(b, &tried);
	if (rc != BIZLOCK_OK)
		return rc;
	lose_own(b);
	b->keeper = row.bell;
	if (!b->there || !b->keeper)
		return BIZLOCK_OK;
	BL_TRACE(&b->call->client->trace, &b->call->key, NULL,
	         "KILL %" PRIu64 ", the connection that has the doorbell of what was broken",
	         b->keeper);
	bl_run(b->call, kill_keeper, b, NULL);
	return BIZLOCK_OK;
}

int bl_client_break(struct bl_call *call, uint64_t seen_fence)
{
	struct breaking b = {.call = call, .ref = {.key = &call->key, .fence = seen_fence}};
	int rc;

	if (call->client->bells)
		b.ref.bell = bl_call_bell(call);
	bl_lock(call->client);
	rc = break_lock(&b);
	bl_unlock(call->client);
	return rc;
}
