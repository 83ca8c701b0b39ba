/* Locks as a table, or as JSON, by libsmartcols. */
#include <inttypes.h>
#include <libsmartcols.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command/locks.h"

#define CELL_SIZE 128 /* as the longest part of an owner */

/* The text of a cell: a text of the lock, or a text made in buf. */
typedef const char *cell_fn(const struct cli_lock *lock, char buf[CELL_SIZE]);

static const char *biz_type(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	(void)buf;
	return lock->biz_type;
}

static const char *biz_id(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	(void)buf;
	return lock->biz_id;
}

static const char *owner(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	(void)buf;
	return lock->owner;
}

static const char *note(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	(void)buf;
	return lock->note;
}

static const char *state(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	(void)buf;
	return cli_lock_state(lock);
}

static const char *mode_name(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	(void)buf;
	return cli_lock_mode(lock);
}

static const char *mode(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	if (!cli_lock_has_slot(lock))
		return cli_lock_mode(lock);
	snprintf(buf, CELL_SIZE, "%s %" PRIu32 "/%" PRIu32, cli_lock_mode(lock), lock->slot,
	         lock->limit);
	return buf;
}

static const char *slot(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	snprintf(buf, CELL_SIZE, "%" PRIu32, lock->slot);
	return buf;
}

static const char *limit(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	snprintf(buf, CELL_SIZE, "%" PRIu32, lock->limit);
	return buf;
}

static const char *owner_name(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	struct cli_owner o;

	cli_owner_read(lock->owner, &o);
	snprintf(buf, CELL_SIZE, "%s",
	         !*lock->owner             ? "(resting)"
	         : cli_owner_is_ticket(&o) ? "(ticket)"
	                                   : o.name);
	return buf;
}

static const char *owner_host(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	struct cli_owner o;

	cli_owner_read(lock->owner, &o);
	snprintf(buf, CELL_SIZE, "%s", o.host);
	return buf;
}

static const char *owner_pid(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	struct cli_owner o;

	cli_owner_read(lock->owner, &o);
	snprintf(buf, CELL_SIZE, "%s", o.pid);
	return buf;
}

/* JSON has no empty number. */
static const char *pid_number(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	owner_pid(lock, buf);
	return *buf ? buf : "null";
}

static const char *fence(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	snprintf(buf, CELL_SIZE, "%" PRIu64, lock->fence);
	return buf;
}

static const char *depth(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	snprintf(buf, CELL_SIZE, "%" PRIu32, lock->depth);
	return buf;
}

static const char *held(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	return cli_show_duration(lock->held_ms < 0 ? 0 : lock->held_ms, buf);
}

static const char *left(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	char time[CLI_DURATION_SIZE];

	if (lock->left_ms > 0)
		return cli_show_duration(lock->left_ms, buf);
	snprintf(buf, CELL_SIZE, "over for %s", cli_show_duration(-lock->left_ms, time));
	return buf;
}

static const char *held_ms(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	snprintf(buf, CELL_SIZE, "%" PRId64, lock->held_ms);
	return buf;
}

static const char *left_ms(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	snprintf(buf, CELL_SIZE, "%" PRId64, lock->left_ms);
	return buf;
}

static const char *waiting(const struct cli_lock *lock, char buf[CELL_SIZE])
{
	snprintf(buf, CELL_SIZE, "%u", lock->waiting);
	return lock->waiting ? buf : "";
}

struct column {
	const char *name;
	cell_fn *cell;
	int flags, json; /* json: its type in JSON */
};

static const struct column table_columns[] = {
        {"TYPE", biz_type, 0, 0},
        {"ID", biz_id, 0, 0},
        {"MODE", mode, 0, 0},
        {"OWNER", owner_name, 0, 0},
        {"HOST", owner_host, 0, 0},
        {"PID", owner_pid, SCOLS_FL_RIGHT, 0},
        {"FENCE", fence, SCOLS_FL_RIGHT, 0},
        {"DEPTH", depth, SCOLS_FL_RIGHT, 0},
        {"HELD", held, SCOLS_FL_RIGHT, 0},
        {"LEFT", left, SCOLS_FL_RIGHT, 0},
        {"NOTE", note, SCOLS_FL_TRUNC, 0},
        {0},
};

