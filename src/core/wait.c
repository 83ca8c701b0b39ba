#include "core/wait.h"

/* How long a contender that wants one answer goes on if nobody holds the lock. It counts from the
 * first look, because connecting may take longer than this. */
#define ONCE_NS (BL_GRACE_NS + 2 * BL_GRACE_JITTER_NS)

struct bl_wait bl_wait_begin(bool once, bl_time deadline, bool bells, bool several)
{
	return (struct bl_wait){.end = once ? BL_NEVER : deadline,
	                        .once = once,
	                        .bells = bells,
	                        .several = several};
}

static enum bl_next while_held(struct bl_wait *w, const struct bl_seen *seen, bl_time now,
                               bl_time *ret_until)
{
	w->stuck_by = 0;
	w->late = false;
	if (w->once || w->end <= now)
		return BL_NEXT_REFUSE;
	*ret_until = bl_earlier(w->end, now + seen->left_ns);
	/* A doorbell that nobody has would be ours at once. A contender for one key keeps it, and
	 * so its place in line; a contender for several keys could not keep it. */
	if (!w->bells || seen->bell_ours || (w->several && !seen->bell_by))
		return BL_NEXT_POLL;
	if (!seen->by_holder)
		*ret_until = bl_earlier(*ret_until, now + BL_GRACE_NS);
	return BL_NEXT_SLEEP;
}

/* A statement of bizlock, such as a late renewal, also locks the row, but only for a moment: a
 * contender that wants one answer waits for that moment. */
static enum bl_next while_fenced(struct bl_wait *w, bl_time now, bl_time *ret_until)
{
	if (w->once)
		w->end = bl_earlier(w->end, now + BL_MOMENT_NS);
	*ret_until = w->end;
	return w->end <= now ? BL_NEXT_REFUSE : BL_NEXT_POLL;
}

/* Most often the contender that has the doorbell is about to take the row. */
static enum bl_next while_blocked(struct bl_wait *w, const struct bl_seen *seen, bl_time now,
                                  uint64_t random, bl_time *ret_until)
{
	if (w->stuck_by == seen->bell_by && w->stuck_until <= now) {
		w->stuck_until = now + BL_GRACE_NS;
		return BL_NEXT_TRY_PAST;
	}
	if (w->stuck_by != seen->bell_by) {
		w->stuck_by = seen->bell_by;
		w->stuck_until = now + BL_GRACE_NS + (bl_time)(random % BL_GRACE_JITTER_NS);
		if (w->once && !w->graced && w->end < w->stuck_until)
			w->end = w->stuck_until;
		w->graced = true;
	}
	if (w->end <= now)
		return BL_NEXT_REFUSE;
	*ret_until = bl_earlier(w->stuck_until, w->end);
	return w->once || !w->bells ? BL_NEXT_POLL : BL_NEXT_SLEEP;
}

/* Pauses between two tries: without a pause they might meet the same contenders for ever. Tries
 * once more after `end`: the lock may have become free in the last moment. */
static enum bl_next while_free(struct bl_wait *w, bl_time now, bl_time *ret_until)
{
	bool again = w->tried;

	w->stuck_by = 0;
	if (w->end <= now && w->late)
		return BL_NEXT_REFUSE;
	if (w->end > now && again) {
		w->tried = false;
		*ret_until = w->end;
		return BL_NEXT_POLL;
	}
	w->late = w->end <= now;
	w->tried = true;
	return BL_NEXT_TRY;
}

enum bl_next bl_wait_next(struct bl_wait *w, const struct bl_seen *seen, bl_time now,
                          uint64_t random, bl_time *ret_until)
{
	*ret_until = now;
	if (w->once && w->end == BL_NEVER)
		w->end = now + ONCE_NS;
	if (seen->left_ns <= 0 && !seen->fenced && (seen->bell_ours || !seen->bell_by))
		return while_free(w, now, ret_until);
	w->tried = false;
	if (seen->left_ns > 0)
		return while_held(w, seen, now, ret_until);
	if (seen->fenced)
		return while_fenced(w, now, ret_until);
	return while_blocked(w, seen, now, random, ret_until);
}
