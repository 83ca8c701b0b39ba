/* Breaking a lock: an operator's force-unlock. */
#include <inttypes.h>

#include "client/conn/retry.h"
#include "client/hold/hold.h"
#include "client/ops/ops.h"
#include "store/errclass.h"
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
	int rc = bl_shared_find(s, &sharer->key, sharer->fence, &sharer->found, err);

	return rc == BIZLOCK_DB && bl_no_table(err) ? BIZLOCK_OK : rc;
}

/* Nobody has the plain lock with that fence. If one that shares the key has it, the call is on its
 * row from here on. A user who may not read the table of shared locks has none. */
static int look_for_sharer(struct bl_call *call, uint64_t fence, bool *ret_found)
{
	struct sharer sharer = {.key = call->key, .fence = fence};
	struct bl_err kept = *call->err;
	int rc = bl_read(call, find_sharer, &sharer);

	*ret_found = rc == BIZLOCK_OK && sharer.found;
	if (*ret_found) {
		call->key = sharer.key;
		bl_bell_name(call->bell, call->client->shared_bell_seed, &call->key);
	} else if (rc == BIZLOCK_OK || rc == BIZLOCK_DB) {
		rc = kept.code;
		*call->err = kept;
	}
	return rc;
}

/* Of its own holds a client need not ask which lock is meant. */
static bool holds_shared(const struct bl_call *call, uint64_t fence)
{
	struct bl_key key = call->key;

	key.shared = true;
	return bl_held_with_fence(&call->client->held, &key, fence) &&
	       !bl_held_with_fence(&call->client->held, &call->key, fence);
}

int bl_client_break(struct bl_call *call, uint64_t seen_fence)
{
	bool found = false;
	int rc;

	bl_lock(call->client);
	rc = holds_shared(call, seen_fence) ? nobody_holds(call, seen_fence)
	                                    : break_lock(call, seen_fence);
	if (rc == BIZLOCK_LOST || rc == BIZLOCK_BUSY)
		rc = look_for_sharer(call, seen_fence, &found);
	if (found)
		rc = break_lock(call, seen_fence);
	bl_unlock(call->client);
	return rc;
}
