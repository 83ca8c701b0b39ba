/* bizlock inside your own transactions, on your own connection: row locks, and commits that
 * only the holder of a lock can make. The connection leads to the same server, by the same
 * connector, as bizlock's: bizlock_connect() makes one. The rules of bizlock.h hold here too.
 *
 *
 * WHICH OF THE THREE
 *
 * row lock            bizlock_row_lock(): for critical sections of one transaction
 *                     that touch nothing but this database. Held until COMMIT,
 *                     ROLLBACK or the end of the connection; no lease, no fence.
 * lease lock          bizlock_acquire(): for work that outlives a transaction, or
 *                     leaves the database. A holder that stalls past its lease may
 *                     go on in the belief that it holds the lock.
 * fenced transaction  bizlock_acquire(), then bizlock_commit() in place of each
 *                     COMMIT: a lease lock whose stale holder cannot commit.
 *
 * Acquire first, then begin the transaction: acquire, START TRANSACTION, SELECT, UPDATE,
 * bizlock_commit(), release. In REPEATABLE READ, the servers' default, the first SELECT of a
 * transaction takes a snapshot of everything. A snapshot that was taken before the lock was granted
 * does not show the writes of the holder before. An UPDATE made from it would undo these: a lost
 * update, although the lock is held. So bizlock_fence() and bizlock_commit() answer STALE then.
 *
 * For data that is stored elsewhere the fence of the grant does the same, wherever the
 * store can compare numbers:
 *     UPDATE doc SET body = ?, fence = ? WHERE id = ? AND fence <= ?
 *
 *
 * RULES FOR ALL OF THEM
 *
 * - `tx` has an open transaction: begun, or (autocommit off) a statement was run.
 *   All its results have been read. Automatic reconnection is off, because a
 *   reconnected session has lost the transaction. No other thread uses tx.
 *   Else MISUSE, and nothing was sent; MISUSE also if a reply shows that tx is at another
 *   server, or that its transaction is over.
 * - In an XA transaction only bizlock_fence() and bizlock_row_lock() may be called, until XA END.
 *   bizlock_commit() answers MISUSE, whether the lock is held or not, and leaves it open.
 * - `tx` may have any default database, or none, any isolation level and any
 *   settings; all of these stay as they were. mysql_affected_rows() and the like
 *   answer for the last statement that bizlock sent.
 * - DB: the server's words are in bizlock_errmsg(). Error 1213 has rolled the
 *   transaction back, as always. CONN: the connection is lost, and so is the
 *   transaction; or the server takes no writes now: roll back. */
#ifndef BIZLOCK_TX_H
#define BIZLOCK_TX_H

#include <mysql.h>

#include "bizlock.h"

/* A MYSQL of one client library is not one of the other, and no compiler notices when a program for
 * the one is linked with a bizlock that was built with the other: it would write where it must not.
 * So the symbols of these functions name the library, and such a program does not link. Neither
 * does one of a compiler that cannot give a function another symbol than its name. */
