/* What a session says and asks once, when it has connected: settings, whether the server is of use,
 * its mark. */
#ifndef BL_STORE_SESSION_STATE_H
#define BL_STORE_SESSION_STATE_H

#include "store/session.h"

/* CONN, DB when the settings are refused. */
int bl_session_settle(struct bl_session *s, const struct bl_config *c, struct bl_err *err);

/* The settings alone, where no database is chosen. */
int bl_session_settle_any(struct bl_session *s, struct bl_err *err);

#endif
