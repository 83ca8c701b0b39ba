/* The numbers that bizlock metrics tells of runs: a job has its own, by type and id. */
#ifndef CLI_METRICS_RUN_METRICS_H
#define CLI_METRICS_RUN_METRICS_H

#include <stdio.h>

#include "cli/command/run_list.h"

/* The two lines before the series of one name. */
void cli_metric_head(FILE *out, const char *name, const char *help);

/* false: out of memory. */
bool cli_metric_runs(FILE *out, const struct cli_runs *runs);

#endif
