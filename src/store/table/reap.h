/* Rows that are of no use any more: found by a plain read, page by page along the primary key, and
 * purged in batches.
 *
 * While somebody shares a lock, its row of slot 0 must not go (shared/sharers.h). So the reaper
 * acts like an exclusive contender: it makes rows its own, if they are free, commits, and then
 * looks for sharers of these locks. If there are none, the rows go. A sharer that comes meanwhile
 * sees an exclusive owner, or finds no row. A row that a dead holder left needs no mark: it is in
 * the way of sharers anyway.
 */
#ifndef BL_STORE_TABLE_REAP_H
#define BL_STORE_TABLE_REAP_H

#include "store/session/session.h"

struct bl_reap_item {
	size_t at, len; /* in bl_reap.text */
	enum bl_reap_kind kind;
};

/* The state of reaping one table. Fields begin as zero, unless they say otherwise. */
struct bl_reap {
	enum bl_reap_table table; /* set by the caller, as are the next two lines */
	int64_t older_us;
	const char *owner; /* the reaper */
	int64_t estimate;  /* rows, by the server's statistics */

	uint32_t page;              /* set: rows that are read at a time */
	uint32_t rows;              /* rows that were read; fewer than `page`: they were the last
	                               ones */
	struct bl_reap_item *items; /* the rows of the page that can go */
	uint32_t count;
	struct bl_buf text;                 /* literals of their keys */
	struct bl_buf after_id, after_type; /* of the last row's, */
	uint32_t after_slot;                /* except for row locks */

	enum bl_reap_kind kind; /* set: a batch is the items of this kind, */
	uint32_t from, most;    /* from this one on, at most this many */
	uint32_t tried;         /* items in the batch */
	uint32_t next;          /* the item that begins the next batch; count: there is none */
	uint64_t purged;        /* of those tried */
	int64_t took_us;        /* on the server */
};

/* Each step may be repeated after an error, and has changed nothing in *r then. CONN, DB, NOMEM. */
typedef int bl_reap_step(struct bl_session *s, struct bl_reap *r, struct bl_err *err);

bl_reap_step bl_reap_estimate, bl_reap_read, bl_reap_purge;

void bl_reap_free(struct bl_reap *r);

#endif
