/* Inside a transaction of the application's: row lock, fence, commit. */
#ifndef BL_CLIENT_REQUEST_IN_TX_H
#define BL_CLIENT_REQUEST_IN_TX_H

#include "client/state.h"
#include "store/tx/tx.h"

int bl_client_tx_row_lock(struct bl_call *call, MYSQL *mysql, enum bl_row_how how);
int bl_client_tx_connect(struct bizlock *b, MYSQL *mysql, struct bl_err *err);
int bl_client_tx_fence(struct bl_call *call, MYSQL *mysql);
int bl_client_tx_commit(struct bl_call *call, MYSQL *mysql);
int bl_client_tx_verify_fence(struct bl_call *call, uint64_t fence, MYSQL *mysql);

#endif
