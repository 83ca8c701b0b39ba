#include "check.h"

#include <bizlock.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"

/* The holds of one key, in the order in which their grants returned. best[i]: of the first i + 1 of
 * them the one with the largest fence; alone[i]: of those who held it alone, or NULL. */
struct grants {
	const struct chaos_hold **holds, **best, **alone;
	size_t n;
};

static void found(struct chaos_verdict *v, struct chaos_violation violation)
{
	if (v->counts[violation.rule]++ < CHAOS_SHOWN_EACH)
		v->violations[v->shown++] = violation;
}

static void found_in(struct chaos_verdict *v, enum chaos_rule rule, int64_t at_us,
                     const struct chaos_hold *hold, const struct chaos_hold *other)
{
	found(v, (struct chaos_violation){.rule = rule,
	                                  .at_us = at_us,
	                                  .process = hold->process,
	                                  .key = hold->key,
	                                  .fence = hold->fence,
	                                  .other = other ? other->fence : 0});
}

static void *room(size_t n, size_t size)
{
	void *p = calloc(n + 1, size);

	if (!p)
		die("out of memory");
	return p;
}

/* ---- holds ----------------------------------------------------------------- */

static bool was_believed(const struct chaos_hold *hold)
{
	return hold->until_us > hold->from_us;
}

/* When its process believed in it for the last time. */
static int64_t believed_until(const struct chaos_hold *hold)
{
	if (hold->given_us && hold->given_us < hold->until_us)
		return hold->given_us;
	return hold->until_us;
}

/* Those who share a key are in nobody's way but that of one who holds it alone. */
static bool exclude(const struct chaos_hold *a, const struct chaos_hold *b)
{
	return a->limit == 0 || b->limit == 0;
}

/* Of those whose grants had returned before that moment, and whom this hold excludes. */
static const struct chaos_hold *best_before(const struct grants *g, const struct chaos_hold *hold,
                                            int64_t us)
{
	const struct chaos_hold *const *best = hold->limit ? g->alone : g->best;
	size_t low = 0, high = g->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (g->holds[middle]->from_us < us)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? best[low - 1] : NULL;
}

/* Those of the n that this one still finds believed in. Returns how many. */
static size_t drop_over(const struct chaos_hold **holds, size_t n, const struct chaos_hold *hold)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++)
		if (believed_until(holds[i]) > hold->from_us)
			holds[left++] = holds[i];
	return left;
}

static void check_beside(const struct chaos_hold *const *others, size_t n,
                         const struct chaos_hold *hold, struct chaos_verdict *v)
{
	for (size_t i = 0; i < n; i++)
		if (exclude(others[i], hold)) {
			found_in(v, CHAOS_OVERLAP, hold->from_us, hold, others[i]);
			return;
		}
	if (hold->limit && n >= hold->limit)
		found_in(v, CHAOS_CROWD, hold->from_us, hold, others[0]);
}

static void check_overlaps(const struct grants *g, struct chaos_verdict *v)
{
	const struct chaos_hold **others = room(g->n, sizeof(*others));
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++) {
		if (!was_believed(g->holds[i]))
			continue;
		n = drop_over(others, n, g->holds[i]);
		check_beside(others, n, g->holds[i], v);
		others[n++] = g->holds[i];
	}
	free(others);
}

/* A hold may be lost before its process hears that it was granted. So the order in which grants
 * return is that of the grants only if both were believed in; otherwise one must have returned
 * before the other was asked for. Those who share a key may be granted in any order. */
static void check_fences(const struct grants *g, struct chaos_verdict *v)
{
	const struct chaos_hold *last = NULL, *alone = NULL;

	for (size_t i = 0; i < g->n; i++) {
		const struct chaos_hold *hold = g->holds[i], *before = hold->limit ? alone : last;

		if (!was_believed(hold))
			before = best_before(g, hold, hold->asked_us);
		if (before && before->fence >= hold->fence)
			found_in(v, CHAOS_FENCE_BACK, hold->from_us, hold, before);
		if (was_believed(hold) && (!last || hold->fence > last->fence))
			last = hold;
		if (was_believed(hold) && !hold->limit && (!alone || hold->fence > alone->fence))
			alone = hold;
	}
}

static void check_release(const struct grants *g, const struct chaos_hold *hold,
                          struct chaos_verdict *v)
{
	const struct chaos_hold *heir;

