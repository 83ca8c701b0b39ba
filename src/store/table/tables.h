/* What bizlock requires of its tables, as information_schema shows them: bizlock_open() refuses
 * tables of locks that are otherwise, and the doctor shows the flaw. */
#ifndef BL_STORE_TABLE_TABLES_H
#define BL_STORE_TABLE_TABLES_H

#include "store/table/grants.h"

/* In the order of the harm that a flaw does, most harm first. */
enum bl_fact_of { BL_FACT_ENGINE, BL_FACT_KEY, BL_FACT_INDEX, BL_FACT_COLLATION, BL_FACT_COUNTER };

struct bl_fact {
	enum bl_fact_of of;
	enum bl_table table;
	uint64_t counter; /* ENGINE: the next fence; 0: not told */
	char text[256];   /* "biz_lock: MyISAM" */
	char remedy[512]; /* "": it is as it must be. With one INDEX too many locks are safe
	                     nevertheless */
};

/* Calls fn for each fact of the tables that are there and have keys, in the order of their names.
 * CONN, DB. */
int bl_tables_look(struct bl_session *s, const char *prefix,
                   void (*fn)(void *arg, const struct bl_fact *fact), void *arg,
                   struct bl_err *err);

/* The enum bl_table of a table's name, in whatever case the server keeps names; -1: none of
 * bizlock's. */
int bl_table_of(const char *prefix, const char *name);

#endif
