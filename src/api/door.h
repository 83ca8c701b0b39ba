/* In and out, for public functions that stand in other files than api.c. */
#ifndef BL_API_DOOR_H
#define BL_API_DOOR_H

#include "base/err.h"

/* what: the function, for messages. INVALID: no client; MISUSE: not open, or of
 * the parent process. On OK bl_door_out() must follow. */
int bl_door_in(bizlock *b, const char *what, struct bl_err **ret_err);

/* Keeps err for bizlock_errmsg() unless rc is OK. Returns rc. */
int bl_door_out(bizlock *b, const char *what, struct bl_err *err, int rc);

#endif