#if !defined(__GNUC__)
#define BIZLOCK_SYMBOL_(name, library)
#else
#define BIZLOCK_SYMBOL_(name, library)                                                             \
	__asm__(BIZLOCK_TEXT_(__USER_LABEL_PREFIX__) #name "_" library)
#define BIZLOCK_TEXT_(prefix) BIZLOCK_TEXT_OF_(prefix)
#define BIZLOCK_TEXT_OF_(prefix) #prefix
#endif
#if defined(MARIADB_BASE_VERSION) || defined(MARIADB_PACKAGE_VERSION)
#define BIZLOCK_TX_(name) BIZLOCK_SYMBOL_(name, "mariadb")
#else
#define BIZLOCK_TX_(name) BIZLOCK_SYMBOL_(name, "mysql")
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Connects tx, a handle of mysql_init() that was not connected yet, to the server that has the
 * locks, as this client connects: host, port or socket, user, password, TLS, database. Of several
 * hosts it is the one that takes writes now.
 *
 *     tx = mysql_init(NULL);
 *     rc = tx ? bizlock_connect(lock, tx) : BIZLOCK_NOMEM;
 *     // ... transactions. When the connection is lost, after a failover for example:
 *     mysql_close(tx); // and begin again
 *
 * tx belongs to the caller, as if mysql_real_connect() had connected it: no setting of bizlock's is
 * in its session, autocommit is what the server has, a packet holds one statement, and no other
 * program that is started inherits it. Its character set is utf8mb4. What mysql_options() has set
 * before stays set, except TLS, plugins and character set. Without timeouts of its own tx has the
 * client's: each read and write takes io_timeout_ms at most, so a program whose statements run
 * longer sets MYSQL_OPT_READ_TIMEOUT. The client keeps no hold of tx, and closes before or after
 * it.
 *
 * MISUSE: tx is or was connected, or the client is not open. After any other error tx leads
 * nowhere: mysql_close() it, and try again with a new handle. CONN: no server, or another one than
 * that of the locks answers at the address; DB, INVALID, NOMEM. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_connect(bizlock *, MYSQL *tx)
        BIZLOCK_TX_(bizlock_connect);

/* Flags of bizlock_row_lock(). */
#define BIZLOCK_ROW_WAIT 1u /* wait, as long as tx's innodb_lock_wait_timeout says */
#define BIZLOCK_ROW_SKIP                                                                           \
	2u /* SKIP LOCKED in place of NOWAIT: no error is logged. But in                           \
	      REPEATABLE READ InnoDB then keeps the gap behind the row                             \
	      locked, and others may not get row locks of new keys in it */

/* Locks a row that stands for `key`, in the transaction of tx: nobody else gets the
 * same row lock until the transaction ends. Row locks and lease locks of one key know
 * nothing of each other. Again in the same transaction: OK.
 * BUSY: another transaction has the row lock (with ROW_WAIT: had it all the time).
 * INVALID, MISUSE, CONN, DB. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_row_lock(bizlock *, bizlock_key, MYSQL *tx,
                                                    uint32_t flags) BIZLOCK_TX_(bizlock_row_lock);

/* Makes sure, in the transaction of tx, that this owner holds the lock, by its fence
 * and on the server's clock. OK: until the transaction ends nobody can take the
 * lock over, even if the lease runs out meanwhile; so only a holder's writes are
 * committed. LOST, NOT_OWNER: this owner does not hold the lock; roll back. STALE: it
 * does, but the transaction's snapshot is older than the grant; roll back, and begin
 * it anew. A transaction that has no snapshot yet gets one.
 * INVALID, MISUSE, CONN, DB. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_fence(bizlock *, bizlock_key, const char *owner,
                                                 MYSQL *tx) BIZLOCK_TX_(bizlock_fence);

/* bizlock_fence() by the fence that the holder was granted, for transactions of others that work
 * for it: a forked child, a thread with a client of its own, another program. Any open client of
 * the same tables will do. OK: until the transaction ends nobody can take the lock over, so COMMIT
 * is the holder's. LOST: nobody holds the lock with this fence, or it went to another owner just
 * now; roll back. STALE, INVALID, MISUSE, CONN, DB, TIMEOUT, NOMEM. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_tx_verify_fence(bizlock *, bizlock_key, uint64_t fence,
                                                           MYSQL *tx)
        BIZLOCK_TX_(bizlock_tx_verify_fence);

/* bizlock_fence(), then COMMIT; in one packet when tx was connected with
 * CLIENT_MULTI_STATEMENTS. Afterwards no transaction is open, and the connection is open, whatever
 * the session's completion_type. OK: committed. LOST, NOT_OWNER, STALE, DB: rolled back, no write
 * is visible. UNKNOWN: the connection was lost before COMMIT was answered, and the COMMIT may have
 * been done. INVALID, MISUSE: nothing was committed, and the transaction is still open, unless an
 * earlier error had ended it. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_commit(bizlock *, bizlock_key, const char *owner,
                                                  MYSQL *tx) BIZLOCK_TX_(bizlock_commit);

#ifdef __cplusplus
}
#endif

#endif
