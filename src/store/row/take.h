/* Taking rows of exclusive locks, all that are asked for or none. One row goes by prepared
 * statements, several by one text. Single rows of several threads may go together: see batch.h. */
#ifndef BL_STORE_ROW_TAKE_H
#define BL_STORE_ROW_TAKE_H

#include "store/row/lock.h"

#define BL_TAKE_MAX 256

/* What is asked for each key. */
struct bl_claim {
	const char *owner, *note; /* note: NULL or text */
	uint32_t lease_ms;
};

struct bl_goal { /* a key that is to be taken */
	const struct bl_key *key;
	const char *bell; /* the name of its doorbell */
	bool cleared;     /* of several: rows of dead sharers were cleared before it was taken */

	/* BL_TOOK_ALL FILLS: */
	bool seen;   /* of several: the row was there when it was read; */
	bool shared; /* and somebody shares the lock, so it is not ours: only bl_take_again()
	                asks */
	bool took_over;
	uint64_t fence;
};

struct bl_with_bells {
	bool take;       /* the doorbells, too */
	const char *had; /* but for this one, which the session has; NULL: it has none */
};

enum bl_took {
	BL_TOOK_NOTHING, /* somebody holds one of the keys, or has its doorbell; or an error */
	BL_TOOK_BELL,    /* of a single key: only the doorbell, because a row is there */
	BL_TOOK_SLOT,    /* of a shared lock: nothing, because somebody has that slot, or may have
	                    it */
	BL_TOOK_MAYBE,   /* an error after the statement that makes the rows: several rows are all
	                    there; a sharer's row may be there */
	BL_TOOK_ALL      /* the goals are filled */
};

/* goals: n pointers in the order of the primary key, each key once. Unless *ret is ALL (or BELL),
 * the session has none of the doorbells afterwards; for a single key it keeps bells.had. *ret_over:
 * a row is there whose lease is over. Others may share the lock under that row, so a single row is
 * not taken (see shared/sharers.h). Several rows may be taken, and then need bl_take_again(). CONN,
 * DB, NOMEM; *ret is written even so. */
int bl_take(struct bl_session *s, const struct bl_claim *claim, struct bl_goal **goals, size_t n,
            struct bl_with_bells bells, enum bl_took *ret, bool *ret_over, struct bl_err *err);

/* Draws a new fence for each row of claim's owner. bell, for a single row: NULL unless the session
 * has its doorbell. *ret false, for a single row: the row was no longer the owner's, and may be
 * again now. CONN, DB, NOMEM. */
int bl_take_again(struct bl_session *s, const struct bl_claim *claim, struct bl_goal **goals,
                  size_t n, const char *bell, bool *ret, struct bl_err *err);

/* Gives the doorbells back; if that fails, gives the session up. */
void bl_take_free_bells(struct bl_session *s, struct bl_goal *const *goals, size_t n);

/* Does a connection other than the session's have one of the doorbells? CONN, DB, NOMEM. */
int bl_take_rival(struct bl_session *s, struct bl_goal *const *goals, size_t n, bool *ret,
                  struct bl_err *err);

/* After an INSERT that has taken a row: was the row there before? Then 2 rows are affected, or 3 at
 * most with FOUND_ROWS, system versioning or triggers. A new row is 1 in any case. */
bool bl_was_there(uint64_t affected);

struct bl_handed {
	bool taken;     /* the claim has the row */
	bool from_hold; /* the hold had it until then; false: nobody had it */
	bool met;       /* of a sharer's slot: somebody came for slot 0 meanwhile, or may have */
	uint64_t fence;
};

/* Drops the hold and takes its row in one statement, with a new fence: for another owner, or for
 * the same owner, whose took_over stays. bell: the doorbell that the session has, and keeps; or
 * NULL. CONN, DB. */
int bl_take_from(struct bl_session *s, struct bl_ref hold, const struct bl_claim *claim,
                 const char *bell, struct bl_handed *ret, struct bl_err *err);

#endif