static const struct column watch_columns[] = {
        {"TYPE", biz_type, 0, 0},
        {"ID", biz_id, 0, 0},
        {"MODE", mode, 0, 0},
        {"WAITING", waiting, SCOLS_FL_RIGHT, 0},
        {"OWNER", owner_name, 0, 0},
        {"HOST", owner_host, 0, 0},
        {"PID", owner_pid, SCOLS_FL_RIGHT, 0},
        {"FENCE", fence, SCOLS_FL_RIGHT, 0},
        {"HELD", held, SCOLS_FL_RIGHT, 0},
        {"LEFT", left, SCOLS_FL_RIGHT, 0},
        {"NOTE", note, SCOLS_FL_TRUNC, 0},
        {0},
};

static const struct column json_columns[] = {
        {"biz_type", biz_type, 0, SCOLS_JSON_STRING},
        {"biz_id", biz_id, 0, SCOLS_JSON_STRING},
        {"state", state, 0, SCOLS_JSON_STRING},
        {"owner", owner, 0, SCOLS_JSON_STRING},
        {"host", owner_host, 0, SCOLS_JSON_STRING},
        {"pid", pid_number, 0, SCOLS_JSON_NUMBER},
        {"fence", fence, 0, SCOLS_JSON_NUMBER},
        {"depth", depth, 0, SCOLS_JSON_NUMBER},
        {"mode", mode_name, 0, SCOLS_JSON_STRING},
        {"slot", slot, 0, SCOLS_JSON_NUMBER},
        {"limit", limit, 0, SCOLS_JSON_NUMBER},
        {"held_ms", held_ms, 0, SCOLS_JSON_NUMBER},
        {"left_ms", left_ms, 0, SCOLS_JSON_NUMBER},
        {"note", note, 0, SCOLS_JSON_STRING},
        {0},
};

static const struct column *columns_of(enum cli_form form)
{
	switch (form) {
	case CLI_FORM_TABLE:
		return table_columns;
	case CLI_FORM_WATCH:
		return watch_columns;
	case CLI_FORM_JSON:
		break;
	}
	return json_columns;
}

/* For JSON, all columns are declared as numbers, which libsmartcols prints unchanged: it would
 * print an empty string as null, and would not escape characters that harm a terminal. */
static bool add_columns(struct libscols_table *table, const struct column *columns)
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
static char *cell_text(const struct column *column, const struct cli_lock *lock, bool json)
{
	char buf[CELL_SIZE];
	const char *text = column->cell(lock, buf);

	if (!json)
		return cli_safe(text);
	return column->json == SCOLS_JSON_STRING ? cli_json_string(text) : strdup(text);
}

static bool add_line(struct libscols_table *table, const struct column *columns,
                     const struct cli_lock *lock, bool json)
{
	struct libscols_line *line = scols_table_new_line(table, NULL);

	for (size_t i = 0; line && columns[i].name; i++) {
		char *cell = cell_text(&columns[i], lock, json);

		if (!cell || scols_line_refer_data(line, i, cell) != 0) {
			free(cell);
			return false;
		}
	}
	return line != NULL;
}

static bool fill(struct libscols_table *table, const struct cli_locks *locks, enum cli_form form)
{
	const struct column *columns = columns_of(form);
	bool json = form == CLI_FORM_JSON, done = add_columns(table, columns);

	for (size_t i = 0; done && i < locks->count; i++)
		done = add_line(table, columns, &locks->list[i], json);
	return done && scols_table_enable_json(table, json) == 0 &&
	       scols_table_set_name(table, "locks") == 0 &&
	       scols_table_enable_noencoding(table, true) == 0;
}

static void fit(struct libscols_table *table, size_t width)
{
	scols_table_set_termforce(table, width ? SCOLS_TERMFORCE_ALWAYS : SCOLS_TERMFORCE_NEVER);
	if (width)
		scols_table_set_termwidth(table, width);
}

char *cli_locks_text(const struct cli_locks *locks, enum cli_form form, size_t width)
{
	bool head_only = form == CLI_FORM_TABLE && width && locks->count == 0;
	struct libscols_table *table;
	char *ret = NULL;

	/* Without locks libsmartcols prints nothing, which is no JSON, and no answer on a terminal.
	 * So a table gets a line, of which only the head is kept. */
	if (form == CLI_FORM_JSON && locks->count == 0)
		return strdup("{\n   \"locks\": []\n}");
	table = scols_new_table();
	if (table && fill(table, locks, form) &&
	    (!head_only || scols_table_new_line(table, NULL))) {
		fit(table, width);
		if (scols_print_table_to_string(table, &ret) != 0)
			ret = NULL;
	}
	scols_unref_table(table);
	if (ret && head_only)
		ret[strcspn(ret, "\n")] = '\0';
	return ret;
}
