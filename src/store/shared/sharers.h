/* The rows of a shared lock: a row for each sharer, in slots from 1 on; and slot 0 for the owner
 * that has the lock exclusively, or for a contender that waits in it for the sharers to leave.
 *
 * A contender writes a row of its own, and then looks at the rows of others. Of two contenders that
 * meet, one has looked after both rows were there: a sharer that sees slot 0 goes back in line, and
 * an exclusive contender that sees sharers stays, and waits. No statement takes a row that another
 * owner has, so no statement waits for another one.
 *
 * A row is in the way while its lease lasts. A row whose lease is over is in the way until it has
 * been cleared, because a transaction may have fenced it.
 *
 * **Somebody shares the lock only while slot 0 is there**: a sharer that finds no slot 0 makes a
 * free one (a header). So a contender that wants the lock alone, and makes slot 0 by an INSERT,
 * need not look at anybody.
 *
 * A sharer has to have seen the very header, by its fence, before its own fence was drawn, and has
 * to see the header once its own row is there. Then nobody has had the lock alone in between, and
 * earlier owners that had it alone have smaller fences. Else the sharer draws another fence, and
 * looks again. That a header is older or newer tells nothing: a fence is drawn when its statement
 * begins, and the row may come much later, when others have come and gone.
 *
 * The release of an owner that has had the lock alone deletes slot 0: nobody shares the lock then,
 * and a sharer whose row is there has yet to look. A contender that only waited in slot 0 leaves a
 * header, and so does whatever ends a row without knowing which of the two it was. The reaper
 * removes headers as if it wanted the lock alone (reap.h).
 */
#ifndef BL_STORE_SHARED_SHARERS_H
#define BL_STORE_SHARED_SHARERS_H

#include "store/bell/bell.h"
#include "store/row/take.h"

/* What a contender wants, and of whom. */
struct bl_wish {
	const struct bl_key *key; /* its slot does not matter */
	const char *owner;
	const char *bell; /* the name of the doorbell, NULL: not used */
	bool exclusive;
	uint32_t limit; /* 0: any number may share it */
};

/* What a look finds. */
struct bl_shared_seen {
	bool mine; /* there is a row of the owner's, not over: */
	uint32_t slot;
	uint64_t fence;
	bool drawn;       /* of an exclusive one: its fence is newer than what others have had */
	uint64_t trace;   /* fence of slot 0, 0: none; */
	uint64_t before;  /* and as it was seen before our fence was drawn, 0: it was not seen */
	bool took_over;   /* from others that never released: their rows were cleared, or may have
	                     been, or slot 0 is ours and was theirs */
	bool uncleared;   /* rows that were over are in the way still, or may be */
	bool exclusively; /* slot 0 is in the way */
	struct bl_row in_way; /* the one to wait for. left_us <= 0: none, or (locked) one that is
	                           over, and fenced by a transaction */
};

enum bl_shared_how {
	BL_SHARED_READ,  /* locks nothing */
	BL_SHARED_PROBE, /* of one that wants it alone: asks whether rows that are over are fenced
	                  */
	BL_SHARED_CLEAR  /* removes rows of sharers that are over, and one of slot 0 for a sharer */
};

/* CONN, DB, NOMEM. */
int bl_shared_look(struct bl_session *s, const struct bl_wish *wish, enum bl_shared_how how,
                   struct bl_shared_seen *ret, struct bl_err *err);

enum bl_shared_bell {
	BL_BELL_NONE, /* go without it */
	BL_BELL_PASS, /* go if nobody has it */
	BL_BELL_RING, /* take it, and go if that succeeds */
	BL_BELL_OURS  /* the session has it */
};

struct bl_shared_go {
	struct bl_wish wish;
	const struct bl_claim *claim;
	enum bl_shared_bell bell;
	bool stay;     /* an exclusive one: take slot 0 even if others have to leave first */
	uint32_t slot; /* of one that shares without a limit */
};

/* A sharer that succeeds gives the doorbell back. BL_TOOK_BELL: the doorbell is rung, and kept;
 * BL_TOOK_ALL: *ret is what a look behind it finds, and it has to be judged: ours is the lock if
 * our row is there and nobody is in the way. CONN, DB, NOMEM. */
int bl_shared_take(struct bl_session *s, const struct bl_shared_go *go, enum bl_took *ret_took,
                   struct bl_shared_seen *ret, struct bl_err *err);

/* As bl_take_from(): the hold's slot goes to a claim of the same limit, unless somebody has the
 * lock exclusively or waits in slot 0, or more than `limit` have it. If it is taken, and met or not
 * from_hold, it has to be judged. *ret holds even if a later answer fails. Not in a cluster. CONN,
 * DB, NOMEM. */
int bl_shared_hand_over(struct bl_session *s, struct bl_ref hold, const struct bl_claim *claim,
                        uint32_t limit, struct bl_handed *ret, struct bl_err *err);

/* A new fence for the owner's row, as seen by *had; and the row of slot 0 for one that shares,
 * where that was not there. lease_us: its hold begins now, with that lease at least.
 * *ret: what a look behind it finds. CONN, DB, NOMEM. */
int bl_shared_draw(struct bl_session *s, const struct bl_wish *wish,
                   const struct bl_shared_seen *had, int64_t lease_us, struct bl_shared_seen *ret,
                   struct bl_err *err);

/* The row with this fence: its key->slot. CONN, DB, NOMEM. */
int bl_shared_find(struct bl_session *s, struct bl_key *key, uint64_t fence, bool *ret_found,
                   struct bl_err *err);

/* Gives back the row of hold.owner, unless it has hold.fence: of one that shares (hold.key->slot is
 * above 0) whatever its slot. CONN, DB, NOMEM. */
int bl_shared_sweep(struct bl_session *s, struct bl_ref hold, bool *ret_matched,
                    struct bl_err *err);

/* ---- waiting for others to leave ----------------------------------------------------------- */

/* Where nobody can be woken, it looks this often. */
#define BL_SHARED_POLL_MS 20

/* The first in line has the doorbell, so it cannot sleep at it. It sleeps by a statement that ends
 * at once if nobody is in the way, for ms at most; or until somebody leaves, or wake_fd is
 * readable. *ret RING: it slept, and was woken. */
int bl_shared_sleep(struct bl_session *s, const struct bl_wish *wish, int64_t ms, int wake_fd,
                    enum bl_heard *ret, struct bl_err *err);

#endif
