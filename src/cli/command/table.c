#include "cli/command/table.h"

#include <libsmartcols.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* For JSON, all columns are declared as numbers, which libsmartcols prints unchanged: it would
 * print an empty string as null, and would not escape characters that harm a terminal. */
static bool add_columns(struct libscols_table *table, const struct cli_column *columns)
{
	for (; columns->name; columns++) {
		struct libscols_column *c =
		        scols_table_new_column(table, columns->name, 0, columns->flags);

		if (!c || scols_column_set_json_type(c, SCOLS_JSON_NUMBER) != 0)
			return false;
	}
	return true;
}

/* Escapes the text of strangers. To be freed. */
static char *cell_text(const struct cli_column *column, const void *item, bool json)
{
	char buf[CLI_CELL_SIZE];
	const char *text = column->cell(item, buf);

	if (!json)
		return cli_safe(text);
	return column->json == SCOLS_JSON_STRING ? cli_json_string(text) : strdup(text);
}

static bool add_line(struct libscols_table *table, const struct cli_table *t, size_t at)
{
	const void *item = (const char *)t->items + at * t->item_size;
	struct libscols_line *line = scols_table_new_line(table, NULL);

	for (size_t i = 0; line && t->columns[i].name; i++) {
		char *cell = cell_text(&t->columns[i], item, t->json);

		if (!cell || scols_line_refer_data(line, i, cell) != 0) {
			free(cell);
			return false;
		}
	}
	return line != NULL;
}

static bool fill(struct libscols_table *table, const struct cli_table *t)
{
	bool done = add_columns(table, t->columns);

	for (size_t i = 0; done && i < t->count; i++)
		done = add_line(table, t, i);
	return done && scols_table_enable_json(table, t->json) == 0 &&
	       scols_table_set_name(table, t->name) == 0 &&
	       scols_table_enable_noencoding(table, true) == 0;
}

static void fit(struct libscols_table *table, size_t width)
{
	scols_table_set_termforce(table, width ? SCOLS_TERMFORCE_ALWAYS : SCOLS_TERMFORCE_NEVER);
	if (width)
		scols_table_set_termwidth(table, width);
}

static char *empty_json(const char *name)
{
	char *ret;

	return asprintf(&ret, "{\n   \"%s\": []\n}", name) < 0 ? NULL : ret;
}

char *cli_table_text(const struct cli_table *t, size_t width)
{
	bool head_only = t->head && width && t->count == 0;
	struct libscols_table *table;
	char *ret = NULL;

	/* Without items libsmartcols prints nothing, which is no JSON, and no answer on a terminal.
	 * So a table gets a line, of which only the head is kept. */
	if (t->json && t->count == 0)
		return empty_json(t->name);
	table = scols_new_table();
	if (table && fill(table, t) && (!head_only || scols_table_new_line(table, NULL))) {
		fit(table, width);
		if (scols_print_table_to_string(table, &ret) != 0)
			ret = NULL;
	}
	scols_unref_table(table);
	if (ret && head_only)
		ret[strcspn(ret, "\n")] = '\0';
	return ret;
}

static size_t width_of_output(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
		return 0;
	return size.ws_col;
}

int cli_table_print(const struct cli_table *t)
{
	char *text = t ? cli_table_text(t, t->json ? 0 : width_of_output()) : NULL;

	if (!text)
		return cli_give_up(CLI_INTERNAL, "out of memory");
	if (*text)
		printf("%s%s", text, text[strlen(text) - 1] == '\n' ? "" : "\n");
	free(text);
	return CLI_DONE;
}
