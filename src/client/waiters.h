/* Who waits for some keys. */
#ifndef BL_CLIENT_WAITERS_H
#define BL_CLIENT_WAITERS_H

#include "client/client.h"

int bl_client_waiters(struct bizlock *b, const struct bl_key *keys, size_t n,
                      int (*fn)(void *arg, const bizlock_waiter *), void *arg, struct bl_err *err);

#endif
