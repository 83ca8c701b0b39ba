/* The guard of bizlock exec: kills the command when the wrapper no longer can. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/exec.h"

#define HAS_KILLED 1  /* its exit code */
#define LEAVE_MS 1000 /* to exit; a machine that is late may take some of it */

struct order {
	int64_t kill_at_ms;
	pid_t group; /* 0: exit */
};

/* Nobody reads what the guard would say, and it must not fail: no library, no memory. */
static _Noreturn void guard(int orders, int timer)
{
	struct order order = {0, 0};
	struct pollfd fds[] = {{orders, POLLIN, 0}, {timer, POLLIN, 0}};

	for (;;) {
		struct order next;
		ssize_t got;

		poll(fds, 2, -1);
		got = read(orders, &next, sizeof(next)); /* a newer order comes before the clock */
		if (got == (ssize_t)sizeof(next)) {
			struct itimerspec at = {.it_value = {next.kill_at_ms / 1000,
			                                     next.kill_at_ms % 1000 * 1000000}};

			order = next;
			if (order.group == 0)
				_exit(0);
			timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
			continue;
		}
		if (got < 0 && (errno == EAGAIN || errno == EINTR) && !(fds[1].revents & POLLIN))
			continue;
		if (order.group > 1)
			kill(-order.group, SIGKILL);
		_exit(HAS_KILLED);
	}
}

/* "pkill bizlock", by name or by command line, must not find the guard. If it were killed with
 * the wrapper, the command's children would stay at work without the lock. The words of the
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

/* Out of reach of signals to the wrapper's group and terminal, and with nobody's files open. */
static _Noreturn void become_guard(char **command, pid_t wrapper, int orders)
{
	sigset_t all;
	int timer;

	change_name(command, wrapper);
	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (dup2(orders, 0) != 0)
		_exit(2);
	closefrom(1);
	timer = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK);
	if (timer < 0)
		_exit(2);
	guard(0, timer);
}

bool cli_guard_start(char **command, struct cli_guard *ret)
{
	pid_t wrapper = getpid();
	int ends[2], why;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return false;
	ret->pid = fork();
	if (ret->pid == 0)
		become_guard(command, wrapper, ends[0]);
	why = errno;
	close(ends[0]);
	ret->orders = ends[1];
	if (ret->pid > 0)
		return true;
	ret->pid = 0;
	close(ends[1]);
	errno = why;
	return false;
}

/* A guard that cannot be told is stuck or gone; then the wrapper alone ends the command. */
void cli_guard_order(const struct cli_guard *g, pid_t group, int64_t kill_at_ms)
{
	struct order order = {kill_at_ms > 1 ? kill_at_ms : 1, group};

	if (g->pid && write(g->orders, &order, sizeof(order)) < 0)
		return;
}

/* Its end of the pipe closes with it. */
static bool leaves(const struct cli_guard *g)
{
	struct pollfd gone = {g->orders, 0, 0};

	return poll(&gone, 1, LEAVE_MS) == 1;
}

/* A guard that was stopped would keep us waiting for ever, with the lock held. */
bool cli_guard_end(struct cli_guard *g)
{
	int status = 0;

	if (!g->pid)
		return false;
	cli_guard_order(g, 0, 0);
	if (!leaves(g))
		kill(g->pid, SIGKILL);
	close(g->orders);
	while (waitpid(g->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	g->pid = 0;
	return WIFEXITED(status) && WEXITSTATUS(status) == HAS_KILLED;
}
