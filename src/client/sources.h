/* Where options come from besides bizlock_set(): environment and option files. */
#ifndef BL_CLIENT_SOURCES_H
#define BL_CLIENT_SOURCES_H

#include "client/state.h"

/* A copy of the options in force (before open: of those that were set), completed from environment
 * and option files; to be freed. The mutex is free. INVALID, NOMEM. */
int bl_client_config(struct bizlock *b, struct bl_config *ret, struct bl_err *err);

/* Sets the password for connections that are made from now on. The client is open. INVALID,
 * NOMEM. */
int bl_client_password(struct bizlock *b, const char *value, struct bl_err *err);

/* For failover.h: reads a password from an option file again, where it may have been changed. */
void bl_client_reread_password(void *client);

#endif
