/* Transactions of a user's own, for the tests of bizlock_tx.h. */
#ifndef TEST_CR_TX_H
#define TEST_CR_TX_H

#include <bizlock_tx.h>

#include "cr_test.h"

/* How the user's connections isolate their transactions. */
enum tx_way {
	TX_REPEATABLE_READ,
	TX_READ_COMMITTED,
	TX_SNAPSHOT /* REPEATABLE READ with innodb_snapshot_isolation, where there is such a thing
	             */
};

extern enum tx_way tx_way;

/* Nothing to test: this server knows no innodb_snapshot_isolation. */
bool tx_way_unknown(void);

/* A test that is run once for each way. */
#define TX_TEST(suite, name)                                                                       \
	static void suite##_##name(void);                                                          \
	TX_TEST_(suite, name, in_repeatable_read, TX_REPEATABLE_READ)                              \
	TX_TEST_(suite, name, in_read_committed, TX_READ_COMMITTED)                                \
	TX_TEST_(suite, name, in_snapshot_isolation, TX_SNAPSHOT)                                  \
	static void suite##_##name(void)

#define TX_TEST_(suite, name, ending, way)                                                         \
	Test(suite, name##_##ending)                                                               \
	{                                                                                          \
		tx_way = (way);                                                                    \
		if (!tx_way_unknown())                                                             \
			suite##_##name();                                                          \
	}

/* For .init: a world with a table ledger (id). For .fini: closes the connections that were opened
 * here, and drops the world. */
void tx_world_begin(void);
void tx_world_end(void);

/* A connection in this test's way. schema: NULL for none. */
MYSQL *tx_connect(const struct server *at, const char *schema, unsigned long flags);

/* To the world's schema, without multi-statements. */
MYSQL *tx_open(void);

/* The same, and tx_begin(). */
MYSQL *tx_new(void);

/* Through the proxy p, unencrypted. */
MYSQL *tx_through(const struct proxy *p, unsigned long flags);

/* The same, but each read waits for at most a second. */
MYSQL *tx_hasty(const struct proxy *p, unsigned long flags);

/* Begins a transaction, takes its snapshot, and writes `id` into the ledger
 * (0: nothing). */
void tx_begin(MYSQL *tx, int id);

/* Asks the server. */
bool tx_is_open(MYSQL *tx);

/* Commits the transaction, which must be open, and whose writes must still be there. */
void tx_commits(MYSQL *tx, int id);

/* What the ledger shows to others; dies if `id` is there twice. */
bool ledger_has(int id);

/* The transaction has ended, and left no row and no lock behind. */
void nothing_is_left_of(MYSQL *tx, int id);

/* Closes the connection before the test ends. */
void tx_close(MYSQL *tx);

/* ---- the three functions under one hat ------------------------------------- */

enum tx_call { ROW_LOCK, FENCE, COMMIT, CALLS };

/* bizlock_row_lock(), _fence() or _commit() with the calling thread as owner. */
int tx_call(enum tx_call which, bizlock *b, bizlock_key key, MYSQL *tx);

/* Does another transaction find the row lock taken? */
bool row_is_locked(bizlock *b, bizlock_key key);

/* ---- a call that takes its time --------------------------------------------- */

struct tx_thread {
	bizlock *b;
	const char *id;
	MYSQL *tx;
	uint32_t flags;
	int rc;
	char errmsg[512];
	atomic_bool done;
	pthread_t thread;
};

/* bizlock_row_lock() in a thread. */
void row_lock_start(struct tx_thread *t, bizlock *b, const char *id, MYSQL *tx, uint32_t flags);
int row_lock_join(struct tx_thread *t);

#endif
