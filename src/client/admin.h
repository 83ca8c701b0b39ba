/* For those who look after a server and its tables. None of these needs an open client:
 * each has a connection of its own, if any. */
#ifndef BL_CLIENT_ADMIN_H
#define BL_CLIENT_ADMIN_H

#include "client/client.h"

int bl_client_doctor(struct bizlock *b, int (*fn)(void *arg, const bizlock_finding *), void *arg,
                     struct bl_err *err);

int bl_client_each_migration(struct bizlock *b, int (*fn)(void *arg, const bizlock_migration *),
                             void *arg, struct bl_err *err);

int bl_client_grants(struct bizlock *b, const char *account, struct bl_buf *ret,
                     struct bl_err *err);

#endif
