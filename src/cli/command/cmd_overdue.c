/* bizlock overdue: has a job succeeded in time? For cron, which mails what is printed, and for
 * monitoring, which goes by the exit code and shows the first line. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/command/locks.h"
#include "cli/command/run_list.h"
#include "cli/commands.h"

#define WITHIN_MAX_MS INT64_C(3153600000000) /* 100 years */
#define CLAUSE_SIZE 320

struct options {
	int64_t within_ms;
};

const struct cli_option cli_overdue_options[] = {
        {"within", 0, CLI_DURATION, offsetof(struct options, within_ms), 1, WITHIN_MAX_MS,
         "DURATION", "since the end of a run that was done; required"},
        {0},
};

const char cli_overdue_more[] =
        "Exits by 0, and says nothing, if a run of exec --record or --at-most-once-per\n"
        "was done within DURATION, by the server's clock. Else by 1, with a line that\n"
        "says when a run last was done, and how the last one ended.\n";

/* "did this": of the last run. */
static void describe(const bizlock_run *run, char ret[CLAUSE_SIZE])
{
	char number[CLI_SIGNAL_SIZE];

	switch ((enum bizlock_outcome)run->outcome) {
	case BIZLOCK_RUN_RUNNING:
		snprintf(ret, CLAUSE_SIZE, "is still running");
		return;
	case BIZLOCK_RUN_DONE:
		snprintf(ret, CLAUSE_SIZE, "was done");
		return;
	case BIZLOCK_RUN_FAILED:
		if (run->exit_signal)
			snprintf(ret, CLAUSE_SIZE, "was ended by %s", cli_run_signal(run, number));
		else if (run->exit_code >= 0)
			snprintf(ret, CLAUSE_SIZE, "failed with exit code %" PRId32,
			         run->exit_code);
		else
			snprintf(ret, CLAUSE_SIZE, "failed");
		return;
	case BIZLOCK_RUN_LOST:
		snprintf(ret, CLAUSE_SIZE, "lost its lock");
		return;
	case BIZLOCK_RUN_DIED:
		break;
	}
	snprintf(ret, CLAUSE_SIZE, "died");
}

static void print_overdue(const struct cli *c, const struct cli_run *last, int64_t within_ms)
{
	char within[CLI_DURATION_SIZE], since[CLI_DURATION_SIZE], success[CLAUSE_SIZE],
	        end[CLAUSE_SIZE];
	struct cli_owner o;

	if (!last) {
		cli_print("%s/%s is overdue: no run is recorded", c->argv[0], c->argv[1]);
		return;
	}
	cli_show_duration(within_ms, within);
	if (last->run.succeeded_us)
		snprintf(success, sizeof(success), "a run was last done %s ago, not within %s",
		         cli_run_since(&last->run, last->run.succeeded_us, since), within);
	else
		snprintf(success, sizeof(success), "no run was ever done, let alone within %s",
		         within);
	describe(&last->run, end);
	cli_owner_read(last->owner, &o);
	cli_print("%s/%s is overdue: %s; the last run began %s ago on %s and %s", c->argv[0],
	          c->argv[1], success, cli_run_since(&last->run, last->run.began_us, since), o.host,
	          end);
}

static bool is_in_time(const bizlock_run *run, int64_t within_ms)
{
	return run->succeeded_us > 0 && run->now_us - run->succeeded_us <= within_ms * 1000;
}

int cli_overdue(struct cli *c)
{
	struct options o = {0};
	struct cli_runs found = {0};
	int code = cli_parse(c, &o), rc;

	if (code == CLI_GO_ON && !o.within_ms)
		return cli_misused(c, "overdue needs --within DURATION, such as 25h");
	if (code == CLI_GO_ON)
		code = cli_open(c);
	if (code != CLI_GO_ON)
		return code;
	rc = bizlock_each_run(c->lock, c->argv[0], c->argv[1], cli_runs_keep, &found);
	if (rc != BIZLOCK_OK) {
		code = cli_failed(c, rc);
	} else if (found.failed) {
		code = cli_give_up(CLI_INTERNAL, "out of memory");
	} else if (found.count > 0 && is_in_time(&found.list[0].run, o.within_ms)) {
		code = CLI_DONE;
	} else {
		print_overdue(c, found.count > 0 ? &found.list[0] : NULL, o.within_ms);
		code = CLI_NO;
	}
	cli_runs_free(&found);
	return code;
}
