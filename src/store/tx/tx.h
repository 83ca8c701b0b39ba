/* Statements on a connection of the application's, inside its transaction. Nothing
 * is left behind on it: no setting, no prepared statement, no unread result. */
#ifndef BL_STORE_TX_TX_H
#define BL_STORE_TX_TX_H

#include "store/row/lock.h"
#include "store/session/server.h"

/* What the statements are made from. */
struct bl_tx {
	MYSQL *mysql;
	const struct bl_sql *sql;
	const struct bl_server *server;
	char identity[BL_IDENTITY_MAX + 1]; /* of the server that has the locks; "": any */
};

/* MISUSE: it cannot be used for this now; the message says why. Sends nothing. */
int bl_tx_check(MYSQL *mysql, struct bl_err *err);

/* OK if its server is the one that has the locks. MISUSE (another server), CONN, DB. */
int bl_tx_ask_server(const struct bl_tx *tx, struct bl_err *err);

enum bl_fenced {
	BL_FENCED_NOT,  /* not held */
	BL_FENCED,      /* the row is there, its lease is not over, and until the transaction ends
	                   nobody else can change it */
	BL_FENCED_STALE /* the same, but the transaction's snapshot is older than the grant: it
	                   would overwrite what an earlier holder has written */
};

/* MISUSE (another server), CONN, DB. */
int bl_tx_fence(const struct bl_tx *tx, struct bl_ref hold, enum bl_fenced *ret,
                struct bl_err *err);

/* bl_tx_fence() and COMMIT. If *ret is not FENCED, or after any error but UNKNOWN, the transaction
 * is rolled back. UNKNOWN: the connection was lost, perhaps after the COMMIT. */
int bl_tx_commit(const struct bl_tx *tx, struct bl_ref hold, enum bl_fenced *ret,
                 struct bl_err *err);

/* Rolls back because of rc, which it returns; or MISUSE: the transaction is an XA one, and still
 * open. */
int bl_tx_rollback(const struct bl_tx *tx, int rc, struct bl_err *err);

enum bl_row_how { BL_ROW_NOWAIT, BL_ROW_WAIT, BL_ROW_SKIP };
enum bl_row_got { BL_ROW_LOCKED, BL_ROW_BUSY, BL_ROW_MISSING };

/* With SKIP, MISSING may also mean that somebody has it. MISUSE, CONN, DB. */
int bl_tx_lock_row(const struct bl_tx *tx, const struct bl_key *key, enum bl_row_how how,
                   enum bl_row_got *ret, struct bl_err *err);

/* Makes the row that was missing; a new row is locked. */
int bl_tx_make_row(const struct bl_tx *tx, const struct bl_key *key, enum bl_row_got *ret,
                   struct bl_err *err);

/* On a session of bizlock's own: is the row lock's row there? bl_row_provide() makes the row if it
 * was not. Neither waits for a transaction that has locked the row. */
int bl_row_look(struct bl_session *s, const struct bl_key *key, bool *ret_there,
                struct bl_err *err);
int bl_row_provide(struct bl_session *s, const struct bl_key *key, bool *ret_there,
                   struct bl_err *err);

#endif
