#include "cli/metrics/run_metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- labels ---------------------------------------------------------------------------- */

struct job {
	char *type, *id; /* the key as labels' values */
	const bizlock_run *run;
};

struct jobs {
	struct job *list;
	size_t count, left_out;
};

static void free_job(struct job *job)
{
	free(job->type);
	free(job->id);
}

static void free_jobs(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->count; i++)
		free_job(&jobs->list[i]);
	free(jobs->list);
}

static int compare_keys(const void *a, const void *b)
{
	const struct job *x = a, *y = b;
	int order = strcmp(x->type, y->type);

	return order ? order : strcmp(x->id, y->id);
}

/* The job that began last comes first among those with the same labels. */
static int compare_jobs(const void *a, const void *b)
{
	const struct job *x = a, *y = b;
	int order = compare_keys(a, b);

	if (order || x->run->began_us == y->run->began_us)
		return order;
	return x->run->began_us < y->run->began_us ? 1 : -1;
}

/* A collector would refuse the whole text for two series with the same labels. */
static void drop_twins(struct jobs *jobs)
{
	size_t count = 0;

	for (size_t i = 0; i < jobs->count; i++) {
		if (count && compare_keys(&jobs->list[count - 1], &jobs->list[i]) == 0) {
			free_job(&jobs->list[i]);
			jobs->left_out++;
		} else {
			jobs->list[count++] = jobs->list[i];
		}
	}
	jobs->count = count;
}

/* To be freed, also if it failed: out of memory. */
static bool label_runs(const struct cli_runs *runs, struct jobs *ret)
{
	*ret = (struct jobs){.list = calloc(runs->count + 1, sizeof(*ret->list)),
	                     .left_out = runs->left_out};
	if (!ret->list)
		return false;
	for (size_t i = 0; i < runs->count; i++) {
		struct job *job = &ret->list[ret->count++];

		*job = (struct job){cli_label_value(runs->list[i].biz_type),
		                    cli_label_value(runs->list[i].biz_id), &runs->list[i].run};
		if (!job->type || !job->id)
			return false;
	}
	qsort(ret->list, ret->count, sizeof(*ret->list), compare_jobs);
	drop_twins(ret);
	return true;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Each reads a number of a run. -1: the run has none. */

static int64_t began(const bizlock_run *run)
{
	return run->began_us;
}

/* 0 if none was: a job that never succeeds is overdue by the same rule as others. */
static int64_t succeeded(const bizlock_run *run)
{
	return run->succeeded_us;
}

/* Clocks may have been set back. */
static int64_t duration(const bizlock_run *run)
{
	int64_t end = run->outcome == BIZLOCK_RUN_RUNNING ? run->now_us : run->ended_us;

	if (!end)
		return -1;
	return end > run->began_us ? end - run->began_us : 0;
}

/* As a shell has it. */
static int64_t exit_code(const bizlock_run *run)
{
	return run->exit_signal ? 128 + (int64_t)run->exit_signal : run->exit_code;
}

static int64_t failures_in_row(const bizlock_run *run)
{
	return (int64_t)run->failures_in_row;
}

static int64_t running(const bizlock_run *run)
{
	return run->outcome == BIZLOCK_RUN_RUNNING;
}

static const struct {
	const char *name, *help;
	int64_t (*read)(const bizlock_run *run);
	bool is_time; /* in microseconds */
} run_gauges[] = {
        {"bizlock_run_began_timestamp_seconds", "When the last run began.", began, true},
        {"bizlock_run_succeeded_timestamp_seconds", "When a run last was done; 0: never.",
         succeeded, true},
        {"bizlock_run_duration_seconds", "How long the last run took, or has taken.", duration,
         true},
        {"bizlock_run_exit_code", "Of the last run; 128 and the signal that ended it.", exit_code,
         false},
        {"bizlock_run_failures_in_row", "Runs that ended since one was done.", failures_in_row,
         false},
        {"bizlock_run_running", "1: the last run has not ended.", running, false},
};

static void write_jobs(FILE *out, const struct jobs *jobs)
{
	cli_metric_head(out, "bizlock_run_left_out", "Jobs of which nothing is told here.");
	fprintf(out, "bizlock_run_left_out %zu\n", jobs->left_out);
	for (size_t i = 0; i < sizeof(run_gauges) / sizeof(run_gauges[0]); i++) {
		cli_metric_head(out, run_gauges[i].name, run_gauges[i].help);
		for (const struct job *job = jobs->list; job < jobs->list + jobs->count; job++) {
			int64_t n = run_gauges[i].read(job->run);

			if (n < 0)
				continue;
			fprintf(out, "%s{type=\"%s\",id=\"%s\"} ", run_gauges[i].name, job->type,
			        job->id);
			if (run_gauges[i].is_time)
				fprintf(out, "%" PRId64 ".%03" PRId64 "\n", n / 1000000,
				        n / 1000 % 1000);
			else
				fprintf(out, "%" PRId64 "\n", n);
		}
	}
}

void cli_metric_head(FILE *out, const char *name, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

bool cli_metric_runs(FILE *out, const struct cli_runs *runs)
{
	struct jobs jobs;
	bool done = label_runs(runs, &jobs);

	if (done)
		write_jobs(out, &jobs);
	free_jobs(&jobs);
	return done;
}
