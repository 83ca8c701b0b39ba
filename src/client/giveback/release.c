#include "client/giveback/release.h"

#include <inttypes.h>
#include <stdlib.h>

#include "client/contest/handoff.h"
#include "client/hold/change.h"
#include "client/hold/drop.h"
#include "store/session/errclass.h"

/* ---- one level of one hold ------------------------------------------------------------------ */

/* One level less; in the row, too, if the row counts that level. */
static int shallower(struct bl_call *call, struct bl_hold *h)
{
	bool known = h->stored >= h->depth, matched = true;
	struct bl_tried tried;
	int rc = BIZLOCK_OK;

	bl_hold_let_renew(call->client, h);
	h->depth--;
	if (!known)
		return rc;
	rc = bl_hold_change_depth(call, h, h->depth, 0, call->io_deadline, &matched, &tried);
	h->stored = h->depth;
	return rc == BIZLOCK_OK && !matched ? bl_hold_lost(call, h) : rc;
}

/* A reply was lost, and the row is gone: within the lease it was this release that removed it.
 * Nobody else can have done so, but for a break at that moment. */
static bool was_ours(const struct bl_hold *h, const struct bl_tried *tried)
{
	return tried->repeated && bl_hold_left_ms(h) > 0;
}

int bl_release_last(struct bl_call *call, struct bl_hold *h, bool maybe)
{
	struct bl_drop drop = {.hold = h, .ref = bl_hold_ref(call, h)};
	int rc;

	if (!maybe && bl_handoff(call, h, &maybe))
		return BIZLOCK_OK;
	drop.tried.repeated = maybe;
	drop.rest_us = bl_hold_rest_us(h);
	drop.bell = h->bell;
	rc = bl_drop(call, &drop);
	h->bell = drop.bell;
	if (rc == BIZLOCK_OK && drop.matched && drop.rest_us <= 0)
		bl_slots_give_back(call->client, h->key.slot);
	if (rc != BIZLOCK_OK || drop.matched || was_ours(h, &drop.tried))
		return rc;
	return bl_hold_lost(call, h);
}

int bl_release_level(struct bl_call *call, struct bl_hold *h)
{
	if (h->state == BL_HOLD_HELD)
		return h->depth == 1 ? bl_release_last(call, h, false) : shallower(call, h);
	h->depth--;
	return bl_hold_lost(call, h);
}

/* The hold ends with its last level. If it is lost, or its row could not be removed, the janitor
 * cleans up: a release must not take long. */
int bl_release_end(struct bl_call *call, struct bl_hold *h, bool last, int rc)
{
	struct bizlock *b = call->client;

	if (rc == BIZLOCK_TIMEOUT) /* of the pool; to callers TIMEOUT means that they still have the
	                              level */
		rc = bl_err_set(call->err, BIZLOCK_CONN, "%s", call->err->msg);
	if (rc == BIZLOCK_OK && last) {
		bl_count(&b->numbers, BL_COUNT_RELEASED);
		BL_PROBE(released, &h->key, &h->owner, h->fence);
	}
	BL_TRACE_HOLD(b, h, "release of %s, fence %" PRIu64 ": %s",
	              last ? "the last level" : "a level", h->fence,
	              rc == BIZLOCK_OK ? "done" : call->err->msg);
	if (!last)
		bl_hold_done(b, h);
	else if (rc == BIZLOCK_OK && !h->bell)
		bl_hold_remove(b, h);
	else
		bl_hold_orphan(b, h, rc != BIZLOCK_OK);
	return rc;
}

int bl_client_release(struct bl_call *call, uint32_t *ret_depth)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;
	int rc;

	bl_lock(b);
	h = bl_hold_begin_held(call, &rc);
	if (h) {
		bool last = h->depth == 1;

		rc = bl_release_level(call, h);
		if (rc == BIZLOCK_OK)
			*ret_depth = last ? 0 : h->depth;
		rc = bl_release_end(call, h, last, rc);
	}
	bl_unlock(b);
	return rc;
}

/* ---- several holds: by one statement where that can be ---------------------------- */

struct all {
	struct bizlock *b;
	struct bl_member *members;
	size_t n;
	struct bl_err *first; /* the error of the first of the caller's keys that has one */
	size_t first_index;

