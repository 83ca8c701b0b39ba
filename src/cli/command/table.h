/* Things of one kind as a table, or as JSON, by libsmartcols. */
#ifndef CLI_COMMAND_TABLE_H
#define CLI_COMMAND_TABLE_H

#include "cli/cli.h"

#define CLI_CELL_SIZE 128 /* as the longest part of an owner */

/* The text of a cell: a text of the item, or a text made in buf. */
typedef const char *cli_cell_fn(const void *item, char buf[CLI_CELL_SIZE]);

struct cli_column {
	const char *name;
	cli_cell_fn *cell;
	int flags, json; /* json: SCOLS_JSON_STRING, or SCOLS_JSON_NUMBER for what stands for
	                    itself, "null" too */
};

struct cli_table {
	const char *name;                 /* of the list, in JSON */
	const struct cli_column *columns; /* ends with one that has no name */
	const void *items;
	size_t count, item_size;
	bool json;
	bool head; /* an empty table has a head on a terminal */
};

/* width: of the terminal, 0: any. To be freed; NULL: out of memory. */
char *cli_table_text(const struct cli_table *t, size_t width);

/* Prints the table, as wide as the terminal; NULL: there was no memory for it. Returns an exit
 * code. */
int cli_table_print(const struct cli_table *t);

#endif
