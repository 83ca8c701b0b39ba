/* bizlock runs: shows the last runs of jobs. */
#include "cli/command/run_list.h"
#include "cli/commands.h"

struct options {
	bool json;
};

const struct cli_option cli_runs_options[] = {
        {"json", 0, CLI_FLAG, offsetof(struct options, json), 0, 0, NULL, "times in UTC"},
        {0},
};

const char cli_runs_more[] =
        "A line for each lock under which exec --record or --at-most-once-per has run a\n"
        "command. LAST is how the last run ended: done, failed, lost (it no longer held\n"
        "the lock), died (nobody told of its end, and its lease is over); or running.\n"
        "EXIT is its exit code, or the signal that ended it, SUCCESS when a run last was\n"
        "done, FAILED how many were not, IN-ROW how many of these since then.\n";

int cli_runs(struct cli *c)
{
	struct options o = {false};
	struct cli_runs all = {0};
	int code = cli_begin(c, &o), rc;

	if (code != CLI_GO_ON)
		return code;
	rc = bizlock_each_run(c->lock, c->argc > 0 ? c->argv[0] : NULL,
	                      c->argc > 1 ? c->argv[1] : NULL, cli_runs_keep, &all);
	code = rc == BIZLOCK_OK ? cli_print_runs(&all, o.json) : cli_failed(c, rc);
	cli_runs_free(&all);
	return code;
}
