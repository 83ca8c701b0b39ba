/* Locks as a table, or as JSON. */
#include <inttypes.h>
#include <libsmartcols.h>
#include <stdio.h>
#include <string.h>

#include "cli/command/locks.h"
#include "cli/command/table.h"

static const char *biz_type(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;

	(void)buf;
	return lock->biz_type;
}

static const char *biz_id(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;

	(void)buf;
	return lock->biz_id;
}

static const char *owner(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;

	(void)buf;
	return lock->owner;
}

static const char *note(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;

	(void)buf;
	return lock->note;
}

static const char *state(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;

	(void)buf;
	return cli_lock_state(lock);
}

static const char *mode_name(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;

	(void)buf;
	return cli_lock_mode(lock);
}

static const char *mode(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;

	if (!cli_lock_has_slot(lock))
		return cli_lock_mode(lock);
	snprintf(buf, CLI_CELL_SIZE, "%s %" PRIu32 "/%" PRIu32, cli_lock_mode(lock), lock->slot,
	         lock->limit);
	return buf;
}

static const char *slot(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;

	snprintf(buf, CLI_CELL_SIZE, "%" PRIu32, lock->slot);
	return buf;
}

static const char *limit(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;

	snprintf(buf, CLI_CELL_SIZE, "%" PRIu32, lock->limit);
	return buf;
}

static const char *owner_name(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;
	struct cli_owner o;

	cli_owner_read(lock->owner, &o);
	snprintf(buf, CLI_CELL_SIZE, "%s",
	         !*lock->owner             ? "(resting)"
	         : cli_owner_is_ticket(&o) ? "(ticket)"
	                                   : o.name);
	return buf;
}

static const char *owner_host(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;
	struct cli_owner o;

	cli_owner_read(lock->owner, &o);
	snprintf(buf, CLI_CELL_SIZE, "%s", o.host);
	return buf;
}

static const char *owner_pid(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;
	struct cli_owner o;

	cli_owner_read(lock->owner, &o);
	snprintf(buf, CLI_CELL_SIZE, "%s", o.pid);
	return buf;
}

/* JSON has no empty number. */
static const char *pid_number(const void *item, char buf[CLI_CELL_SIZE])
{
	owner_pid(item, buf);
	return *buf ? buf : "null";
}

static const char *fence(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;

	snprintf(buf, CLI_CELL_SIZE, "%" PRIu64, lock->fence);
	return buf;
}

static const char *depth(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;

	snprintf(buf, CLI_CELL_SIZE, "%" PRIu32, lock->depth);
	return buf;
}

static const char *held(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;

	return cli_show_duration(lock->held_ms < 0 ? 0 : lock->held_ms, buf);
}

static const char *left(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;
	char time[CLI_DURATION_SIZE];

	if (lock->left_ms > 0)
		return cli_show_duration(lock->left_ms, buf);
	snprintf(buf, CLI_CELL_SIZE, "over for %s", cli_show_duration(-lock->left_ms, time));
	return buf;
}

static const char *held_ms(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;

	snprintf(buf, CLI_CELL_SIZE, "%" PRId64, lock->held_ms);
	return buf;
}

static const char *left_ms(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;

	snprintf(buf, CLI_CELL_SIZE, "%" PRId64, lock->left_ms);
	return buf;
}

static const char *waiting(const void *item, char buf[CLI_CELL_SIZE])
{
	const struct cli_lock *lock = item;

	snprintf(buf, CLI_CELL_SIZE, "%u", lock->waiting);
	return lock->waiting ? buf : "";
}

static const struct cli_column table_columns[] = {
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

static const struct cli_column watch_columns[] = {
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

static const struct cli_column json_columns[] = {
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

static const struct cli_column *columns_of(enum cli_form form)
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

static struct cli_table table_of(const struct cli_locks *locks, enum cli_form form)
{
	return (struct cli_table){.name = "locks",
	                          .columns = columns_of(form),
	                          .items = locks->list,
	                          .count = locks->count,
	                          .item_size = sizeof(*locks->list),
	                          .json = form == CLI_FORM_JSON,
	                          .head = form == CLI_FORM_TABLE};
}

char *cli_locks_text(const struct cli_locks *locks, enum cli_form form, size_t width)
{
	struct cli_table table = table_of(locks, form);

	return cli_table_text(&table, width);
}

int cli_print_locks(const struct cli_locks *locks, bool json)
{
	struct cli_table table = table_of(locks, json ? CLI_FORM_JSON : CLI_FORM_TABLE);

	return cli_table_print(locks->failed ? NULL : &table);
}
