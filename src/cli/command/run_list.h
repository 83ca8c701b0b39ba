/* A copy of runs, for runs, overdue and metrics: collect, describe, print. */
#ifndef CLI_COMMAND_RUN_LIST_H
#define CLI_COMMAND_RUN_LIST_H

#include "cli/cli.h"

/* Its texts are copies. */
struct cli_run {
	bizlock_run run;
	char *biz_type, *biz_id, *owner;
};

struct cli_runs {
	struct cli_run *list;
	size_t count, room;
	size_t most;     /* to be kept: those that began last; 0: all, in the order of their keys */
	size_t left_out; /* beyond that */
	bool failed;     /* out of memory */
};

/* For bizlock_each_run(); arg: a struct cli_runs. */
int cli_runs_keep(void *arg, const bizlock_run *run);
void cli_runs_free(struct cli_runs *runs);

/* "running", "done", "failed", "lost", "died" */
const char *cli_run_outcome(const bizlock_run *run);

/* The time from then on, by the server's clock when it was read; "12ms", "5h 7m". */
const char *cli_run_since(const bizlock_run *run, int64_t then_us, char buf[CLI_DURATION_SIZE]);

/* Enough for any signal. */
#define CLI_SIGNAL_SIZE 24

/* "SIGTERM", or "signal 99". */
const char *cli_run_signal(const bizlock_run *run, char buf[CLI_SIGNAL_SIZE]);

/* Prints the runs; returns an exit code. */
int cli_print_runs(const struct cli_runs *all, bool json);

#endif
