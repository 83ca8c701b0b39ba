/* The verdict on a history: a pure function. */
#ifndef CHAOS_CHECK_H
#define CHAOS_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "history.h"

/* X(name, what was seen) */
#define CHAOS_RULES(X)                                                                             \
	X(OVERLAP, "two believed to hold one key at one time")                                     \
	X(CROWD, "more shared a key at one time than may")                                         \
	X(FENCE_BACK, "a later grant has no larger fence")                                         \
	X(FALSE_RELEASE, "a release of what was lost was OK")                                      \
	X(EARLY_LOSS, "a hold was lost before its lease was over")                                 \
	X(LATE_LOSS, "the holder was not told in time that its hold is lost")                      \
	X(UNANSWERED, "a call never returned")                                                     \
	X(LATE_ANSWER, "a call returned too late")                                                 \
	X(ERROR, "a call returned an error that nothing excuses")                                  \
	X(STUCK, "a key was wanted and not granted for too long")

enum chaos_rule {
#define CHAOS_ENUM_(name, text) CHAOS_##name,
	CHAOS_RULES(CHAOS_ENUM_)
#undef CHAOS_ENUM_
	        CHAOS_RULE_COUNT
};

struct chaos_bounds {
	int64_t acquire_us; /* beyond wait_ms */
	int64_t release_us; /* of a release, and of the end of a client */
	int64_t told_us;    /* from the end of a hold until its holder hears of the loss */
	int64_t stuck_us;   /* a lease, and what the cluster needs to go on without a node */
	int64_t away_us;    /* without a grant to anybody: the whole cluster is away */
};

#define CHAOS_SHOWN_EACH 5

struct chaos_verdict {
	unsigned long counts[CHAOS_RULE_COUNT];
	unsigned shown;
	struct chaos_violation {
		enum chaos_rule rule;
		int64_t at_us;
		uint16_t process, key;
		uint64_t fence, other; /* fences; 0: of no hold. other: of whom it collides with */
	} violations[CHAOS_RULE_COUNT * CHAOS_SHOWN_EACH]; /* the first ones of each rule */
};

/* Is that an answer which needs no excuse, or which a fault excuses? With a wait of many seconds a
 * waiter may time out: a cluster needs as long to go on without a node. A holder may have lost what
 * it gives back. */
bool chaos_is_excused(enum chaos_what what, int rc);

/* A hold counts from the return of its grant until the last look that found time left, or until its
 * release was called. So a process that was not scheduled is not blamed for that, and no margin is
 * needed for the clocks. */
struct chaos_verdict chaos_check(const struct chaos_history *h, const struct chaos_bounds *bounds);

#endif
