/* The files of sql/, in order, embedded by the build. */
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

#endif
