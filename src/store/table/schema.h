/* bizlock's tables: checks that they are there and as they must be, and migrations that make
 * them. */
#ifndef BL_STORE_TABLE_SCHEMA_H
#define BL_STORE_TABLE_SCHEMA_H

#include "store/session/session.h"
#include "store/table/migrations.h"

/* Makes the error of a missing table or database SCHEMA, with advice. Returns the code, which is rc
 * for all other errors. */
int bl_err_missing(struct bl_err *err, int rc);

#define BL_SCHEMA_ADVICE                                                                           \
	"run bizlock migrate, call bizlock_migrate(), or apply the files of sql/ to this database"

unsigned bl_schema_newest(void); /* that this library knows */

struct bl_version {
	unsigned version;      /* the newest migration that was applied; 0: none */
	unsigned needs_client; /* the newest migration that a client has to know */
};

/* The version of the tables. CONN, DB. */
int bl_schema_version(struct bl_session *s, const char *prefix, struct bl_version *ret,
                      struct bl_err *err);

/* SCHEMA, with advice: tables of locks are missing, need a newer library, or are not as tables.h
 * requires. */
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

/* Adds SQL of a file, with the prefix before its names. */
void bl_schema_prefix(const char *text, size_t len, const char *prefix, struct bl_buf *ret);

/* The SQL that applies a migration. */
void bl_schema_text(const struct bl_migration *m, const char *prefix, struct bl_buf *ret);

#endif
