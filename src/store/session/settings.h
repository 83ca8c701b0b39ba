/* The settings that a session makes before anything else, so that no global setting of an
 * administrator changes what its statements mean. */
#ifndef BL_STORE_SESSION_SETTINGS_H
#define BL_STORE_SESSION_SETTINGS_H

#include "base/buf.h"

/* Adds the variables alone. */
void bl_settings_variables(struct bl_buf *ret);

/* Adds the variables, and statements that undo other effects of an init_connect. in_group: also
 * variables that only members of a group know. */
void bl_settings_all(struct bl_buf *ret, const char *database, bool in_group);

#endif
