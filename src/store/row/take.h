/* Taking rows, all that are asked for or none. One goes by prepared statements, several by
 * one text; and a single one may go together with what other threads want: see batch.h. */
#ifndef BL_STORE_ROW_TAKE_H
#define BL_STORE_ROW_TAKE_H

#include "store/row/lock.h"

#define BL_TAKE_MAX 256

/* What is asked for, of each key. */
struct bl_claim {
	const char *owner, *note; /* note: NULL or text */
	uint32_t lease_ms;
};

struct bl_goal { /* a key that is to be taken */
	const struct bl_key *key;
	const char *bell; /* the name of its doorbell */
	bool cleared;     /* of several: rows of dead sharers were, before it was taken */

	/* ALL: */
	bool seen;   /* of several: the row was there when it was read; */
	bool shared; /* and somebody shares the lock, so that it is not ours: bl_take_again() asks
	              */
	bool took_over;
	uint64_t fence;
};

struct bl_ring {
	bool bells;       /* take the doorbells, too */
	const char *rung; /* but for this one, which the session has; NULL: it has none of them */
};

enum bl_took {
	BL_TOOK_NOTHING, /* somebody holds one of them, or has its doorbell; or an error */
	BL_TOOK_BELL,    /* of a single key: the doorbell alone, a row is there */
	BL_TOOK_SLOT,    /* of a lock that is shared: nothing, for somebody has that slot, or may */
	BL_TOOK_MAYBE,   /* an error behind the statement that takes several: all rows are there */
	BL_TOOK_ALL      /* the goals are filled */
};

/* goals: n pointers in the order of the primary key, each key once. Unless it took ALL (or, of
 * one, the BELL), the session has none of the doorbells afterwards; of one it keeps ring.rung.
 * *ret_over: a row is there whose lease is over. Others may share the lock under it, so a single
 * one is not taken (see shared/sharers.h); several may be, and are to be taken again. CONN, DB,
 * NOMEM; *ret is written even so. */
int bl_take(struct bl_session *s, const struct bl_claim *claim, struct bl_goal **goals, size_t n,
            struct bl_ring ring, enum bl_took *ret, bool *ret_over, struct bl_err *err);

/* A new fence for each row, which claim's owner has. bell: of a single one, NULL unless the
 * session has its doorbell. *ret false, of a single one: the row was not the owner's any
 * more, and may be now. CONN, DB, NOMEM. */
int bl_take_again(struct bl_session *s, const struct bl_claim *claim, struct bl_goal **goals,
                  size_t n, const char *bell, bool *ret, struct bl_err *err);

/* Gives the doorbells back, or the session up. */
void bl_take_free_bells(struct bl_session *s, struct bl_goal *const *goals, size_t n);

/* Has another connection than the session's one of the doorbells? CONN, DB, NOMEM. */
int bl_take_rival(struct bl_session *s, struct bl_goal *const *goals, size_t n, bool *ret,
                  struct bl_err *err);

/* Was the row there before, of an INSERT that has taken it? FOUND_ROWS, system versioning and
 * triggers make of 2 affected rows 3 at most, and of 1 none but 1. */
bool bl_was_there(uint64_t affected);

struct bl_handed {
	bool taken;     /* the claim has the row */
	bool from_hold; /* and until then the hold had it; else nobody */
	bool met;       /* of a slot: somebody came for slot 0 meanwhile, or may have */
	uint64_t fence;
};

/* As if the hold were dropped and its row taken at once, with a new fence: by somebody else,
 * or by its owner, who keeps what it took over. bell: the session has it, and it stays rung;
 * or NULL. CONN, DB. */
int bl_take_from(struct bl_session *s, struct bl_ref hold, const struct bl_claim *claim,
                 const char *bell, struct bl_handed *ret, struct bl_err *err);

#endif
