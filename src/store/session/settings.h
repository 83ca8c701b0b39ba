/* What a session of bizlock's says to the server before anything else, so that nothing which an
 * administrator has set for everybody changes what its statements mean. */
#ifndef BL_STORE_SESSION_SETTINGS_H
#define BL_STORE_SESSION_SETTINGS_H

#include "base/buf.h"

/* Adds the variables alone. */
void bl_settings_variables(struct bl_buf *ret);

/* Adds them, and what undoes the rest of an init_connect. in_group: and those that the members of a
 * group know. */
void bl_settings_all(struct bl_buf *ret, const char *database, bool in_group);

#endif
