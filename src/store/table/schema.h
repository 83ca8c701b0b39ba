/* bizlock's tables: are they there, as they must be; and making them. */
#ifndef BL_STORE_TABLE_SCHEMA_H
#define BL_STORE_TABLE_SCHEMA_H

#include "store/session/session.h"
#include "store/table/migrations.h"

/* What a call answers at last: a table that is gone, or its database, is no error of a statement,
 * but SCHEMA, with what to do. Returns the code, which is rc for all else. */
int bl_err_missing(struct bl_err *err, int rc);

#define BL_SCHEMA_ADVICE                                                                           \
	"run bizlock migrate, call bizlock_migrate(), or apply the files of sql/ to this database"

unsigned bl_schema_newest(void); /* that this library knows */

struct bl_version {
	unsigned version;      /* the newest migration that was applied; 0: none */
	unsigned needs_client; /* the newest one that a client has to know */
};

/* That of the tables. CONN, DB. */
int bl_schema_version(struct bl_session *s, const char *prefix, struct bl_version *ret,
                      struct bl_err *err);

/* SCHEMA, saying what to do: tables missing, in need of a newer library, or not as tables.h has
 * them. */
int bl_schema_check(struct bl_session *s, const char *prefix, struct bl_err *err);

/* Applies the migrations that have not been. SCHEMA: they need a newer library,
 * or a table that is there is not as it must be. */
int bl_schema_migrate(struct bl_session *s, const char *prefix, struct bl_err *err);

struct bl_applied {
	char at[32];  /* UTC, as the server writes it; "": not applied */
	bool pending; /* bl_schema_migrate() would apply it now */
};

/* ret: one for each of bl_migrations[]. SCHEMA, and ret is filled nevertheless: they
 * need a newer library. CONN, DB. */
int bl_schema_status(struct bl_session *s, const char *prefix, struct bl_applied *ret,
                     struct bl_err *err);

/* What is sent to apply it. */
void bl_schema_text(const struct bl_migration *m, const char *prefix, struct bl_buf *ret);

#endif
