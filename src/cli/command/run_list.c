#include "cli/command/run_list.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool make_room(struct cli_runs *runs)
{
	size_t room = runs->room ? 2 * runs->room : 64;
	struct cli_run *list;

	if (runs->count < runs->room)
		return true;
	list = reallocarray(runs->list, room, sizeof(*list));
	if (!list)
		return false;
	runs->list = list;
	runs->room = room;
	return true;
}

static bool copy(struct cli_run *to, const bizlock_run *run)
{
	*to = (struct cli_run){
	        .run = *run,
	        .biz_type = strdup(run->biz_type),
	        .biz_id = strdup(run->biz_id),
	        .owner = strdup(run->owner),
	};
	to->run.biz_type = to->biz_type;
	to->run.biz_id = to->biz_id;
	to->run.owner = to->owner;
	return to->biz_type && to->biz_id && to->owner;
}

static void free_copy(struct cli_run *run)
{
	free(run->biz_type);
	free(run->biz_id);
	free(run->owner);
}

static struct cli_run *find_first_begun(const struct cli_runs *runs)
{
	struct cli_run *ret = &runs->list[0];

	for (size_t i = 1; i < runs->count; i++)
		if (runs->list[i].run.began_us < ret->run.began_us)
			ret = &runs->list[i];
	return ret;
}

static bool keep_if_later(struct cli_runs *runs, const bizlock_run *run)
{
	struct cli_run *first = find_first_begun(runs);

	runs->left_out++;
	if (run->began_us <= first->run.began_us)
		return true;
	free_copy(first);
	return copy(first, run);
}

int cli_runs_keep(void *arg, const bizlock_run *run)
{
	struct cli_runs *runs = arg;

	if (runs->most && runs->count == runs->most)
		runs->failed = !keep_if_later(runs, run);
	else
		runs->failed = !make_room(runs) || !copy(&runs->list[runs->count++], run);
	return runs->failed;
}

void cli_runs_free(struct cli_runs *runs)
{
	for (size_t i = 0; i < runs->count; i++)
		free_copy(&runs->list[i]);
	free(runs->list);
	*runs = (struct cli_runs){0};
}

const char *cli_run_outcome(const bizlock_run *run)
{
	switch ((enum bizlock_outcome)run->outcome) {
	case BIZLOCK_RUN_RUNNING:
		return "running";
	case BIZLOCK_RUN_DONE:
		return "done";
	case BIZLOCK_RUN_FAILED:
		return "failed";
	case BIZLOCK_RUN_LOST:
		return "lost";
	case BIZLOCK_RUN_DIED:
		break;
	}
	return "died";
}

/* The server's clock may have been set back. */
const char *cli_run_since(const bizlock_run *run, int64_t then_us, char buf[CLI_DURATION_SIZE])
{
	int64_t us = run->now_us - then_us;

	return cli_show_duration(us > 0 ? us / 1000 : 0, buf);
}

/* By the number. Only glibc, since 2.32, has such a table. */
static const char *const signal_names[] = {
        [SIGHUP] = "SIGHUP",       [SIGINT] = "SIGINT",       [SIGQUIT] = "SIGQUIT",
        [SIGILL] = "SIGILL",       [SIGTRAP] = "SIGTRAP",     [SIGABRT] = "SIGABRT",
        [SIGBUS] = "SIGBUS",       [SIGFPE] = "SIGFPE",       [SIGKILL] = "SIGKILL",
        [SIGUSR1] = "SIGUSR1",     [SIGSEGV] = "SIGSEGV",     [SIGUSR2] = "SIGUSR2",
        [SIGPIPE] = "SIGPIPE",     [SIGALRM] = "SIGALRM",     [SIGTERM] = "SIGTERM",
        [SIGCHLD] = "SIGCHLD",     [SIGCONT] = "SIGCONT",     [SIGSTOP] = "SIGSTOP",
        [SIGTSTP] = "SIGTSTP",     [SIGTTIN] = "SIGTTIN",     [SIGTTOU] = "SIGTTOU",
        [SIGURG] = "SIGURG",       [SIGXCPU] = "SIGXCPU",     [SIGXFSZ] = "SIGXFSZ",
        [SIGPROF] = "SIGPROF",     [SIGVTALRM] = "SIGVTALRM", [SIGWINCH] = "SIGWINCH",
        [SIGPOLL] = "SIGPOLL",     [SIGPWR] = "SIGPWR",       [SIGSYS] = "SIGSYS",
#ifdef SIGSTKFLT /* MIPS and SPARC have none */
        [SIGSTKFLT] = "SIGSTKFLT",
#endif
};

const char *cli_run_signal(const bizlock_run *run, char buf[CLI_SIGNAL_SIZE])
{
	size_t count = sizeof(signal_names) / sizeof(signal_names[0]);
	const char *name = run->exit_signal < count ? signal_names[run->exit_signal] : NULL;

	if (name)
		snprintf(buf, CLI_SIGNAL_SIZE, "%s", name);
	else
		snprintf(buf, CLI_SIGNAL_SIZE, "signal %" PRIu32, run->exit_signal);
	return buf;
}
