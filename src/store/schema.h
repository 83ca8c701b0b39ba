/* bizlock's tables: are they there, as they must be; and making them. */
#ifndef BL_STORE_SCHEMA_H
#define BL_STORE_SCHEMA_H

#include "store/session.h"

/* SCHEMA, saying what to do: tables missing, of another version, or not InnoDB. */
int bl_schema_check(struct bl_session *s, const char *prefix, struct bl_err *err);

/* Applies the migrations that have not been. SCHEMA: newer than this library,
 * or a table that is there has the wrong engine. */
int bl_schema_migrate(struct bl_session *s, const char *prefix, struct bl_err *err);

#endif
