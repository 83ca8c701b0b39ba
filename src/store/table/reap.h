/* Rows that are of no use any more: found by a plain read, page by page along the
 * primary key, and purged in batches.
 *
 * While somebody shares a lock, its row of slot 0 must not go (shared/sharers.h). So the reaper
 * does what whoever wants the lock alone does: it makes rows its own, if they are free, commits,
 * and then looks for those that share the locks. If there is nobody, the rows go. A sharer that
 * comes meanwhile sees that somebody has the lock alone, or finds no row. A row that a dead holder
 * left is in the way of sharers by itself.
 */
#ifndef BL_STORE_TABLE_REAP_H
#define BL_STORE_TABLE_REAP_H

#include "store/session/session.h"

struct bl_reap_item {
	size_t at, len; /* in bl_reap.text */
	enum bl_reap_kind kind;
};

/* One of the tables. Where nothing else is said, zero to begin with. */
struct bl_reap {
	enum bl_reap_table table; /* set by the caller, as are the next two lines */
	int64_t older_us;
	const char *owner; /* the reaper */
	int64_t estimate;  /* rows, by the server's statistics */

	uint32_t page;              /* set: rows that are read at a time */
	uint32_t rows;              /* were read: fewer, and these are the last ones */
	struct bl_reap_item *items; /* those of them that can go */
	uint32_t count;
	struct bl_buf text;                 /* literals of their keys */
	struct bl_buf after_id, after_type; /* of the last row's, */
	uint32_t after_slot;                /* but of a row lock's */

	enum bl_reap_kind kind; /* set: a batch is the items of this kind, */
	uint32_t from, most;    /* from this one on, at most this many */
	uint32_t tried;         /* were in it */
	uint32_t next;          /* begins the next one; count: there is none */
	uint64_t purged;        /* of those tried */
	int64_t took_us;        /* on the server */
};

/* All of these may be repeated after an error, and have changed nothing in *r then.
 * CONN, DB, NOMEM. */
typedef int bl_reap_step(struct bl_session *s, struct bl_reap *r, struct bl_err *err);

bl_reap_step bl_reap_estimate, bl_reap_read, bl_reap_purge;

void bl_reap_free(struct bl_reap *r);

#endif
