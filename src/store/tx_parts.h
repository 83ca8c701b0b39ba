/* What tx.c and tx_row.c share. */
#ifndef BL_STORE_TX_PARTS_H
#define BL_STORE_TX_PARTS_H

#include "store/tx.h"

/* Begins a statement with this verb; `settings` are more of MariaDB's, or "". What the caller's
 * session has set would spoil some, and each server can do without for one statement: a `timestamp`
 * of the session's own stops the clock by which a lease is judged; and MariaDB may refuse to lock a
 * row that was changed since the snapshot was taken, as each renewal does. Where MariaDB refuses to
 * set the clock, nobody can have stopped it. */
void bl_tx_begin(const struct bl_tx *tx, struct bl_buf *text, const char *verb,
                 const char *settings);

/* Sends, and frees the text. */
int bl_tx_send(const struct bl_tx *tx, struct bl_buf *text, struct bl_err *err);

/* The answer to a statement that is no query. */
int bl_tx_done(const struct bl_tx *tx, struct bl_err *err);

/* Reads a result of one row at most, whose first field is the server's identity, and whose other n
 * are 0 or 1: they are written to ret_flags. MISUSE if it is another server's, or if no transaction
 * is open. */
int bl_tx_find(const struct bl_tx *tx, bool *ret_any, bool *ret_flags, unsigned n,
               struct bl_err *err);

#endif
