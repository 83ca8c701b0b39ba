/* bizlock_tx.h stands alone, with the connector's header. */
#include <bizlock_tx.h>

int is_committed(bizlock *lock, MYSQL *tx);

int is_committed(bizlock *lock, MYSQL *tx)
{
	bizlock_key key = {"order", "4711"};

	return bizlock_connect(lock, tx) == BIZLOCK_OK &&
	       bizlock_tx_verify_fence(lock, key, 1, tx) == BIZLOCK_OK &&
	       bizlock_row_lock(lock, key, tx, BIZLOCK_ROW_SKIP) == BIZLOCK_OK &&
	       bizlock_fence(lock, key, 0, tx) == BIZLOCK_OK &&
	       bizlock_commit(lock, key, 0, tx) == BIZLOCK_OK;
}
