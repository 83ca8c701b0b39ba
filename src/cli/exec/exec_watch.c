/* bizlock exec while its command runs: ends the command before the lease is over, passes signals
 * on, stops and continues with the command. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/exec/exec.h"

/* With a third of the lease left, a renewal is overdue by a third of the lease: the command gets
 * SIGTERM. With a sixth left, or KILL_MS if that is less, it gets SIGKILL: this time is for the
 * kernel to end it, and for a slow machine. */
#define TERM_PART 3
#define KILL_PART 6
#define KILL_MS 2000

#define TICK_PART 10 /* of the lease: how often the guard is told when the lease ends */
#define TICK_MIN_MS 20
#define TICK_MAX_MS 1000

#define PATIENCE_MS 1000 /* how long to wait for the guard, and for the kernel */
#define AGAIN_MS 10

/* From SIGTERM to SIGKILL after --max-hold: the lock is renewed meanwhile. */
#define GRACE_MS 10000

#define MOMENT_MS 300 /* after it, the guard has got a signal that was sent to all of us */

static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
static const int users[] = {SIGUSR1, SIGUSR2};
static const int while_running[] = {SIGWINCH, SIGTSTP, SIGCONT, SIGCHLD, SIGTTOU, SIGTTIN};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Adds signals, but not those that were ignored when we started: these stay ignored, for us and the
 * command. */
static void add_signals(sigset_t *set, const int *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct sigaction now;

		if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaddset(set, numbers[i]);
	}
}

void cli_exec_passed(sigset_t *ret)
{
	sigemptyset(ret);
	add_signals(ret, ending, COUNT(ending));
	add_signals(ret, users, COUNT(users));
}

bool cli_exec_catch(struct cli_exec *x, bool running)
{
	sigset_t set;

	sigemptyset(&set);
	add_signals(&set, ending, COUNT(ending));
	if (running) {
		cli_exec_passed(&set);
		add_signals(&set, while_running, COUNT(while_running));
	}
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
	int64_t part = x->grants[0].lease_ms / KILL_PART;

	return part < KILL_MS ? part : KILL_MS;
}

/* The key whose lease ends first: a set is held while each of its keys is. */
static bizlock_key weakest_key(const struct cli_exec *x, int64_t *ret_left_ms)
{
	bizlock_key weakest = x->keys.list[0];

	*ret_left_ms = INT64_MAX;
	for (size_t i = 0; i < x->keys.count; i++) {
		int64_t left = bizlock_left_ms(x->c->lock, x->keys.list[i], EXEC_OWNER);

		if (left < *ret_left_ms) {
			weakest = x->keys.list[i];
			*ret_left_ms = left;
		}
	}
	return weakest;
}

/* The guard kills by the lease alone: what it has killed had lost the lock. */
int64_t cli_exec_lease_ms(const struct cli_exec *x)
{
	int64_t now = cli_exec_now_ms(); /* read first: an end that is too early does no harm */
	int64_t rest;

	weakest_key(x, &rest);
	rest -= kill_margin(x);
	if (x->ending == CLI_LEASE_ENDS && rest > x->kill_at_ms - now)
		rest = x->kill_at_ms - now; /* a late renewal changes nothing: SIGTERM was sent */
	cli_guard_order(&x->guard, now + (rest > 0 ? rest : 0));
	return rest;
}

int64_t cli_exec_rest_ms(const struct cli_exec *x)
{
	int64_t rest = cli_exec_lease_ms(x), left = x->kill_at_ms - cli_exec_now_ms();

	return x->ending && left < rest ? left : rest;
}

/* The guard is in the group, too, and can always be reached. */
static void send(const struct cli_exec *x, int number)
{
	kill(-x->child, number);
	if (kill(x->child, 0) != 0 && errno == EPERM)
		cli_say("%s: the command has changed its user and cannot be reached", x->name);
}

/* Both spare our own group: after "helper & exec bizlock exec ..." in a script, the helper is our
 * child, too. */
bool cli_exec_kill(const struct cli_exec *x)
{
	return x->unguarded ? cli_tree_kill(getpid(), getpgrp()) : cli_tree_kill(x->guard.pid, 0);
}

bool cli_exec_lives(const struct cli_exec *x)
{
	return x->unguarded ? cli_tree_lives(getpid(), getpgrp()) : cli_tree_lives(x->guard.pid, 0);
}

static void tell_to_end(struct cli_exec *x, enum cli_ending why, int64_t ms)
{
	x->ending = why;
	x->kill_at_ms = cli_exec_now_ms() + ms;
	send(x, SIGTERM);
	send(x, SIGCONT); /* a process that is stopped cannot obey */
}

