/* bizlock doctor: the findings as a table, or as JSON. */
#include <libsmartcols.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"

struct options {
	bool json;
};

const struct cli_option cli_doctor_options[] = {
        {"json", 0, CLI_FLAG, offsetof(struct options, json), 0, 0, NULL, "the findings as JSON"},
        {0},
};

const char cli_doctor_more[] =
        "Checks whether bizlock can work with this server, these tables and this user. A\n"
        "line each: good, warn (locks work, but slower or less durably) or bad, with the\n"
        "remedy. Changes nothing that stays. Exits by 1 if something is bad.\n";

struct findings {
	struct libscols_table *table; /* NULL: as text */
	bool bad, failed;
};

static const char *level_name(int level)
{
	switch ((enum bizlock_level)level) {
	case BIZLOCK_GOOD:
		return "good";
	case BIZLOCK_WARN:
		return "warn";
	case BIZLOCK_BAD:
		break;
	}
	return "bad";
}

static void print_finding(const bizlock_finding *f)
{
	cli_print("%-4s  %-15s %s", level_name(f->level), f->name, f->text);
	if (*f->remedy)
		cli_print("      %-15s %s", "  remedy:", f->remedy);
}

static bool add_finding(struct libscols_table *table, const bizlock_finding *f)
{
	const char *cells[] = {f->name, level_name(f->level), f->text, f->remedy};
	struct libscols_line *line = scols_table_new_line(table, NULL);

	for (size_t i = 0; line && i < sizeof(cells) / sizeof(cells[0]); i++) {
		char *cell = cli_json_string(cells[i]);

		if (!cell || scols_line_refer_data(line, i, cell) != 0) {
			free(cell);
			return false;
		}
	}
	return line != NULL;
}

static int show(void *arg, const bizlock_finding *f)
{
	struct findings *all = arg;

	all->bad = all->bad || f->level == BIZLOCK_BAD;
	if (!all->table)
		print_finding(f);
	else if (!add_finding(all->table, f))
		all->failed = true;
	return all->failed;
}

static struct libscols_table *new_table(void)
{
	static const char *const names[] = {"name", "level", "text", "remedy"};
	struct libscols_table *table = scols_new_table();
	bool done = table && scols_table_enable_json(table, 1) == 0 &&
	            scols_table_enable_noencoding(table, 1) == 0 &&
	            scols_table_set_name(table, "findings") == 0;

	for (size_t i = 0; done && i < sizeof(names) / sizeof(names[0]); i++) {
		struct libscols_column *column = scols_table_new_column(table, names[i], 0, 0);

		/* as in the JSON of locks */
		done = column && scols_column_set_json_type(column, SCOLS_JSON_NUMBER) == 0;
	}
	if (done)
		return table;
	scols_unref_table(table);
	return NULL;
}

int cli_doctor(struct cli *c)
{
	struct options o = {false};
	struct findings all = {0};
	int code = cli_parse(c, &o), rc;

	if (code == CLI_GO_ON)
		code = cli_password(c);
	if (code != CLI_GO_ON)
		return code;
	all.table = o.json ? new_table() : NULL;
	all.failed = o.json && !all.table;
	rc = all.failed ? BIZLOCK_OK : bizlock_doctor(c->lock, show, &all);
	if (all.table && !all.failed && scols_print_table(all.table) == 0)
		printf("\n");
	scols_unref_table(all.table);
	if (all.failed) {
		cli_say("out of memory");
		return CLI_INTERNAL;
	}
	if (rc != BIZLOCK_OK)
		return cli_failed(c, rc);
	return all.bad ? CLI_NO : CLI_DONE;
}
