/* What a contender does next: try, sleep at the doorbell, go past it, poll, or refuse. It decides
 * from what it has just seen and what it remembers. Nothing here sleeps, sends or locks, so that
 * a blocking thread and an event loop wait by the same rules.
 *
 *   row                        doorbell                    next
 *   held                       its holder's                sleep at it, for the lease at most:
 *                                                          the end of a lease rings no bell
 *   held                       another contender's         sleep at it, and look at the row often:
 *                                                          the holder's release does not ring
 *   held                       nobody's                    the same: sleeping gets the doorbell at
 *                                                          once. A contender for several keys
 *                                                          polls: it could not keep the doorbell
 *   held                       ours, or not used           poll; with our doorbell, wait as the
 *                                                          first in line
 *   over, in a transaction     -                           poll until the transaction ends: taking
 *   (fenced)                                               the row would wait for its row lock
 *   free, or over              ours, nobody's, not used    try
 *   free, or over              another contender's         that contender is about to take the
 *                                                          row: sleep at the doorbell; when the
 *                                                          doorbell stands still, go past it
 *
 * A contender that wants one answer (once) does not sleep at doorbells: it refuses if the lock is
 * held, and polls for a moment if the lock may be free. A contender without doorbells polls in
 * place of sleeping. */
#ifndef BL_CORE_WAIT_H
#define BL_CORE_WAIT_H

#include "base/clock.h"

/* How long a doorbell may stand still in front of a free row before a contender goes past it: its
 * holder hangs, or died without the server knowing. Too early costs order, too late costs time;
 * the row guards exclusion. Jitter keeps the contenders from going past all at once. */
#define BL_GRACE_NS (200 * BL_NS_PER_MS)
#define BL_GRACE_JITTER_NS (50 * BL_NS_PER_MS)

/* An answer that comes sooner than this cannot have held up anybody at the doorbell. After a later
 * answer a contender that went past may have a larger fence, so the fence is drawn again. */
#define BL_PROMPT_NS (BL_GRACE_NS / 2)

/* Longer than a statement of bizlock keeps a row locked, even on a busy machine. */
#define BL_MOMENT_NS (100 * BL_NS_PER_MS)

/* Longer than a table is missing while a tool puts a copy in its place. A statement that arrives
 * then fails. */
#define BL_SWAP_NS (500 * BL_NS_PER_MS)

enum bl_next {
	BL_NEXT_TRY,      /* go for the row, and for the doorbell */
	BL_NEXT_TRY_PAST, /* go for the row alone */
	BL_NEXT_SLEEP,    /* at the doorbell, until *ret_until at most */
	BL_NEXT_POLL,     /* pause, until *ret_until at most; then look again */
	BL_NEXT_REFUSE    /* BUSY or TIMEOUT */
};

struct bl_seen {
	bl_time left_ns;  /* of the lease; <= 0: there is no row, or its lease is over */
	bool fenced;      /* the lease is over, but a transaction has locked the row */
	bool by_holder;   /* the holder of the row has the doorbell */
	uint64_t bell_by; /* the connection that has the doorbell; 0: none, or not asked */
	bool bell_ours;   /* the contender itself has the doorbell */
};

struct bl_wait {
	bl_time end;  /* when it gives up; with once, set by its first look */
	bool once;    /* it wants one answer */
	bool bells;   /* it uses doorbells */
	bool several; /* it wants several keys, and keeps no doorbell without the rows */

	/* What it remembers. */
	bool tried;          /* its last step was to try for a free row, in vain */
	bool late;           /* it tried for a free row after `end` */
	bool graced;         /* once: it has waited for a doorbell, and does so no more */
	uint64_t stuck_by;   /* the connection that has the doorbell of a free row, 0: none, */
	bl_time stuck_until; /* and until when it may have it */
};

struct bl_wait bl_wait_begin(bool once, bl_time deadline, bool bells, bool several);

/* *ret_until is for SLEEP and POLL. random: any 64 bits. */
enum bl_next bl_wait_next(struct bl_wait *w, const struct bl_seen *seen, bl_time now,
                          uint64_t random, bl_time *ret_until);

#endif
