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

typedef void bl_fact_fn(void *arg, const struct bl_fact *fact);

/* Calls fn for each fact of the tables that are there and have keys, in the order of their names.
 * CONN, DB. */
int bl_tables_look(struct bl_session *s, const char *prefix, bl_fact_fn *fn, void *arg,
                   struct bl_err *err);

/* The same for a packet with other statements: the question, and what its answer says, which has
 * BL_TABLES_COLUMNS. */
enum { BL_TABLES_COLUMNS = 6 };
void bl_tables_ask(struct bl_buf *to, const char *prefix);
void bl_tables_judge(struct bl_rows *rows, const char *prefix, bl_fact_fn *fn, void *arg);

/* The enum bl_table of a table's name, in whatever case the server keeps names; -1: none of
 * bizlock's. */
int bl_table_of(const char *prefix, const char *name);

#endif
