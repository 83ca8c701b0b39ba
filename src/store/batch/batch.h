/* Acquisitions and last releases of many keys in one transaction, so that they cost one
 * commit together. Only what is simple goes so: a key whose row is not there, and a row
 * that no transaction of the application's has fenced. Everything else is left to the
 * statements for one key. So nothing here waits for anybody, except where a transaction that is
 * not bizlock's has locked a row or a gap. */
#ifndef BL_STORE_BATCH_BATCH_H
#define BL_STORE_BATCH_BATCH_H

#include "base/clock.h"
#include "store/shared/sharers.h"

#define BL_BATCH_MAX 128

struct bl_entry {
	struct bl_claim claim; /* an acquisition, */
	struct bl_goal *goal;  /* of this key; */
	struct bl_ref hold;    /* or, when its key is not NULL, a last release, */
	const char *bell;      /* with this doorbell, which the session has */
	struct bl_row *row;    /* an acquisition: filled if it is not done; or NULL */

	/* To share a lock: the fence that slot 0 has had, as seen last, 0: not known; what is
	 * beside the entry's row if that is done. */
	uint64_t before;
	struct bl_shared_seen *seen;

	/* answers */
	bool rung;  /* acquisition: the session has the doorbell now */
	bool there; /* the row was: in the way of an acquisition */
	bool done;  /* acquisition: row and doorbell are ours, and the goal is filled; of a shared
	               lock: the row is there, and has to be judged. Release: both are gone */
	bool maybe; /* not known to be done, but it may be */

	bool ordered; /* acquisition that is done: its fence is larger than that of anybody who had
	                 the lock before, as far as bl_batch_draw_again() and its caller know */
};

const struct bl_key *bl_entry_key(const struct bl_entry *e);

/* All to have locks alone, or all to share: such share without a limit, each has a slot of its own,
 * and `bell` is given for those who sleep until others leave.
 *
 * Each key (and slot) once; up to BL_BATCH_MAX of them; the session must have none of the doorbells
 * of acquisitions. suffix: of the owners of releases, see bl_many_suffix(). The order of entries
 * changes. *ret_sent: when what changes the rows was about to be sent. CONN, DB, NOMEM: where the
 * session is gone, `maybe` tells, and releases may be `done`; else nothing was done, no doorbell of
 * an acquisition is the session's, and each may succeed alone. */
int bl_batch_run(struct bl_session *s, struct bl_entry **entries, size_t n, const char *suffix,
                 bl_time *ret_sent, struct bl_err *err);

/* The same entries again, after OK: new fences for all acquisitions that are done, but for those
 * that share, by one statement. Those that got one become `ordered`. Where it is refused, because a
 * row is not its owner's any more, or the session is gone, each may still go alone. */
void bl_batch_draw_again(struct bl_session *s, struct bl_entry **entries, size_t n,
                         const char *suffix);

#endif
