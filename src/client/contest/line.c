#include "client/contest/line.h"

#include "client/contest/handoff.h"
#include "client/contest/share.h"

static bool is_first(const struct bl_contest *c)
{
	return bl_queue_first(c->queue) == &c->place;
}

/* false: out of memory. */
static bool join(struct bl_contest *c, const struct bl_key *key)
{
	c->place.key = key;
	c->queue = bl_queue_join(&c->client->queues, &c->place);
	if (c->queue && !is_first(c))
		BL_TRACE_WAIT(c, "waits behind %zu others of this client",
		              c->queue->places.count - 1);
	return c->queue;
}

int bl_line_join(struct bl_contest *c)
{
	c->place.whose = c;
	c->place.state = c->wait.bells && c->n == 1 ? BL_PLACE_WAITS : BL_PLACE_ASKS;
	c->place.alone = !c->among;
	c->place.along = c->in_queue && c->unsure; /* it must look for a row that may be there */
	if (!c->in_queue || join(c, &c->call->key))
		return BIZLOCK_OK;
	return bl_err_set(c->call->err, BIZLOCK_NOMEM, "out of memory");
}

/* Outside of the queue, a release would wake thousands of requests, and one of them could have the
 * key. It leaves that queue when another key is in its way: nobody waits for a set that waits. It
 * stands in no queue while a sharer is in its way: that sharer may wait for an owner that wants to
 * share the lock, too. Without memory it does without a queue. */
bool bl_line_move(struct bl_contest *c)
{
	const struct bl_row *row = c->row;
	const struct bl_key *key = &c->blocker->call.key;

	if (!c->op || c->n == 1)
		return false;
	if (row->left_us > 0 || row->locked || row->bell_by) {
		if (c->place.key != key || row->shares)
			bl_line_leave(c);
		if (!c->queue && row->left_us > 0 && !row->shares)
			join(c, key);
	}
	return c->queue && !is_first(c);
}

int bl_line_stand(struct bl_contest *c)
{
	int rc;

	if (c->place.along || c->place.aside || is_first(c))
		return bl_handoff_hope(c);
	rc = bl_call_check(c->call);
	if (rc != BIZLOCK_OK)
		return rc;
	c->parked_until = c->wait.end;
	if (!bl_passed(c->wait.end))
		return BL_PARKED;
	return bl_err_set(c->call->err, BIZLOCK_TIMEOUT, "%s",
	                  c->queue->holder ? c->queue->holder : "others of this process are first");
}

bool bl_line_leads(const struct bl_contest *c)
{
	return c->queue && c->place.key == &c->blocker->call.key &&
	       (!c->op || c->queue->places.count > 1);
}

bool bl_line_fall_back(struct bl_contest *c)
{
	if (!c->queue || !c->place.along || is_first(c) || c->unsure || c->members[0]->hold->bell)
		return false;
	c->place.along = false;
	return true;
}

void bl_line_take_along(struct bl_contest *c)
{
	struct bl_place *next = bl_place_next(&c->place);

	while (next && !next->along && bl_shared_without_limit(next->whose)) {
		next->along = true;
		bl_place_wake(next);
		next = bl_place_next(next);
	}
}

void bl_line_leave(struct bl_contest *c)
{
	if (c->queue)
		bl_queue_leave(&c->client->queues, c->queue, &c->place);
	c->queue = NULL;
}
