/* Acquisitions and last releases of many keys in one transaction, so that they cost one commit
 * together. Two cases are batched: the acquisition of a key that has no row, and the release of a
 * row that no transaction of the application has fenced. Everything else goes by the statements for
 * one key. So a batch waits for nobody, except where a transaction that is not bizlock's has locked
 * a row or a gap. */
#ifndef BL_STORE_BATCH_BATCH_H
#define BL_STORE_BATCH_BATCH_H

#include "base/clock.h"
#include "store/shared/sharers.h"

#define BL_BATCH_MAX 128

struct bl_entry {
	struct bl_claim claim; /* of an acquisition, */
	struct bl_goal *goal;  /* which has this key; */
	struct bl_ref hold;    /* of a last release; key NULL: an acquisition */
	const char *bell;      /* release: the doorbell, which the session has */
	struct bl_row *row;    /* acquisition: filled if it is not done; or NULL */

	/* An acquisition of a sharer. before: the fence of slot 0 when last seen, 0: not known.
	 * seen: what a look finds beside the entry's row, if that is done. */
	uint64_t before;
	struct bl_shared_seen *seen;

	/* answers */
	bool has_bell; /* acquisition: the session has the doorbell now */
	bool there;    /* acquisition: a row of the key is in its way */
	bool done;  /* acquisition: row and doorbell are ours, and the goal is filled; of a sharer:
	               the row is there, and `seen` has to be judged. Release: row and doorbell are
	               gone */
	bool maybe; /* not known to be done, but it may be */

	bool ordered; /* acquisition that is done: its fence is larger than those of earlier owners,
	                 as far as bl_batch_draw_again() and its caller know */
};

const struct bl_key *bl_entry_key(const struct bl_entry *e);

/* The entries are all exclusive, or all of sharers without a limit. Each sharer has a slot of its
 * own; the `bell` of its release serves to wake the first in line, who sleeps until others leave.
 *
 * Each key (and slot) comes once; at most BL_BATCH_MAX entries. The session must have no doorbell
 * of an acquisition. suffix: of the owners of releases, see bl_many_suffix(). The order of entries
 * changes. *ret_sent: the time just before the packet that changes the rows was sent. CONN, DB,
 * NOMEM: if the session is gone, `maybe` and, for releases, `done` tell what happened to each
 * entry. Else nothing was done, the session has no doorbell of an acquisition, and each entry may
 * succeed alone. */
int bl_batch_run(struct bl_session *s, struct bl_entry **entries, size_t n, const char *suffix,
                 bl_time *ret_sent, struct bl_err *err);

/* With the same entries, after bl_batch_run() was OK: draws new fences by one statement for all
 * exclusive acquisitions that are done. Those with a new fence become `ordered`. The statement is
 * refused if a row is no longer its owner's. Then, or if the session is gone, each entry may still
 * draw alone. */
void bl_batch_draw_again(struct bl_session *s, struct bl_entry **entries, size_t n,
                         const char *suffix);

#endif
