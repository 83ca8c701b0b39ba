/* bizlock, the part that works inside transactions of your own: on your own
 * connection, to the same server and under the same connector as bizlock's.
 * The rules of bizlock.h hold here too.
 *
 *
 * WHICH OF THE THREE
 *
 * row lock            bizlock_row_lock(): for critical sections of one transaction
 *                     that touch nothing but this database. Held until COMMIT,
 *                     ROLLBACK or the end of the connection; no lease, no fence.
 * lease lock          bizlock_acquire(): for what outlives a transaction, or leaves
 *                     the database. A holder that stalls past its lease may go on
 *                     in the belief that it holds.
 * fenced transaction  bizlock_acquire(), then bizlock_commit() in place of each
 *                     COMMIT: a lease lock whose stale holder cannot commit.
 *
 * Acquire first, then begin the transaction: acquire, START TRANSACTION, SELECT, UPDATE,
 * bizlock_commit(), release. In REPEATABLE READ, the servers' default, the first SELECT of a
 * transaction takes a snapshot of everything. One that was taken before the lock was granted does
 * not show what the holder before has written, and an UPDATE made from it would undo that: a lost
 * update, although the lock is held. So bizlock_fence() and bizlock_commit() answer STALE then.
 *
 * For what is stored elsewhere the fence of the grant does the same, wherever the
 * store can compare numbers:
 *     UPDATE doc SET body = ?, fence = ? WHERE id = ? AND fence <= ?
 *
 *
 * RULES FOR ALL OF THEM
 *
 * - `tx` has an open transaction: begun, or (autocommit off) a statement was run.
 *   All its results have been read. It has automatic reconnection off, for a
 *   reconnected session has lost the transaction. It is not in use by another
 *   thread. Else MISUSE, and nothing was sent; MISUSE also if a reply shows that tx is at another
 *   server, or that its transaction is over.
 * - Of an XA transaction only bizlock_fence() and bizlock_row_lock() may be part, until XA END;
 *   bizlock_commit() answers MISUSE, whatever became of the lock, and it is still open.
 * - It may have any default database, or none, any isolation level and any
 *   settings; all of that stays as it was. What mysql_affected_rows() and the like
 *   answer is that of the last statement sent, as after any.
 * - DB: the server's words are in bizlock_errmsg(). Error 1213 has rolled the
 *   transaction back, as always. CONN: the connection is lost, and so is the
 *   transaction; or the server takes no writes now: roll back. */
#ifndef BIZLOCK_TX_H
#define BIZLOCK_TX_H

#include <mysql.h>

#include "bizlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of bizlock_row_lock(). */
#define BIZLOCK_ROW_WAIT 1u /* wait, as long as tx's innodb_lock_wait_timeout says */
#define BIZLOCK_ROW_SKIP                                                                           \
	2u /* SKIP LOCKED in place of NOWAIT: no error is logged. But in                           \
	      REPEATABLE READ InnoDB then keeps the gap behind the row                             \
	      locked, and others may not get row locks of new keys in it */

/* Locks a row that stands for `key`, in the transaction of tx: nobody else gets the
 * same row lock until that ends. Row locks and lease locks of one key know nothing
 * of each other. Again in the same transaction: OK.
 * BUSY: another transaction has it (with ROW_WAIT: had it all the time).
 * INVALID, MISUSE, CONN, DB. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_row_lock(bizlock *, bizlock_key, MYSQL *tx,
                                                    uint32_t flags);

/* Makes sure, in the transaction of tx, that this owner holds the lock, by its fence
 * and on the server's clock. OK: until the transaction ends nobody can take the
 * lock over, even if the lease runs out meanwhile; so what the transaction commits
 * is a holder's. LOST, NOT_OWNER: it is not held; roll back. STALE: it is held, but
 * the transaction's snapshot is older than the grant; roll back, and begin it anew.
 * A transaction that has no snapshot yet gets one.
 * INVALID, MISUSE, CONN, DB. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_fence(bizlock *, bizlock_key, const char *owner,
                                                 MYSQL *tx);

/* bizlock_fence(), then COMMIT; in one packet when tx was connected with
 * CLIENT_MULTI_STATEMENTS. Whatever the session's completion_type: after it, no
 * transaction is open, and the connection is. OK: committed. LOST, NOT_OWNER, STALE, DB: rolled
 * back, nothing of it is visible. UNKNOWN: the connection was lost before COMMIT was answered, and
 * it may have been done. INVALID, MISUSE: nothing was committed, and the transaction is still open,
 * unless an earlier error had ended it. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_commit(bizlock *, bizlock_key, const char *owner,
                                                  MYSQL *tx);

#ifdef __cplusplus
}
#endif

#endif