	if (!hold->given_us || hold->rc != BIZLOCK_OK)
		return;
	heir = best_before(g, hold, hold->given_us);
	if ((hold->told_us && hold->told_us < hold->given_us) ||
	    (heir && heir->fence > hold->fence && heir->from_us > hold->from_us))
		found_in(v, CHAOS_FALSE_RELEASE, hold->given_us, hold, heir);
}

/* Nobody breaks locks here. So a grant was forgotten, or somebody else got it too early. */
static void check_end(const struct chaos_hold *hold, struct chaos_verdict *v)
{
	int64_t heard_us = hold->told_us;

	if (!heard_us && hold->answered_us && hold->rc == BIZLOCK_LOST)
		heard_us = hold->answered_us;
	if (heard_us && heard_us < hold->ends_us)
		found_in(v, CHAOS_EARLY_LOSS, heard_us, hold, NULL);
}

static void check_loss(const struct chaos_hold *hold, const struct chaos_bounds *bounds,
                       int64_t end_us, struct chaos_verdict *v)
{
	int64_t until = hold->told_us ? hold->told_us : hold->given_us ? hold->given_us : end_us;

	if (hold->over_us && until > hold->over_us + bounds->told_us)
		found_in(v, CHAOS_LATE_LOSS, hold->over_us, hold, NULL);
}

/* ---- calls ----------------------------------------------------------------- */

static void found_call(struct chaos_verdict *v, enum chaos_rule rule, const struct chaos_call *call)
{
	found(v, (struct chaos_violation){.rule = rule,
	                                  .at_us = call->begun_us,
	                                  .process = call->process,
	                                  .key = call->key});
}

bool chaos_is_excused(enum chaos_what what, int rc)
{
	switch (what) {
	case CHAOS_ACQUIRE:
		return rc == BIZLOCK_OK || rc == BIZLOCK_TIMEOUT;
	case CHAOS_RELEASE:
		return rc == BIZLOCK_OK || rc == BIZLOCK_LOST;
	case CHAOS_CLOSE:
		break;
	}
	return rc == BIZLOCK_OK;
}

/* Nobody was granted anything for long before that, so nobody could have been answered: what may
 * have been committed is not known then, whatever the client does. */
static bool was_away(const struct chaos_history *h, const struct chaos_bounds *bounds,
                     int64_t at_us)
{
	int64_t last = 0;

	for (size_t i = 0; i < h->n_holds; i++)
		if (h->holds[i].from_us <= at_us && h->holds[i].from_us > last)
			last = h->holds[i].from_us;
	return last + bounds->away_us < at_us;
}

/* A fault that may keep a whole cluster up. A statement that hangs then keeps its row, and a table
 * that is locked its rows; who gives one back is told so. */
static bool is_kept_up(const struct chaos_history *h, const struct chaos_call *call)
{
	for (size_t i = 0; i < h->n_faults; i++)
		if (h->faults[i].excused_ms && h->faults[i].begun_us < call->ended_us &&
		    (!h->faults[i].mended_us || h->faults[i].mended_us > call->begun_us))
			return true;
	return false;
}

static bool is_unanswerable(const struct chaos_history *h, const struct chaos_bounds *bounds,
                            const struct chaos_call *call)
{
	if (call->what == CHAOS_RELEASE)
		return (call->rc == BIZLOCK_BUSY || call->rc == BIZLOCK_DB) && is_kept_up(h, call);
	return call->what == CHAOS_ACQUIRE &&
	       (call->rc == BIZLOCK_UNKNOWN || call->rc == BIZLOCK_CONN) &&
	       was_away(h, bounds, call->ended_us);
}

static void check_call(const struct chaos_history *h, const struct chaos_call *call,
                       const struct chaos_bounds *bounds, struct chaos_verdict *v)
{
	int64_t end_us = h->end_us;
	int64_t bound = call->what == CHAOS_ACQUIRE
	                        ? (int64_t)call->wait_ms * 1000 + bounds->acquire_us
	                        : bounds->release_us;
	int64_t took = (call->ended_us ? call->ended_us : end_us) - call->begun_us;
	bool away = call->ended_us && is_unanswerable(h, bounds, call);

	if (took > bound + (away ? bounds->release_us : 0))
		found_call(v, call->ended_us ? CHAOS_LATE_ANSWER : CHAOS_UNANSWERED, call);
	if (call->ended_us && !away && !chaos_is_excused(call->what, call->rc))
		found_call(v, CHAOS_ERROR, call);
}

/* ---- keys that nobody gets ---------------------------------------------------- */

