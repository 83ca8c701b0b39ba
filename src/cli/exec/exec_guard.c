/* The guard of bizlock exec: starts the command, reports the signals of its group, and kills the
 * command when the wrapper no longer can. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/exec/exec.h"

#define HAS_KILLED 1  /* the exit code of a guard that has killed */
#define LEAVE_MS 1000 /* for the guard to exit; a slow machine may take some of it */
#define AGAIN_MS 10   /* between two searches for processes to kill */

#define LEAVE INT64_MAX /* an order: exit */

enum { ORDERS, REPORTS }; /* file descriptors of the guard */

struct guard {
	pid_t wrapper, command;
	int timer, signals;
};

/* ---- the process ---------------------------------------------------------------------- */

static void report(enum cli_report_what what, int value, int sender)
{
	struct cli_report r = {what, value, sender};

	if (write(REPORTS, &r, sizeof(r)) < 0)
		return; /* the wrapper has gone, or is stopped and has thousands to read */
}

/* Kills all of the tree: the wrapper has gone, or is late. */
static _Noreturn void kill_all(void)
{
	while (cli_tree_kill(getpid(), 0))
		poll(NULL, 0, AGAIN_MS);
	_exit(HAS_KILLED);
}

int cli_guard_tell(const siginfo_t *info)
{
	return info->si_code == CLD_EXITED ? info->si_status : -info->si_status;
}

/* The command is not reaped here, so that no other process gets its number. Orphaned processes are
 * reaped: nobody else would do it. */
static void look_at_children(const struct guard *g)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)g->command, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid)
		report(CLI_REPORT_STOPPED, info.si_status, 0);
	info.si_pid = 0;
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid) {
		if (info.si_pid == g->command) {
			report(CLI_REPORT_ENDED, cli_guard_tell(&info), 0);
			return;
		}
		waitpid(info.si_pid, NULL, 0);
		info.si_pid = 0;
	}
}

/* Reports the signals of the group, but not those that the wrapper itself has sent. */
static void hear(const struct guard *g)
{
	struct signalfd_siginfo info;

	while (read(g->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			look_at_children(g);
		else if ((pid_t)info.ssi_pid != g->wrapper)
			report(CLI_REPORT_HEARD, (int)info.ssi_signo, (int)info.ssi_pid);
	}
}

/* The guard must not fail, and has nobody to report a failure to: it uses no library, no memory. */
static _Noreturn void stand_guard(const struct guard *g)
{
	struct pollfd fds[] = {{ORDERS, POLLIN, 0}, {g->timer, POLLIN, 0}, {g->signals, POLLIN, 0}};

	for (;;) {
		int64_t kill_at_ms;
		ssize_t got;

		poll(fds, 3, -1);
		hear(g);
		got = read(ORDERS, &kill_at_ms, sizeof(kill_at_ms)); /* newer than the clock */
		if (got == (ssize_t)sizeof(kill_at_ms)) {
			struct itimerspec at = {
			        .it_value = {kill_at_ms / 1000, kill_at_ms % 1000 * 1000000}};

			if (kill_at_ms == LEAVE)
				_exit(0);
			timerfd_settime(g->timer, TFD_TIMER_ABSTIME, &at, NULL);
			continue;
		}
		if (got < 0 && (errno == EAGAIN || errno == EINTR) && !(fds[1].revents & POLLIN))
			continue;
		kill_all();
	}
}

/* "pkill bizlock", by name or by command line, must not find the guard: if the guard were killed
 * with the wrapper, the command's children would stay at work without the lock. The words of the
 * command line lie in a row in memory, from the program's name to the command's last word. */
static void change_name(char **command, pid_t wrapper)
{
	char *from = program_invocation_name, *last = command[0];

	for (char **word = command; *word; word++)
		last = *word;
	prctl(PR_SET_NAME, "exec-guard");
	if (last > from) {
		size_t size = (size_t)(last - from) + strlen(last) + 1;

		memset(from, 0, size);
		snprintf(from, size, "exec-guard of %d", (int)wrapper);
	}
}

/* Closes all other files: the reader of a pipe waits until every process has closed its end. */
static void keep_files(int orders, int reports)
{
	if (dup2(orders, ORDERS) < 0 || dup2(reports, REPORTS) < 0)
		_exit(2);
	cli_close_files(REPORTS + 1, ~0u);
}

/* The guard joins the command's group, so that it gets the signals that the command gets: Ctrl-C of
 * a terminal, or those of an init system that signals all processes of a service. It blocks all
 * signals that can be blocked. */
static _Noreturn void become_guard(const struct cli_launch *l, int orders, int reports)
{
	struct guard g = {.wrapper = l->wrapper};
	sigset_t all, heard;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	g.command = cli_launch(l);
	if (g.command < 0)
		_exit(2);
	setpgid(g.command, g.command); /* the command does so, too: either may be first */
	setpgid(0, g.command);
	keep_files(orders, reports);
	change_name(l->x->command, g.wrapper);
	cli_exec_passed(&heard);
	sigaddset(&heard, SIGCHLD);
	g.signals = signalfd(-1, &heard, SFD_NONBLOCK);
	g.timer = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK);
	if (g.timer < 0 || g.signals < 0)
		_exit(2);
	report(CLI_REPORT_STARTED, g.command, 0);
	stand_guard(&g);
}

/* ---- the wrapper's side ------------------------------------------------------------------ */

bool cli_guard_start(const struct cli_launch *l, struct cli_guard *ret)
{
	int orders[2], reports[2];
	pid_t pid = -1;

	if (pipe2(orders, O_CLOEXEC | O_NONBLOCK) != 0)
		return false;
	if (pipe2(reports, O_CLOEXEC | O_NONBLOCK) == 0) {
		pid = fork();
		if (pid == 0) {
			close(orders[1]); /* so that end of file means: the wrapper has gone */
			become_guard(l, orders[0], reports[1]);
		}
		close(reports[1]);
		if (pid < 0)
			close(reports[0]);
	}
	close(orders[0]);
	if (pid < 0) {
		close(orders[1]);
		return false;
	}
	*ret = (struct cli_guard){pid, orders[1], reports[0]};
	return true;
}

enum cli_report_what cli_guard_read(const struct cli_guard *g, struct cli_report *ret)
{
	ssize_t got = read(g->reports, ret, sizeof(*ret));

	if (got == (ssize_t)sizeof(*ret))
		return ret->what;
	return got == 0 ? CLI_REPORT_GONE : CLI_REPORT_NONE;
}

/* If the order cannot be written, the guard is stuck or gone; the wrapper then ends the command. */
static void order(const struct cli_guard *g, int64_t what)
{
	if (g->pid && write(g->orders, &what, sizeof(what)) < 0)
		return;
}

void cli_guard_order(const struct cli_guard *g, int64_t kill_at_ms)
{
	order(g, kill_at_ms > 1 ? kill_at_ms : 1);
}

/* The guard has exited when its end of the pipe is closed. */
static bool leaves(const struct cli_guard *g)
{
	struct pollfd gone = {g->orders, 0, 0};

	return poll(&gone, 1, LEAVE_MS) == 1;
}

/* Kills a guard that does not exit: we would wait for a stopped guard for ever, with the lock held.
 */
bool cli_guard_end(struct cli_guard *g)
{
	int status = 0;

	if (!g->pid)
		return false;
	order(g, LEAVE);
	if (!leaves(g))
		kill(g->pid, SIGKILL);
	close(g->orders);
	while (waitpid(g->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	g->pid = 0;
	return WIFEXITED(status) && WEXITSTATUS(status) == HAS_KILLED;
}
