/* The files of sql/, embedded by the build: the numbered ones, in order, and the routines. */
#ifndef BL_STORE_TABLE_MIGRATIONS_H
#define BL_STORE_TABLE_MIGRATIONS_H

#include <stddef.h>

struct bl_migration {
	unsigned version; /* the number the file's name begins with */
	const char *name; /* of the file: "001_init.sql" */
	const char *text;
};

extern const struct bl_migration bl_migrations[];
extern const size_t bl_migration_count;

extern const char bl_routines_sql[]; /* routines.sql */

#endif