/* For how long of [from, to) a call was waiting for the key. */
static int64_t wanted_us(const struct chaos_history *h, unsigned key, int64_t from, int64_t to)
{
	int64_t sum = 0;

	for (size_t i = 0; i < h->n_calls && from < to; i++) {
		const struct chaos_call *call = &h->calls[i];
		int64_t end = call->ended_us && call->ended_us < to ? call->ended_us : to;
		int64_t begin = call->begun_us > from ? call->begun_us : from;

		if (call->what != CHAOS_ACQUIRE || call->key != key || begin >= end)
			continue;
		sum += end - begin;
		from = end;
	}
	return sum;
}

/* Of a time without a grant counts what comes after a fault that may keep the whole cluster up. */
static int64_t after_excuses(const struct chaos_history *h, int64_t from, int64_t to)
{
	for (size_t i = 0; i < h->n_faults; i++) {
		const struct chaos_fault *fault = &h->faults[i];
		int64_t end = (fault->mended_us ? fault->mended_us : h->end_us) +
		              (int64_t)fault->excused_ms * 1000;

		if (fault->excused_ms && fault->begun_us < to && end > from)
			from = end;
	}
	return from;
}

static void check_gap(const struct chaos_history *h, const struct chaos_bounds *bounds,
                      unsigned key, int64_t from, int64_t to, struct chaos_verdict *v)
{
	from = after_excuses(h, from, to);
	if (to - from > bounds->stuck_us && wanted_us(h, key, from, to) > bounds->stuck_us)
		found(v, (struct chaos_violation){
		                 .rule = CHAOS_STUCK, .at_us = from, .key = (uint16_t)key});
}

static void check_gaps(const struct chaos_history *h, const struct chaos_bounds *bounds,
                       const struct grants *g, unsigned key, struct chaos_verdict *v)
{
	int64_t since = h->n_calls ? h->calls[0].begun_us : h->end_us;

	for (size_t i = 0; i < g->n; i++) {
		check_gap(h, bounds, key, since, g->holds[i]->from_us, v);
		if (g->holds[i]->from_us > since)
			since = g->holds[i]->from_us;
		if (believed_until(g->holds[i]) > since)
			since = believed_until(g->holds[i]);
	}
	check_gap(h, bounds, key, since, h->end_us, v);
}

/* ---- all ------------------------------------------------------------------- */

static int by_return(const void *a, const void *b)
{
	const struct chaos_hold *x = *(const struct chaos_hold *const *)a;
	const struct chaos_hold *y = *(const struct chaos_hold *const *)b;

	return (x->from_us > y->from_us) - (x->from_us < y->from_us);
}

static const struct chaos_hold *better(const struct chaos_hold *a, const struct chaos_hold *b)
{
	return a && a->fence >= b->fence ? a : b;
}

static struct grants grants_of(const struct chaos_history *h, unsigned key)
{
	struct grants g = {room(h->n_holds, sizeof(*g.holds)), room(h->n_holds, sizeof(*g.best)),
	                   room(h->n_holds, sizeof(*g.alone)), 0};

	for (size_t i = 0; i < h->n_holds; i++)
		if (h->holds[i].key == key)
			g.holds[g.n++] = &h->holds[i];
	qsort(g.holds, g.n, sizeof(*g.holds), by_return);
	for (size_t i = 0; i < g.n; i++) {
		g.best[i] = better(i > 0 ? g.best[i - 1] : NULL, g.holds[i]);
		g.alone[i] = i > 0 ? g.alone[i - 1] : NULL;
		if (!g.holds[i]->limit)
			g.alone[i] = better(g.alone[i], g.holds[i]);
	}
	return g;
}

static void check_key(const struct chaos_history *h, const struct chaos_bounds *bounds,
                      unsigned key, struct chaos_verdict *v)
{
	struct grants g = grants_of(h, key);

	check_overlaps(&g, v);
	check_fences(&g, v);
	for (size_t i = 0; i < g.n; i++) {
		check_release(&g, g.holds[i], v);
		check_end(g.holds[i], v);
		check_loss(g.holds[i], bounds, h->end_us, v);
	}
	check_gaps(h, bounds, &g, key, v);
	free(g.holds);
	free(g.best);
	free(g.alone);
}

struct chaos_verdict chaos_check(const struct chaos_history *h, const struct chaos_bounds *bounds)
{
	struct chaos_verdict v = {.shown = 0};

	for (size_t i = 0; i < h->n_calls; i++)
		check_call(h, &h->calls[i], bounds, &v);
	for (unsigned key = 0; key < h->keys; key++)
		check_key(h, bounds, key, &v);
	return v;
}
