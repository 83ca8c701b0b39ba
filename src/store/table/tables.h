/* What bizlock takes for granted of its tables, as information_schema tells it: bizlock_open()
 * refuses what is not so, and the doctor shows it. */
#ifndef BL_STORE_TABLE_TABLES_H
#define BL_STORE_TABLE_TABLES_H

#include "store/table/grants.h"

/* That of which a flaw does most harm first. */
enum bl_fact_of { BL_FACT_ENGINE, BL_FACT_KEY, BL_FACT_INDEX, BL_FACT_COLLATION, BL_FACT_COUNTER };

struct bl_fact {
	enum bl_fact_of of;
	enum bl_table table;
	uint64_t counter; /* ENGINE: the next fence; 0: not told */
	char text[256];   /* "biz_lock: MyISAM" */
	char remedy[512]; /* "": it is as it must be. Of a table that has one more INDEX locks are
	                     safe nevertheless */
};

/* Calls fn for each fact of the tables that are there and hold locks, in the order of their names.
 * CONN, DB. */
int bl_tables_look(struct bl_session *s, const char *prefix,
                   void (*fn)(void *arg, const struct bl_fact *fact), void *arg,
                   struct bl_err *err);

/* That of a table's name, whatever case the server keeps names in; -1: none of bizlock's. */
int bl_table_of(const char *prefix, const char *name);

#endif