	/* Holds that go by one statement; without memory for these, each goes alone. */
	struct bl_item *items;
	bool *dropped;
	struct bl_member **plain;
};

static void keep_error(struct all *a, const struct bl_member *m)
{
	if (m->rc == BIZLOCK_OK || (a->first->code != BIZLOCK_OK && a->first_index < m->index))
		return;
	*a->first = *m->call.err;
	a->first_index = m->index;
	bl_err_wrap(a->first, "%s/%s", m->call.key.type, m->call.key.id);
}

static void end_one(struct all *a, struct bl_member *m, bool last)
{
	m->rc = bl_release_end(&m->call, m->hold, last, m->rc);
	m->hold = NULL;
	keep_error(a, m);
}

bool bl_release_is_plain(const struct bl_hold *h)
{
	return h->state == BL_HOLD_HELD && h->depth == 1 && bl_hold_rest_us(h) == 0 && !h->fenced;
}

/* Holds whose doorbells are on the same connection: most often those of a set. */
static size_t gather_plain(struct all *a)
{
	size_t count = 0;

	for (size_t i = 0; i < a->n; i++) {
		struct bl_member *m = &a->members[i];

		if (!m->hold || m->hold->key.slot > 0 || !bl_release_is_plain(m->hold) ||
		    (count > 0 && m->hold->bell != a->plain[0]->hold->bell))
			continue;
		a->items[count] = (struct bl_item){.key = m->hold->key, .fence = m->hold->fence};
		if (m->call.client->bells)
			a->items[count].bell = bl_call_bell(&m->call);
		a->plain[count++] = m;
	}
	return count;
}

static void drop_gathered(struct all *a, size_t n)
{
	struct bl_call *call = &a->plain[0]->call;
	uint64_t bell = a->plain[0]->hold->bell;
	struct bl_tried tried;
	int rc = bl_drop_several(call, a->items, n, a->dropped, &bell, &tried);
	bool locked =
	        rc == BIZLOCK_DB && bl_waited_in_vain(call->err) && !bl_table_locked(call->err);
	bool too_large = rc == BIZLOCK_DB && bl_classify(call->err->native) == BL_CLASS_TOO_LARGE;

	for (size_t i = 0; i < n; i++) {
		struct bl_member *m = a->plain[i];

		m->hold->bell = bell;
		/* In three cases each goes alone, after a look: somebody has locked a row, which
		 * must not keep the others waiting; this row was not found; or the packet was too
		 * large. */
		if (locked || too_large ||
		    (rc == BIZLOCK_OK && !a->dropped[i] && !was_ours(m->hold, &tried))) {
			m->hold->fenced = true;
			continue;
		}
		m->rc = rc;
		end_one(a, m, true);
	}
}

static void release_members(struct all *a)
{
	size_t count;

	for (size_t i = 0; i < a->n; i++) {
		struct bl_member *m = &a->members[i];

		m->hold = bl_hold_begin_held(&m->call, &m->rc);
		keep_error(a, m);
	}
	while (a->items && a->dropped && a->plain && (count = gather_plain(a)) > 0)
		drop_gathered(a, count);
	for (size_t i = 0; i < a->n; i++) {
		struct bl_member *m = &a->members[i];
		bool last;

		if (!m->hold)
			continue;
		last = m->hold->depth == 1;
		m->rc = bl_release_level(&m->call, m->hold);
		end_one(a, m, last);
	}
}

void bl_client_release_all(struct bl_member *members, size_t n, struct bl_err *ret_first)
{
	struct all a = {.b = members->call.client, .members = members, .n = n, .first = ret_first};

	bl_err_clear(ret_first);
	if (bl_members_sort(members, n) != BIZLOCK_OK) {
		*ret_first = *members->call.err;
		return;
	}
	a.items = calloc(n, sizeof(*a.items));
	a.dropped = calloc(n, sizeof(*a.dropped));
	a.plain = calloc(n, sizeof(*a.plain));
	bl_lock(a.b);
	release_members(&a);
	bl_unlock(a.b);
	free(a.items);
	free(a.dropped);
	free(a.plain);
}
