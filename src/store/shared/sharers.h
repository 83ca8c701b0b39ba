/* The rows of a shared lock: a row for each sharer, in slots from 1 on; and slot 0 for the owner
 * that has the lock exclusively, or for a contender that waits in it for the sharers to leave.
 *
 * A contender writes a row of its own, and then looks at the rows of others. When two contenders
 * meet, at least one looks when both rows are there. A sharer that sees slot 0 goes back in line.
 * An exclusive contender that sees sharers stays in slot 0, and waits. No statement takes a row
 * that another owner has, so no statement waits for another one.
 *
 * A row is in the way while its lease lasts. A row whose lease is over is in the way until it has
 * been cleared, because a transaction may have fenced it.
 *
 * **Somebody shares the lock only while slot 0 is there**: a sharer that finds no slot 0 makes a
 * free one (a header). So an exclusive contender whose INSERT makes slot 0 need not look for
 * sharers.
 *
 * A sharer must see the same header, by its fence, twice: before its own fence is drawn, and once
 * its own row is there. Then nobody has had the lock exclusively in between, and earlier exclusive
 * owners have smaller fences. Else the sharer draws another fence, and looks again. Whether the
 * header's fence is smaller or larger tells nothing: a fence is drawn when its statement begins,
 * and the row may come much later, when others have come and gone.
 *
 * The release of an exclusive owner deletes slot 0: nobody shares the lock then, and a sharer whose
 * row is there has yet to look. A contender that only waited in slot 0 leaves a header. So does any
 * statement that ends a row without knowing which of the two it was. The reaper removes headers
 * like an exclusive contender (reap.h).
 */
#ifndef BL_STORE_SHARED_SHARERS_H
#define BL_STORE_SHARED_SHARERS_H

#include "store/bell/bell.h"
#include "store/row/take.h"

/* The lock that a contender wants, and how. */
struct bl_wish {
	const struct bl_key *key; /* its slot does not matter */
	const char *owner;
	const char *bell; /* the name of the doorbell, NULL: not used */
	bool exclusive;
	uint32_t limit; /* 0: any number may share it */
};

/* What a look finds. */
struct bl_shared_seen {
	bool mine; /* the owner has a row whose lease is not over: */
	uint32_t slot;
	uint64_t fence;
	bool drawn;       /* exclusive: the fence is larger than those of earlier owners */
	uint64_t header;  /* fence of slot 0, 0: none; */
	uint64_t before;  /* and the one seen before our fence was drawn, 0: it was not seen */
	bool took_over;   /* from owners that never released: their rows were cleared, or may have
	                     been, or slot 0 was theirs and is ours */
	bool uncleared;   /* rows whose leases are over are still in the way, or may be */
	bool exclusively; /* slot 0 is in the way */
	struct bl_row in_way; /* the row to wait for. left_us <= 0: none, or (locked) a row whose
	                         lease is over, fenced by a transaction */
};

enum bl_shared_how {
	BL_SHARED_READ,  /* locks nothing */
	BL_SHARED_PROBE, /* exclusive: also asks whether rows whose leases are over are fenced */
	BL_SHARED_CLEAR  /* removes sharers' rows whose leases are over, and for a sharer slot 0
	                    likewise */
};

/* CONN, DB, NOMEM. */
int bl_shared_look(struct bl_session *s, const struct bl_wish *wish, enum bl_shared_how how,
                   struct bl_shared_seen *ret, struct bl_err *err);

enum bl_shared_bell {
	BL_BELL_NONE, /* go without it */
	BL_BELL_PASS, /* go if nobody has it */
	BL_BELL_TAKE, /* take it, and go if that succeeds */
	BL_BELL_OURS  /* the session has it */
};

struct bl_shared_go {
	struct bl_wish wish;
	const struct bl_claim *claim;
	enum bl_shared_bell bell;
	bool stay;     /* exclusive: take slot 0 even if others have to leave first */
	uint32_t slot; /* of a sharer without a limit */
};

/* A sharer that succeeds gives the doorbell back. BL_TOOK_BELL: the session has the doorbell, and
 * no row. BL_TOOK_ALL: *ret is what a look after the statement found, and the caller judges it: the
 * lock is ours if our row is there and nobody is in the way. CONN, DB, NOMEM. */
int bl_shared_take(struct bl_session *s, const struct bl_shared_go *go, enum bl_took *ret_took,
                   struct bl_shared_seen *ret, struct bl_err *err);

/* As bl_take_from(): the hold's slot goes to a claim of the same limit, unless somebody has the
 * lock exclusively or waits in slot 0, or more than `limit` have it. If the slot is taken, and
 * `met` or not `from_hold`, the caller has to look and judge. *ret is valid even if a later answer
 * fails. Not in a cluster. CONN, DB, NOMEM. */
int bl_shared_hand_over(struct bl_session *s, struct bl_ref hold, const struct bl_claim *claim,
                        uint32_t limit, struct bl_handed *ret, struct bl_err *err);

/* Draws a new fence for the owner's row, which *had has seen; for a sharer it also makes slot 0 if
 * that was not there. lease_us > 0: the hold begins now, with that lease at least. *ret: what a
 * look afterwards finds. CONN, DB, NOMEM. */
int bl_shared_draw(struct bl_session *s, const struct bl_wish *wish,
                   const struct bl_shared_seen *had, int64_t lease_us, struct bl_shared_seen *ret,
                   struct bl_err *err);

/* Finds the row with this fence; sets key->slot. CONN, DB, NOMEM. */
int bl_shared_find(struct bl_session *s, struct bl_key *key, uint64_t fence, bool *ret_found,
                   struct bl_err *err);

/* Gives back the row of hold.owner, unless it has hold.fence. Of a sharer (hold.key->slot > 0): its
 * rows in any slot. CONN, DB, NOMEM. */
int bl_shared_sweep(struct bl_session *s, struct bl_ref hold, bool *ret_matched,
                    struct bl_err *err);

/* ---- waiting for others to leave ----------------------------------------------------------- */

/* A first in line that cannot be woken looks again after this time. */
#define BL_SHARED_POLL_MS 20

/* The first in line has the doorbell, so it cannot sleep at it. It sleeps for ms at most, or until
 * somebody leaves, or wake_fd is readable; not at all if nobody is in the way. *ret RING: it slept,
 * and was woken. */
int bl_shared_sleep(struct bl_session *s, const struct bl_wish *wish, int64_t ms, int wake_fd,
                    enum bl_heard *ret, struct bl_err *err);

#endif
