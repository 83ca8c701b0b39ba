/* Runs as a table, or as JSON. */
#include <inttypes.h>
#include <libsmartcols.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/command/locks.h"
#include "cli/command/run_list.h"
#include "cli/command/table.h"

static const bizlock_run *run_of(const void *item)
{
	return &((const struct cli_run *)item)->run;
}

/* ---- who and what ------------------------------------------------------------------------ */

static const char *biz_type(const void *item, char buf[CLI_CELL_SIZE])
{
	(void)buf;
	return ((const struct cli_run *)item)->biz_type;
}

static const char *biz_id(const void *item, char buf[CLI_CELL_SIZE])
{
	(void)buf;
	return ((const struct cli_run *)item)->biz_id;
}

static const char *owner(const void *item, char buf[CLI_CELL_SIZE])
{
	(void)buf;
	return ((const struct cli_run *)item)->owner;
}

static const char *host(const void *item, char buf[CLI_CELL_SIZE])
{
	struct cli_owner o;

	cli_owner_read(owner(item, buf), &o);
	snprintf(buf, CLI_CELL_SIZE, "%s", o.host);
	return buf;
}

static const char *pid(const void *item, char buf[CLI_CELL_SIZE])
{
	struct cli_owner o;

	cli_owner_read(owner(item, buf), &o);
	snprintf(buf, CLI_CELL_SIZE, "%s", o.pid);
	return buf;
}

/* JSON has no empty number. */
static const char *pid_number(const void *item, char buf[CLI_CELL_SIZE])
{
	return *pid(item, buf) ? buf : "null";
}

static const char *fence(const void *item, char buf[CLI_CELL_SIZE])
{
	snprintf(buf, CLI_CELL_SIZE, "%" PRIu64, run_of(item)->fence);
	return buf;
}

/* ---- how it ended -------------------------------------------------------------------------- */

static const char *outcome(const void *item, char buf[CLI_CELL_SIZE])
{
	(void)buf;
	return cli_run_outcome(run_of(item));
}

static const char *exit_code(const void *item, char buf[CLI_CELL_SIZE])
{
	if (run_of(item)->exit_code < 0)
		return "null";
	snprintf(buf, CLI_CELL_SIZE, "%" PRId32, run_of(item)->exit_code);
	return buf;
}

static const char *exit_signal(const void *item, char buf[CLI_CELL_SIZE])
{
	if (!run_of(item)->exit_signal)
		return "null";
	snprintf(buf, CLI_CELL_SIZE, "%" PRIu32, run_of(item)->exit_signal);
	return buf;
}

static const char *code_or_signal(const void *item, char buf[CLI_CELL_SIZE])
{
	if (run_of(item)->exit_signal)
		return cli_run_signal(run_of(item), buf);
	return run_of(item)->exit_code < 0 ? "" : exit_code(item, buf);
}

/* ---- when ------------------------------------------------------------------------------------ */

static const char *show_ago(const void *item, int64_t then_us, char buf[CLI_CELL_SIZE])
{
	char since[CLI_DURATION_SIZE];

	snprintf(buf, CLI_CELL_SIZE, "%s ago", cli_run_since(run_of(item), then_us, since));
	return buf;
}

static const char *began(const void *item, char buf[CLI_CELL_SIZE])
{
	return show_ago(item, run_of(item)->began_us, buf);
}

static const char *succeeded(const void *item, char buf[CLI_CELL_SIZE])
{
	if (!run_of(item)->succeeded_us)
		return "never";
	return show_ago(item, run_of(item)->succeeded_us, buf);
}

static int64_t took_ms_of(const bizlock_run *run)
{
	return run->ended_us > run->began_us ? (run->ended_us - run->began_us) / 1000 : 0;
}

static const char *took(const void *item, char buf[CLI_CELL_SIZE])
{
	if (!run_of(item)->ended_us)
		return "";
	return cli_show_duration(took_ms_of(run_of(item)), buf);
}

static const char *took_ms(const void *item, char buf[CLI_CELL_SIZE])
{
	if (!run_of(item)->ended_us)
		return "null";
	snprintf(buf, CLI_CELL_SIZE, "%" PRId64, took_ms_of(run_of(item)));
	return buf;
}

