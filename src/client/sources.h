/* Where options come from. */
#ifndef BL_CLIENT_SOURCES_H
#define BL_CLIENT_SOURCES_H

#include "client/state.h"

/* A copy of what is in force, or else of what was set, filled from environment and option files;
 * to be freed. The mutex is free. INVALID, NOMEM. */
int bl_client_config(struct bizlock *b, struct bl_config *ret, struct bl_err *err);

/* The password, for connections that are made from now on. The client is open. INVALID, NOMEM. */
int bl_client_password(struct bizlock *b, const char *value, struct bl_err *err);

/* For failover.h: where it came from an option file it may have been changed there. */
void bl_client_reread_password(void *client);

#endif
