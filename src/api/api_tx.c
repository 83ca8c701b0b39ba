/* The public door of bizlock_tx.h. */
#include "bizlock_tx.h"

#include "api/door.h"
#include "client/request/in_tx.h"

int bizlock_connect(bizlock *b, MYSQL *tx)
{
	struct bl_err *err = bl_door_error();
	int rc = bl_door_in(b, "connect", err, BIZLOCK_OK);

	return rc == BIZLOCK_OK ? bl_door_out(b, "connect", err, bl_client_tx_connect(b, tx, err))
	                        : rc;
}

int bizlock_row_lock(bizlock *b, bizlock_key key, MYSQL *tx, uint32_t flags)
{
	struct bl_call call;
	int rc = bl_door_call(&call, b, key, NULL, "row_lock");

	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_key_check_taken(&call.key, call.err);
	if (rc == BIZLOCK_OK && (flags & ~(BIZLOCK_ROW_WAIT | BIZLOCK_ROW_SKIP) ||
	                         flags == (BIZLOCK_ROW_WAIT | BIZLOCK_ROW_SKIP)))
		rc = bl_err_set(call.err, BIZLOCK_INVALID,
		                "flags must be 0, BIZLOCK_ROW_WAIT or BIZLOCK_ROW_SKIP");
	else if (rc == BIZLOCK_OK)
		rc = bl_client_tx_row_lock(&call, tx,
		                           flags & BIZLOCK_ROW_WAIT   ? BL_ROW_WAIT
		                           : flags & BIZLOCK_ROW_SKIP ? BL_ROW_SKIP
		                                                      : BL_ROW_NOWAIT);
	return bl_door_called(&call, "row_lock", rc);
}

int bizlock_fence(bizlock *b, bizlock_key key, const char *owner, MYSQL *tx)
{
	struct bl_call call;
	int rc = bl_door_call(&call, b, key, owner, "fence");

	return rc == BIZLOCK_OK ? bl_door_called(&call, "fence", bl_client_tx_fence(&call, tx))
	                        : rc;
}

int bizlock_commit(bizlock *b, bizlock_key key, const char *owner, MYSQL *tx)
{
	struct bl_call call;
	int rc = bl_door_call(&call, b, key, owner, "commit");

	return rc == BIZLOCK_OK ? bl_door_called(&call, "commit", bl_client_tx_commit(&call, tx))
	                        : rc;
}

int bizlock_tx_verify_fence(bizlock *b, bizlock_key key, uint64_t fence, MYSQL *tx)
{
	struct bl_call call;
	int rc = bl_door_call(&call, b, key, NULL, "tx_verify_fence");

	if (rc != BIZLOCK_OK)
		return rc;
	return bl_door_called(&call, "tx_verify_fence",
	                      bl_client_tx_verify_fence(&call, fence, tx));
}