static void end_by_lease(struct cli_exec *x, int64_t rest)
{
	int64_t left;
	bizlock_key key = weakest_key(x, &left);

	if (bizlock_last_renewal(x->c->lock, key, EXEC_OWNER) != BIZLOCK_OK)
		cli_say("%s", bizlock_errmsg(x->c->lock));
	if (rest > 0)
		cli_say("%s/%s: the lock could not be renewed; the command has %" PRId64
		        " ms to end",
		        key.biz_type, key.biz_id, rest);
	else
		cli_say("%s/%s: the lock is lost; the command is killed", key.biz_type, key.biz_id);
	tell_to_end(x, CLI_LEASE_ENDS, rest);
}

/* What is left of --max-hold. */
static int64_t hold_left_ms(const struct cli_exec *x)
{
	if (!x->o.max_hold_ms)
		return INT64_MAX;
	return x->held_ms + x->o.max_hold_ms - cli_exec_now_ms();
}

static void end_by_max_hold(struct cli_exec *x)
{
	cli_say("%s: --max-hold is over; the command has %d s to end", x->name, GRACE_MS / 1000);
	tell_to_end(x, CLI_HOLD_ENDS, GRACE_MS);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Does what the lease and --max-hold ask for; returns how long to sleep, in milliseconds. */
static int mind_lease(struct cli_exec *x)
{
	int64_t rest = cli_exec_lease_ms(x), hold_left = hold_left_ms(x);
	int64_t before_term = rest + kill_margin(x) - x->grants[0].lease_ms / TERM_PART;
	int64_t tick = x->grants[0].lease_ms / TICK_PART, next;

	if (before_term <= 0 && x->ending != CLI_LEASE_ENDS)
		end_by_lease(x, rest);
	else if (hold_left <= 0 && !x->ending)
		end_by_max_hold(x);
	rest = cli_exec_rest_ms(x);
	if (rest <= 0)
		cli_exec_kill(x);
	next = x->ending ? rest : earlier(before_term, hold_left);
	tick = tick < TICK_MIN_MS ? TICK_MIN_MS : tick > TICK_MAX_MS ? TICK_MAX_MS : tick;
	return (int)(next < 1 ? TICK_MIN_MS : next < tick ? next : tick);
}

/* ---- stopping ------------------------------------------------------------------------ */

/* Stops our whole group, as the terminal would, because we may be part of a script or a pipeline.
 * The kernel does not stop a group that no shell could continue. true: we were stopped, and
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
 * before the lease is nearly over, the guard kills the command. */
static void command_stopped(struct cli_exec *x, int number)
{
	bool wants_terminal = number == SIGTTIN || number == SIGTTOU;

	x->awaits_tty = false;
	if (x->tty.fd < 0 || cli_exec_rest_ms(x) <= 0)
		return; /* whoever stopped it continues it; or it is being killed */
	if (!wants_terminal || !cli_tty_is_ours(&x->tty)) {
		bool had = x->tty.lent != 0;

		cli_tty_take_back(&x->tty, false);
		/* If the command were continued while another group has the terminal, it would be
		 * stopped again, thousands of times a second. */
		x->awaits_tty = !stop_ourselves() && wants_terminal && cli_tty_is_anothers(&x->tty);
		wants_terminal = wants_terminal || had;
	}
	if (wants_terminal)
		cli_tty_lend(&x->tty, x->child);
	if (mind_lease(x) > 0 && !x->awaits_tty)
		send(x, SIGCONT);
}

/* Continues the command when it can have the terminal; without a terminal it gets an error. */
static void look_for_terminal(struct cli_exec *x)
{
	if (!x->awaits_tty || cli_tty_is_anothers(&x->tty))
		return;
	x->awaits_tty = false;
	send(x, SIGCONT);
}

/* ---- what others send ------------------------------------------------------------------ */

static void pass_on(const struct cli_exec *x, int number)
{
	send(x, number);
	if (x->awaits_tty)
		send(x, SIGCONT); /* as in tell_to_end(); then it asks for the terminal again */
}

/* An init system that ends a service may send a signal to all its processes. A command that gets
 * the signal twice may take the second one for "at once", and leave its work half done. The guard
 * is in the command's control group and process group: a signal that the guard got from the same
 * sender, the command got, too. So we wait for a moment before we pass the signal on. */
static void pass_on_later(struct cli_exec *x, int number, pid_t sender)
{
	struct cli_passing *p = &x->passing[number];
	int64_t now = cli_exec_now_ms();

	if (p->heard_ms && p->heard_from == sender && now - p->heard_ms <= MOMENT_MS) {
		p->heard_ms = 0;
		return;
	}
	p->due_ms = now + MOMENT_MS;
	p->due_from = sender;
}

/* Signals of the terminal go to its foreground group, which is the command's. But they are meant
 * for the script around us, too, which would go on after the interrupted command. */
static void heard(struct cli_exec *x, int number, pid_t sender)
{
	struct cli_passing *p = &x->passing[number];

	if (x->tty.lent && (number == SIGINT || number == SIGQUIT))
		kill(0, number);
	if (p->due_ms && p->due_from == sender) {
		p->due_ms = 0;
		return;
	}
	p->heard_ms = cli_exec_now_ms();
	p->heard_from = sender;
}

/* Returns how long to sleep, at most `ms`. */
static int pass_on_due(struct cli_exec *x, int ms)
{
	int64_t now = cli_exec_now_ms();

	for (int number = 1; number < NSIG; number++) {
		struct cli_passing *p = &x->passing[number];

		if (p->due_ms && p->due_ms <= now) {
			p->due_ms = 0;
			pass_on(x, number);
		} else if (p->due_ms && p->due_ms - now < ms) {
			ms = (int)(p->due_ms - now);
		}
	}
	return ms;
}

static void take_signal(struct cli_exec *x, const struct signalfd_siginfo *info)
{
	int number = (int)info->ssi_signo;
	sigset_t passed;

	if (number == SIGCHLD || number == SIGTTIN || number == SIGTTOU ||
	    (pid_t)info->ssi_pid == getpid())
		return;
	if (number == SIGCONT && x->tty.alone)
		cli_tty_lend(&x->tty, x->child);
	cli_exec_passed(&passed);
	if (info->ssi_code != SI_KERNEL && sigismember(&passed, number))
		pass_on_later(x, number, (pid_t)info->ssi_pid);
	else
		pass_on(x, number);
}

/* ---- what happens ---------------------------------------------------------------------- */

static void end_by(struct cli_exec *x, int value)
{
	x->ended = true;
	x->signalled = value < 0 ? -value : 0;
	x->status = value < 0 ? 128 - value : value;
}

/* The command dies with its guard, and becomes our child. It may have ended before, under a guard
 * that was stopped. */
static void lose_guard(struct cli_exec *x)
{
	int64_t until = cli_exec_now_ms() + PATIENCE_MS;
	siginfo_t info = {0};

	x->unguarded = !x->guard_stuck;
	/* The guard closes its files a moment before the command becomes our child. */
	while ((waitid(P_PID, (id_t)x->child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
	        !info.si_pid) &&
	       cli_exec_now_ms() < until)
		poll(NULL, 0, AGAIN_MS);
	end_by(x, info.si_pid ? cli_guard_tell(&info) : -SIGKILL);
}

/* A guard that does not report the command's end was stopped: without this we would wait for ever.
 */
static void look_at_life(struct cli_exec *x, bool is_over)
{
	if (is_over) {
		x->over_ms = cli_exec_now_ms();
		close(x->life);
		x->life = -1;
	}
	if (x->over_ms && cli_exec_now_ms() - x->over_ms > PATIENCE_MS) {
		x->guard_stuck = true;
		kill(x->guard.pid, SIGKILL);
	}
}

void cli_exec_take_reports(struct cli_exec *x)
{
	struct cli_report r;

	for (;;)
		switch (cli_guard_read(&x->guard, &r)) {
		case CLI_REPORT_STARTED:
			break;
		case CLI_REPORT_STOPPED:
			command_stopped(x, r.value);
			break;
		case CLI_REPORT_ENDED:
			end_by(x, r.value);
			break;
		case CLI_REPORT_HEARD:
			heard(x, r.value, r.sender);
			break;
		case CLI_REPORT_GONE:
			if (!x->ended)
				lose_guard(x);
			return;
		case CLI_REPORT_NONE:
			return;
		}
}

/* As the first process of a container we are the parent of all orphans. */
static void reap_others(const struct cli_exec *x)
{
	siginfo_t info = {0};

	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid &&
	       info.si_pid != x->guard.pid && info.si_pid != x->child) {
		waitpid(info.si_pid, NULL, 0);
		info.si_pid = 0;
	}
}

void cli_exec_watch(struct cli_exec *x)
{
	struct pollfd fds[] = {{x->signals, POLLIN, 0},
	                       {x->wake, POLLIN, 0},
	                       {x->guard.reports, POLLIN, 0},
	                       {x->life, POLLIN, 0}};
	struct signalfd_siginfo info;
	uint64_t count;

	for (;;) {
		int sleep_ms;

		cli_exec_take_reports(x);
		if (x->ended)
			return;
		reap_others(x);
		look_for_terminal(x);
		sleep_ms = pass_on_due(x, mind_lease(x));
		fds[3].fd = x->life;
		poll(fds, COUNT(fds), sleep_ms);
		look_at_life(x, fds[3].revents != 0);
		if (fds[1].revents && read(x->wake, &count, sizeof(count)) < 0)
			continue;
		while (read(x->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
			take_signal(x, &info);
	}
}
