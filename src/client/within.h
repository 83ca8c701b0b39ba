/* Inside a transaction of the application's: row lock, fence, commit. */
#ifndef BL_CLIENT_WITHIN_H
#define BL_CLIENT_WITHIN_H

#include "client/client.h"
#include "store/tx.h"

int bl_within_row_lock(struct bl_call *call, MYSQL *mysql, enum bl_row_how how);
int bl_within_fence(struct bl_call *call, MYSQL *mysql);
int bl_within_commit(struct bl_call *call, MYSQL *mysql);

#endif
