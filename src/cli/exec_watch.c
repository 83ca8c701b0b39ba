/* What bizlock exec does while its command runs: minds the lease, passes signals on. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/exec.h"

/* With a third of the lease left, a renewal is overdue by another third: the command is told
 * to end. With a sixth left, or KILL_MS if that is less, it is killed: this time is for the
 * kernel to do so, and for a machine that is late. */
#define TERM_PART 3
#define KILL_PART 6
#define KILL_MS 2000

#define TICK_PART 10 /* of the lease: how often the guard is told how long it lasts */
#define TICK_MIN_MS 20
#define TICK_MAX_MS 1000

static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
static const int while_running[] = {SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP,
                                    SIGCONT, SIGCHLD, SIGTTOU,  SIGTTIN};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A signal that whoever started us has ignored stays ignored, for us and the command. */
static void add_signals(sigset_t *set, const int *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct sigaction now;

		if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaddset(set, numbers[i]);
	}
}

bool cli_exec_catch(struct cli_exec *x, bool running)
{
	sigset_t set;

	sigemptyset(&set);
	add_signals(&set, ending, COUNT(ending));
	if (running)
		add_signals(&set, while_running, COUNT(while_running));
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	x->signals = signalfd(x->signals, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return x->signals >= 0;
}

/* ---- the lease -------------------------------------------------------------------- */

int64_t cli_exec_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t kill_margin(const struct cli_exec *x)
{
	int64_t part = x->grant.lease_ms / KILL_PART;

	return part < KILL_MS ? part : KILL_MS;
}

int64_t cli_exec_rest_ms(const struct cli_exec *x)
{
	int64_t now = cli_exec_now_ms(); /* read first: an end that is too early does no harm */
	int64_t rest = bizlock_left_ms(x->c->lock, x->key, EXEC_OWNER) - kill_margin(x);

	if (x->ending && rest > x->kill_at_ms - now)
		rest = x->kill_at_ms - now; /* renewed too late: it was told to end by then */
	cli_guard_order(&x->guard, x->child, now + (rest > 0 ? rest : 0));
	return rest;
}

static void send(const struct cli_exec *x, int number)
{
	if (kill(-x->child, number) != 0 && errno == EPERM)
		cli_say("%s: the command has changed its user and cannot be reached", x->name);
}

static void tell_to_end(struct cli_exec *x, int64_t rest)
{
	x->ending = true;
	x->kill_at_ms = cli_exec_now_ms() + rest;
	if (bizlock_last_renewal(x->c->lock, x->key, EXEC_OWNER) != BIZLOCK_OK)
		cli_say("%s", bizlock_errmsg(x->c->lock));
	if (rest > 0)
		cli_say("%s: the lock could not be renewed; the command has %" PRId64 " ms to end",
		        x->name, rest);
	else
		cli_say("%s: the lock is lost; the command is killed", x->name);
	send(x, SIGTERM);
	send(x, SIGCONT); /* a process that is stopped cannot obey */
}

/* Does what the lease asks for; returns how long to sleep, in milliseconds. */
static int mind_lease(struct cli_exec *x)
{
	int64_t rest = cli_exec_rest_ms(x);
	int64_t before_term = rest + kill_margin(x) - x->grant.lease_ms / TERM_PART;
	int64_t tick = x->grant.lease_ms / TICK_PART, next;

	if (before_term <= 0 && !x->ending)
		tell_to_end(x, rest);
	if (rest <= 0)
		kill(-x->child, SIGKILL);
	next = x->ending ? rest : before_term;
	tick = tick < TICK_MIN_MS ? TICK_MIN_MS : tick > TICK_MAX_MS ? TICK_MAX_MS : tick;
	return (int)(next < 1 ? TICK_MIN_MS : next < tick ? next : tick);
}

/* ---- stopping ------------------------------------------------------------------------ */

/* Stops us as the terminal would: with our group, for we may be part of a script or a pipeline.
 * The kernel stops nobody in a group that nobody could continue. true: it has stopped us, and
 * somebody has continued us. */
static bool stop_ourselves(void)
{
	sigset_t stop, pending;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	kill(0, SIGTSTP); /* this discards an older SIGCONT */
	pthread_sigmask(SIG_UNBLOCK, &stop, NULL);
	pthread_sigmask(SIG_BLOCK, &stop, NULL);
	return sigpending(&pending) == 0 && sigismember(&pending, SIGCONT);
}

/* While we are stopped nobody renews, and the guard gets no new order: if nobody continues us
 * before the lease is over, it kills the command. */
static void command_stopped(struct cli_exec *x, int number)
{
	bool wants_terminal = number == SIGTTIN || number == SIGTTOU;

	x->awaits_tty = false;
	if (x->tty.fd < 0)
		return; /* somebody stopped it by hand, and will continue it */
	if (!wants_terminal || !cli_tty_is_ours(&x->tty)) {
		bool had = x->tty.lent != 0;

		cli_tty_take_back(&x->tty, false);
		/* If it were continued while the terminal is another group's, it would be stopped
		 * again, thousands of times a second. */
		x->awaits_tty = !stop_ourselves() && wants_terminal && cli_tty_is_anothers(&x->tty);
		wants_terminal = wants_terminal || had;
	}
	if (wants_terminal)
		cli_tty_lend(&x->tty, x->child);
	if (mind_lease(x) > 0 && !x->awaits_tty)
		send(x, SIGCONT);
}

/* The command asks for the terminal again, and gets it; or an error, if there is none now. */
static void look_for_terminal(struct cli_exec *x)
{
	if (!x->awaits_tty || cli_tty_is_anothers(&x->tty))
		return;
	x->awaits_tty = false;
	send(x, SIGCONT);
}

/* ---- what happens ---------------------------------------------------------------------- */

/* Has the command ended? It is not reaped here, so that its number stays taken. */
static bool has_ended(struct cli_exec *x)
{
	siginfo_t info = {0};

	while (waitid(P_PID, (id_t)x->child, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid) {
		command_stopped(x, info.si_status);
		info.si_pid = 0;
	}
	if (waitid(P_PID, (id_t)x->child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || !info.si_pid)
		return false;
	x->signalled = info.si_code == CLD_EXITED ? 0 : info.si_status;
	x->status = x->signalled ? 128 + x->signalled : info.si_status;
	return true;
}

static void take_signals(struct cli_exec *x)
{
	struct signalfd_siginfo info;

	while (read(x->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int number = (int)info.ssi_signo;

		if (number == SIGCHLD || number == SIGTTIN || number == SIGTTOU)
			continue;
		if (number == SIGCONT && x->tty.alone)
			cli_tty_lend(&x->tty, x->child);
		send(x, number);
		if (x->awaits_tty)
			send(x, SIGCONT); /* as in tell_to_end(); then it asks for the terminal
			                     again */
	}
}

void cli_exec_watch(struct cli_exec *x)
{
	struct pollfd fds[] = {{x->signals, POLLIN, 0}, {x->wake, POLLIN, 0}};
	uint64_t count;

	while (!has_ended(x)) {
		int sleep_ms = mind_lease(x);

		look_for_terminal(x);
		if (poll(fds, 2, sleep_ms) <= 0)
			continue;
		if (fds[1].revents && read(x->wake, &count, sizeof(count)) < 0)
			continue;
		take_signals(x);
	}
}
