/* What must be true after a run: what the client says, what the server has, and what a stranger
 * gets. */
#define _GNU_SOURCE 1
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cuts.h"
#include "patience.h"
#include "swarm.h"

/* Ends the check as failed unless cond is true. */
#define must(r, cond, ...)                                                                         \
	do {                                                                                       \
		if (!(cond))                                                                       \
			return wrong((r), __VA_ARGS__);                                            \
	} while (0)

static bool wrong(struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool wrong(struct run *r, const char *fmt, ...)
{
	struct swarm_answer answer = {r->rc, r->took_ms, r->errmsg};
	va_list args;

	va_start(args, fmt);
	swarm_say_why(r->why, sizeof(r->why), answer, fmt, args);
	va_end(args);
	return false;
}

/* The call must answer BIZLOCK_want. */
#define says(r, want, b, call)                                                                     \
	do {                                                                                       \
		int got_ = (call);                                                                 \
		must(r, got_ == BIZLOCK_##want, "%s: %s, not BIZLOCK_%s: %s", #call,               \
		     bizlock_err_name(got_), #want, bizlock_errmsg(b));                            \
	} while (0)

static bool unanswered(const struct run *r)
{
	return r->rc == BIZLOCK_UNKNOWN || r->rc == BIZLOCK_CONN;
}

/* ---- the answer ---------------------------------------------------------------- */

/* A call may end without an answer when the fault lasts, or when only a timeout as long as the
 * call's own could notice the fault. */
static bool may_be_unanswered(const struct run *r)
{
	switch (r->point->what) {
	case CUT_EVER:
	case SWALLOW_EVER:
		return true;
	case SWALLOW:
	case LATE:
		return r->scenario->kind != GAINS && r->fired;
	case CUT:
	case CUT_AGAIN: /* open() connects once only, as the manual says */
		return r->scenario->kind == OPENS && r->fired;
	default:
		return false;
	}
}

static bool answer_is_allowed(const struct run *r)
{
	if (r->rc == r->scenario->rc)
		return true;
	/* If the news that a doorbell is free is swallowed, it looks like a doorbell that is
	 * taken. */
	if (r->rc == BIZLOCK_TIMEOUT && r->scenario->kind == GAINS && r->theirs.there &&
	    r->theirs.left_us > 0)
		return !is_prompt(r->point->what);
	return unanswered(r) && may_be_unanswered(r);
}

static int64_t longest_ms(const struct run *r)
{
	bool gains = r->scenario->kind == GAINS;

	if (is_prompt(r->point->what))
		return PROMPT_MS;
	if (r->scenario->kind == CLOSES)
		return HASTY_IO_MS + SLACK_MS;
	return (gains ? r->wait_ms : HASTY_IO_MS) + 2 * HASTY_IO_MS + SLACK_MS;
}

static bool answer_is_right(struct run *r)
{
	must(r, answer_is_allowed(r), "a wrong answer");
	must(r, r->took_ms <= longest_ms(r), "it took longer than %lld ms",
	     (long long)longest_ms(r));
	if (r->scenario->kind == GAINS && r->rc == BIZLOCK_OK) {
		bool stale = r->theirs.there && r->theirs.left_us <= 0;

		must(r, r->grant.depth == 1 && r->grant.lease_ms == LEASE_MS, "depth %u, lease %u",
		     r->grant.depth, r->grant.lease_ms);
		must(r, r->grant.fence > r->fence, "fence %llu after %llu",
		     (unsigned long long)r->grant.fence, r->fence);
		must(r, (r->grant.flags == BIZLOCK_TOOK_OVER) == stale,
		     "flags %u, and the owner before had %s", r->grant.flags,
		     stale ? "never released" : "released, or there was none");
		r->fence = r->grant.fence;
	}
	return true;
}

/* ---- what the client holds ------------------------------------------------------ */

struct seen {
	const struct run *run;
	unsigned rows;
	bool same;
};

static int see(void *arg, const bizlock_info *info)
{
	struct seen *seen = arg;
	const struct run *r = seen->run;

	if (strcmp(info->biz_id, r->id) != 0)
		return 0;
	seen->rows++;
	seen->same = strcmp(info->owner, r->me) == 0 && info->fence == r->grant.fence;
	return 0;
}

static bool is_mine(struct run *r, const struct row *row)
{
	must(r, row->there, "the row is gone");
	must(r, !r->me[0] || strcmp(row->owner, r->me) == 0, "the row belongs to %s", row->owner);
	must(r, row->fence == r->grant.fence, "the row has fence %llu, not %llu", row->fence,
	     (unsigned long long)r->grant.fence);
	must(r, row->left_us > 0, "the row's lease is over by %lld us", -row->left_us);
	return true;
}

/* least, most: the depths that the row may have. */
static bool holds(struct run *r, unsigned least, unsigned most)
{
	struct seen seen = {.run = r};
	struct row before = row_now(r);
	int64_t left = bizlock_left_ms(r->b, KEY(r->id), ME);

	if (!is_mine(r, &before))
		return false;
	must(r, before.depth >= least && before.depth <= most, "depth %u in the row, not %u",
	     before.depth, least);
	must(r, left > 0 && left <= before.left_us / 1000, "%lld ms left, the row has %lld us",
	     (long long)left, before.left_us);
	says(r, OK, r->b, bizlock_verify(r->b, KEY(r->id), ME));
	says(r, OK, r->b, bizlock_each(r->b, "test", see, &seen));
	must(r, seen.rows == 1 && seen.same, "each() shows another hold");
	says(r, BUSY, r->stranger, take(r->stranger, r, "stranger", 0, NULL));
	return true;
}

static bool gives_back(struct run *r, unsigned depth)
{
	uint32_t left = 0;

	while (depth-- > 0) {
		says(r, OK, r->b, bizlock_release(r->b, KEY(r->id), ME, &left));
		must(r, left == depth, "%u levels left, not %u", left, depth);
	}
	must(r, !row_now(r).there, "a row is left after the release");
	return true;
}

static bool holds_nothing(struct run *r)
{
	must(r, bizlock_left_ms(r->b, KEY(r->id), ME) <= 0, "left_ms() believes in a hold");
	says(r, NOT_OWNER, r->b, bizlock_verify(r->b, KEY(r->id), ME));
	says(r, NOT_OWNER, r->b, bizlock_release(r->b, KEY(r->id), ME, NULL));
	return true;
}

/* ---- what others get ------------------------------------------------------------ */

/* Is there still a row to take over, of an owner that never released; or one that remembers it, of
 * a takeover that nobody got? */
static bool is_stale(struct run *r)
{
	struct row now = row_now(r);

	if (now.there && now.left_us <= 0)
		return now.fence == r->theirs.fence;
	return db_number(r->bench->world.admin,
	                 "SELECT COUNT(*) FROM biz_lock WHERE biz_id = '%s' AND slot = 0 AND "
	                 "taken_from <> 0",
	                 r->id) > 0;
}

/* What a sharer has left that does not know whether it has the lock hinders nobody who wants it
 * alone, and is removed by its client. */
static bool is_cleaned_up(struct run *r)
{
	int64_t end = now_ms() + PATIENCE_MS;

	while (row_now(r).there && r->rc == BIZLOCK_UNKNOWN && pause_before(end))
		continue;
	return !row_now(r).there;
}

static bool can_take(struct run *r, bizlock *b, const char *owner, int64_t wait_ms)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	bool stale = is_stale(r);

	says(r, OK, b, take(b, r, owner, wait_ms, &grant));
	must(r, (grant.flags == BIZLOCK_TOOK_OVER) == stale,
	     "%s took over: %d, the row was stale: %d", owner, grant.flags == BIZLOCK_TOOK_OVER,
	     stale);
	must(r, grant.fence > r->fence, "fence %llu after %llu", (unsigned long long)grant.fence,
	     r->fence);
	r->fence = grant.fence;
	says(r, OK, b, bizlock_release(b, KEY(r->id), owner, NULL));
	must(r, is_cleaned_up(r), "a row is left after %s released", owner);
	return true;
}

static bool is_free(struct run *r)
{
	/* Only after an unknown outcome or a failed release is the row removed later. */
	bool later = r->rc == BIZLOCK_UNKNOWN || (r->rc == BIZLOCK_CONN && r->scenario->before > 0);

	if (!can_take(r, r->stranger, "stranger", later ? SOON_MS : 1000))
		return false;
	return r->scenario->kind == CLOSES || can_take(r, r->b, ME, PROMPT_MS);
}

static bool theirs_stands(struct run *r)
{
	struct row now = row_now(r);

	must(r,
	     now.there && strcmp(now.owner, r->theirs.owner) == 0 && now.fence == r->theirs.fence &&
	             now.depth == r->theirs.depth && now.timeout_us == r->theirs.timeout_us,
	     "the holder's row is not what it was");
	return true;
}

/* ---- each kind ------------------------------------------------------------------- */

static bool after_gain(struct run *r)
{
	struct row now = row_now(r);

	if (r->rc == BIZLOCK_OK)
		return holds(r, 1, 1) && gives_back(r, 1);
	/* Only UNKNOWN may leave a row behind. */
	must(r, r->rc == BIZLOCK_UNKNOWN || !now.there || strcmp(now.owner, r->me) != 0,
	     "it left a row behind");
	return holds_nothing(r);
}

/* Until the next call that sets the depth, the row may have the old or the new one. */
static bool after_unanswered_depth(struct run *r, unsigned depth)
{
	unsigned least = depth, most = depth < r->scenario->before ? r->scenario->before : depth;

	if (r->scenario->after > r->scenario->before)
		most = r->scenario->after;
	if (!holds(r, least, most))
		return false;
	says(r, OK, r->b, take(r->b, r, ME, PROMPT_MS, &r->grant));
	must(r, r->grant.depth == depth + 1, "depth %u, not %u", r->grant.depth, depth + 1);
	return holds(r, depth + 1, depth + 1) && gives_back(r, depth + 1);
}

/* A call that got no answer is repeated, and finds the hold in one way or the other. */
static bool after_downgrade(struct run *r)
{
	if (r->rc != BIZLOCK_OK)
		says(r, OK, r->b, do_downgrade(r));
	must(r,
	     db_number(r->bench->world.admin,
	               "SELECT COUNT(*) FROM biz_lock WHERE biz_id = '%s' AND owner <> '' AND slot "
	               "> 0",
	               r->id) == 1,
	     "it is not shared");
	return holds(r, 1, 1) && gives_back(r, 1);
}

static bool after_hold(struct run *r)
{
	unsigned before = r->scenario->before, after = r->scenario->after;

	if (r->scenario->act == do_downgrade)
		return after_downgrade(r);
	if (after == 0) { /* given back, whatever the answer was */
		must(r, r->rc != BIZLOCK_OK || !row_now(r).there,
		     "a row is left after the release");
		return holds_nothing(r);
	}
	if (r->rc == BIZLOCK_OK)
		return holds(r, after, after) && gives_back(r, after);
	if (before == after)
		return holds(r, after, after) && gives_back(r, after);
	return after_unanswered_depth(r, after < before ? after : before);
}

static bool after_shut_out(struct run *r)
{
	if (!holds_nothing(r) || !theirs_stands(r))
		return false;
	says(r, OK, r->holder, bizlock_release(r->holder, KEY(r->id), "holder", NULL));
	return true;
}

static bool after_break(struct run *r)
{
	struct row now = row_now(r);
	int rc;

	must(r, r->rc != BIZLOCK_OK || !now.there, "what was broken is still there");
	if (now.there && !theirs_stands(r))
		return false;
	must(r, r->rc != BIZLOCK_CONN || now.there, "it did break it");
	rc = bizlock_release(r->holder, KEY(r->id), "holder", NULL);
	must(r, rc == (now.there ? BIZLOCK_OK : BIZLOCK_LOST), "the holder's release: %s: %s",
	     bizlock_err_name(rc), bizlock_errmsg(r->holder));
	return true;
}

static bool after_open(struct run *r)
{
	if (r->rc != BIZLOCK_OK)
		says(r, OK, r->b, bizlock_open(r->b));
	return true;
}

/* A row that close() could not release stays until its lease ends. The test does not wait for
 * that. */
static bool after_close(struct run *r)
{
	struct row now = row_now(r);

	if (is_prompt(r->point->what))
		must(r, !now.there, "a row is left after close()");
	if (now.there) {
		if (!is_mine(r, &now))
			return false;
		db_run(r->bench->world.admin, "DELETE FROM biz_lock WHERE %s",
		       row_where(KEY(r->id)));
	}
	return true;
}

/* Bytes that arrive when everybody has gone on must do no harm. */
static bool nothing_comes_late(struct run *r)
{
	if (r->point->what != LATE || !r->fired)
		return true;
	eventually(!proxy_is_late(r->bench->proxy));
	for (int64_t end = now_ms() + 50; pause_before(end);)
		must(r, !row_now(r).there, "a row came late, and nobody holds it");
	return true;
}

bool check_run(struct run *r)
{
	static bool (*const after[])(struct run *) = {
	        [GAINS] = after_gain,   [HOLDS] = after_hold, [SHUT_OUT] = after_shut_out,
	        [BREAKS] = after_break, [OPENS] = after_open, [CLOSES] = after_close,
	};

	return answer_is_right(r) && after[r->scenario->kind](r) && is_free(r) &&
	       nothing_comes_late(r);
}
