/* One statement outside a contest, seen through: reconnects and repeats while
 * the call's io_deadline has not passed. Mutex free. */
#ifndef BL_CLIENT_RETRY_H
#define BL_CLIENT_RETRY_H

#include "client/client.h"
#include "store/reap.h"
#include "store/set.h"

/* Longer than a statement of bizlock's own has a row, on a busy machine. */
#define BL_MOMENT_NS (100 * BL_NS_PER_MS)

enum bl_change_kind {
	BL_CHANGE_DEPTH,
	BL_CHANGE_RENEW,
	BL_CHANGE_ADOPT,    /* the hold becomes `heir`'s */
	BL_CHANGE_DROP,     /* and releases the bell */
	BL_CHANGE_DROP_SET, /* and releases the bells, all of one connection */
	BL_CHANGE_SWEEP,
	BL_CHANGE_BREAK,
	BL_CHANGE_ROW, /* makes the row lock's row; matched: it was there */
	BL_CHANGE_ROW_LOOK,
	BL_CHANGE_REAP, /* `step` of `reap` */
	BL_CHANGE_KICK, /* ends the connection `keeper` if it has the bell */
	BL_CHANGE_BELL  /* releases the bell alone */
};

struct bl_change {
	enum bl_change_kind what;
	struct bl_ref ref;
	struct bl_hold *hold; /* whose row it is, busy; NULL: of none */
	uint32_t depth, lease_ms;
	int64_t rest_us;             /* DROP */
	const char *heir;            /* ADOPT */
	bool exported;               /* ADOPT: see bl_lock_adopt() */
	const struct bl_item *items; /* DROP_SET */
	size_t count;
	struct bl_set_row *rows;
	bl_reap_step *step; /* REAP */
	struct bl_reap *reap;
	uint64_t keeper; /* the server's number of it */
	uint64_t bell;   /* DROP, DROP_SET, BELL: the connection that has the doorbell, 0: none */

	/* answers; and bell is 0 once the doorbell is given back, or gone with its connection.
	 * It stays where that connection stalls, and the row went by another one. */
	bool matched;      /* a row was found and changed */
	bool repeated;     /* an earlier try may have done it already */
	bl_time fenced_at; /* it was first found so; 0: it was not */
	bl_time sent;      /* before the try that was answered; 0: nothing was sent */
};

/* A statement failed with err and will be sent again. Where it could not be sent,
 * for want of a connection, nothing is repeated, and nothing is counted. */
void bl_retry_count(struct bizlock *b, const struct bl_err *err);

/* UNKNOWN: sent, and never answered. CONN: never sent. BUSY: nothing was done, for a
 * transaction of the application's has fenced the row; to wait for that is the caller's
 * business. DB, NOMEM, TIMEOUT. A hold that is lost meanwhile ends it, too. */
int bl_retry_change(struct bl_call *call, struct bl_change *change);

/* CONN, DB, NOMEM, TIMEOUT. Errors go to err, not to the call's. */
int bl_retry_look(struct bl_call *call, struct bl_row *ret, struct bl_err *err);

#endif
