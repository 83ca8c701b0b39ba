/* Breaking a lock: an operator's force-unlock. */
#include <inttypes.h>

#include "client/conn/retry.h"
#include "client/hold/hold.h"
#include "client/ops/ops.h"
#include "store/kill.h"
#include "store/shared.h"

struct breaking {
	struct bl_ref ref;
	uint64_t keeper; /* the server's number of the connection that has the doorbell */
	const char *bell;
	bool there; /* when it was looked for first */
	bool matched;
};

static int break_row(struct bl_session *s, void *arg, struct bl_err *err)
{
	struct breaking *b = arg;

	return bl_lock_break(s, b->ref, &b->matched, err);
}

static int kill_keeper(struct bl_session *s, void *arg, struct bl_err *err)
{
	const struct breaking *b = arg;

	return bl_kill_keeper(s, b->bell, b->keeper, err);
}

static int nobody_holds(struct bl_call *call, uint64_t fence)
{
	return bl_err_set(call->err, BIZLOCK_LOST,
	                  "nobody holds it with fence %" PRIu64 " any more", fence);
}

/* Nothing was broken: why? */
static int not_broken(struct bl_call *call, const struct breaking *b, const struct bl_tried *tried)
{
	struct bl_row row;
	char holder[BL_ROW_TEXT_MAX];
	int rc = bl_look(call, &row);

	if (rc != BIZLOCK_OK)
		return rc;
	if (row.found && row.left_us > 0) {
		bl_row_describe(&row, holder, sizeof(holder));
		return bl_err_set(call->err, BIZLOCK_BUSY, "%s", holder);
	}
	/* Gone, and a reply was lost on the way: it was this call that broke it. */
	if (b->there && tried->repeated)
		return BIZLOCK_OK;
	return nobody_holds(call, b->ref.fence);
}

/* A hold of this client's own that was broken is lost at once. The server might not tell: the
 * reply to a release is lost with the connection that is killed below. Where this call did not
 * see who removed the row, a call that is at work on the hold may have done so. */
static void lose_own(struct bl_call *call, const struct breaking *b)
{
	struct bizlock *client = call->client;

	for (struct bl_hold *h = bl_held_of_key(&client->held, &call->key); h;
	     h = bl_held_next_of_key(h))
		if (h->state == BL_HOLD_HELD && h->fence == b->ref.fence &&
		    (b->matched || !h->busy))
			bl_hold_lose(client, h, BL_LOSS_BROKEN);
}

/* A holder that has to be broken most often hangs: it would keep the doorbell, and those that
 * wait at it would sleep to the end of the lease they saw. If the KILL fails, that is what they
 * do. */
static int break_lock(struct bl_call *call, uint64_t seen_fence)
{
	struct breaking b = {.ref = {.key = &call->key, .fence = seen_fence}, .bell = call->bell};
	struct bl_tried tried;
	struct bl_row row;
	int rc = bl_look(call, &row);

	b.ref.bell = call->client->bells ? call->bell : NULL;
	b.there = rc == BIZLOCK_OK && row.found && row.fence == seen_fence;
	if (rc == BIZLOCK_OK)
		rc = bl_run(call, break_row, &b, &tried);
	if (rc == BIZLOCK_OK && !b.matched)
		rc = not_broken(call, &b, &tried);
	if (rc != BIZLOCK_OK)
		return rc;
	lose_own(call, &b);
	b.keeper = row.bell;
	if (b.there && b.keeper)
		bl_run(call, kill_keeper, &b, NULL);
	return BIZLOCK_OK;
}

struct sharer {
	struct bl_key key;
	uint64_t fence;
	bool found;
};

static int find_sharer(struct bl_session *s, void *arg, struct bl_err *err)
{
	struct sharer *sharer = arg;

	return bl_shared_find(s, &sharer->key, sharer->fence, &sharer->found, err);
}

int bl_client_break(struct bl_call *call, uint64_t seen_fence)
{
	struct sharer sharer = {.key = call->key, .fence = seen_fence};
	int rc;

	bl_lock(call->client);
	rc = bl_read(call, find_sharer, &sharer);
	if (rc == BIZLOCK_OK && sharer.found)
		call->key = sharer.key;
	if (rc == BIZLOCK_OK)
		rc = break_lock(call, seen_fence);
	bl_unlock(call->client);
	return rc;
}