/* "2026-02-28T09:30:00.123Z", in quotes, or null. */
static const char *show_time(int64_t us, char buf[CLI_CELL_SIZE])
{
	time_t s = (time_t)(us / 1000000);
	char text[64];
	struct tm utc;

	if (us <= 0 || !gmtime_r(&s, &utc) ||
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc) == 0)
		return "null";
	snprintf(buf, CLI_CELL_SIZE, "\"%s.%03dZ\"", text, (int)(us / 1000 % 1000));
	return buf;
}

static const char *began_at(const void *item, char buf[CLI_CELL_SIZE])
{
	return show_time(run_of(item)->began_us, buf);
}

static const char *ended_at(const void *item, char buf[CLI_CELL_SIZE])
{
	return show_time(run_of(item)->ended_us, buf);
}

static const char *succeeded_at(const void *item, char buf[CLI_CELL_SIZE])
{
	return show_time(run_of(item)->succeeded_us, buf);
}

/* ---- how many -------------------------------------------------------------------------------- */

static const char *runs(const void *item, char buf[CLI_CELL_SIZE])
{
	snprintf(buf, CLI_CELL_SIZE, "%" PRIu64, run_of(item)->runs);
	return buf;
}

static const char *failures(const void *item, char buf[CLI_CELL_SIZE])
{
	snprintf(buf, CLI_CELL_SIZE, "%" PRIu64, run_of(item)->failures);
	return buf;
}

static const char *in_row(const void *item, char buf[CLI_CELL_SIZE])
{
	snprintf(buf, CLI_CELL_SIZE, "%" PRIu64, run_of(item)->failures_in_row);
	return buf;
}

/* ---- the tables ------------------------------------------------------------------------------ */

static const struct cli_column table_columns[] = {
        {"TYPE", biz_type, 0, 0},
        {"ID", biz_id, 0, 0},
        {"LAST", outcome, 0, 0},
        {"EXIT", code_or_signal, SCOLS_FL_RIGHT, 0},
        {"BEGAN", began, SCOLS_FL_RIGHT, 0},
        {"TOOK", took, SCOLS_FL_RIGHT, 0},
        {"SUCCESS", succeeded, SCOLS_FL_RIGHT, 0},
        {"RUNS", runs, SCOLS_FL_RIGHT, 0},
        {"FAILED", failures, SCOLS_FL_RIGHT, 0},
        {"IN-ROW", in_row, SCOLS_FL_RIGHT, 0},
        {"HOST", host, 0, 0},
        {"PID", pid, SCOLS_FL_RIGHT, 0},
        {"FENCE", fence, SCOLS_FL_RIGHT, 0},
        {0},
};

static const struct cli_column json_columns[] = {
        {"biz_type", biz_type, 0, SCOLS_JSON_STRING},
        {"biz_id", biz_id, 0, SCOLS_JSON_STRING},
        {"outcome", outcome, 0, SCOLS_JSON_STRING},
        {"exit_code", exit_code, 0, SCOLS_JSON_NUMBER},
        {"exit_signal", exit_signal, 0, SCOLS_JSON_NUMBER},
        {"began_at", began_at, 0, SCOLS_JSON_NUMBER},
        {"ended_at", ended_at, 0, SCOLS_JSON_NUMBER},
        {"took_ms", took_ms, 0, SCOLS_JSON_NUMBER},
        {"succeeded_at", succeeded_at, 0, SCOLS_JSON_NUMBER},
        {"runs", runs, 0, SCOLS_JSON_NUMBER},
        {"failures", failures, 0, SCOLS_JSON_NUMBER},
        {"failures_in_row", in_row, 0, SCOLS_JSON_NUMBER},
        {"owner", owner, 0, SCOLS_JSON_STRING},
        {"host", host, 0, SCOLS_JSON_STRING},
        {"pid", pid_number, 0, SCOLS_JSON_NUMBER},
        {"fence", fence, 0, SCOLS_JSON_NUMBER},
        {0},
};

int cli_print_runs(const struct cli_runs *all, bool json)
{
	struct cli_table table = {.name = "runs",
	                          .columns = json ? json_columns : table_columns,
	                          .items = all->list,
	                          .count = all->count,
	                          .item_size = sizeof(*all->list),
	                          .json = json,
	                          .head = true};

	return cli_table_print(all->failed ? NULL : &table);
}
