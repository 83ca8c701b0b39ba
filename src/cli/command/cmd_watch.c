/* bizlock watch: the list of locks, shown anew until a key is pressed. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "cli/command/locks.h"
#include "cli/commands.h"

#define LOCKS_MAX 1000 /* no screen has more lines; further locks are not counted */

/* The alternate screen, no cursor, no wrapping of lines: the terminal may find a line wider than we
 * do. */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"
#define HOME "\033[H"
#define ERASE_LINE "\033[K"
#define NEXT_LINE "\r\n"
#define END_OF_SCREEN "\033[J"

struct options {
	const char *type;
	int64_t interval_ms;
};

#define AT(field) offsetof(struct options, field)

const struct cli_option cli_watch_options[] = {
        {"type", 't', CLI_TEXT, AT(type), 0, 0, "BIZ_TYPE", "those of one type"},
        {"interval", 'n', CLI_DURATION, AT(interval_ms), 100, 3600000, "DURATION",
         "between two looks; 2s"},
        {0},
};

const char cli_watch_more[] =
        "WAITING: connections at the lock's doorbell, or watching it, as far as the\n"
        "server lets this user see them. Ends by q or Ctrl-C.\n";

struct watch {
	struct cli *c;
	struct options o;
	int signals;
	sigset_t ends; /* the signals that end us */
};

static struct termios modes; /* before enter(); end_now() restores them, too */

/* ---- the terminal ------------------------------------------------------------------ */

/* Ctrl-S is an ordinary key here: a terminal that it had stopped would block our writes. */
static void enter(void)
{
	struct termios quiet = modes;

	quiet.c_iflag &= ~(tcflag_t)IXON;
	quiet.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet);
	printf(ENTER);
	fflush(stdout);
}

static void leave(void)
{
	printf(LEAVE);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &modes);
}

/* A signal handler that ends this process: a query to the server may take long, and the end must
 * not wait for it. Calls only async-signal-safe functions. In the background it leaves the terminal
 * alone, because touching it would stop us. */
static void end_now(int number)
{
	ssize_t done = 0;

	if (tcgetpgrp(STDIN_FILENO) == getpgrp()) {
		tcsetattr(STDIN_FILENO, TCSANOW, &modes);
		done = write(STDOUT_FILENO, LEAVE, sizeof(LEAVE) - 1);
	}
	if (done >= 0 && number == SIGINT)
		_exit(CLI_DONE);
	raise(number);
}

/* A signal that came while we were stopped ends us before we ask for the terminal again. */
static void stop(const struct watch *w)
{
	sigset_t set = w->ends;

	leave();
	sigaddset(&set, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	enter();
}

static void catch_end(int number, sigset_t *ends)
{
	struct sigaction now,
	        ours = {.sa_handler = end_now, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};

	sigaddset(ends, number);
	if (sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_IGN)
		sigaction(number, &ours, NULL);
}

static bool begin(struct watch *w)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t all;

	if (tcgetattr(STDIN_FILENO, &modes) != 0)
		return false;
	sigemptyset(&w->ends);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		catch_end(numbers[i], &w->ends);
	all = w->ends;
	sigaddset(&all, SIGTSTP);
	sigaddset(&all, SIGWINCH);
	sigprocmask(SIG_BLOCK, &all, NULL);
	w->signals = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
	return w->signals >= 0;
}

/* ---- a look --------------------------------------------------------------------------- */

/* Prints a line, cut to the width: a line that wraps would push the heading off the screen. The row
 * is erased first, because erasing behind the last column would erase the last character. */
static void print_line(const char *text, unsigned width)
{
	size_t len = strcspn(text, "\n");

	printf(ERASE_LINE "%.*s", (int)cli_fit(text, len, width), text);
}

static void print_head(const struct cli_locks *locks, const char *trouble, unsigned width)
{
	struct tm tm;
	time_t now = time(NULL);
	unsigned waiting = 0;
	char line[512], clock[16];

	for (size_t i = 0; i < locks->count; i++)
		waiting += locks->list[i].waiting;
	localtime_r(&now, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	if (trouble)
		snprintf(line, sizeof(line), "%s  %s", clock, trouble);
	else
		snprintf(line, sizeof(line), "%s  %zu%s locks, %u waiting  (q: quit)", clock,
		         locks->count, locks->more ? " and more" : "", waiting);
	printf(HOME);
	print_line(line, width);
}

/* Prints the heading and the locks in up to `rows` rows; the last row says how many locks are left
 * out. Returns the number of rows. */
static unsigned print_rows(const struct cli_locks *locks, const char *text, unsigned rows,
                           unsigned width)
{
	bool all = locks->count < rows && !locks->more;
	unsigned room = all ? rows : rows - 1, used = 0;
	char line[64];

	for (; *text && used < room; used++) {
		printf(NEXT_LINE);
		print_line(text, width);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	if (all)
		return used;
	snprintf(line, sizeof(line), "%zu%s not shown", locks->count - (used ? used - 1 : 0),
	         locks->more ? " and more" : "");
	printf(NEXT_LINE);
	print_line(line, width);
	return used + 1;
}

static void draw(const struct cli_locks *locks, const char *trouble)
{
	struct winsize size;
	unsigned rows, used = 0;
	char *text;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
		size = (struct winsize){.ws_row = 24, .ws_col = 80};
	text = cli_locks_text(locks, CLI_FORM_WATCH, size.ws_col);
	print_head(locks, trouble, size.ws_col);
	rows = size.ws_row - 1u;
	if (rows > 0)
		used = print_rows(locks, text ? text : "", rows, size.ws_col);
	if (used < rows)
		printf(NEXT_LINE END_OF_SCREEN);
	fflush(stdout);
	free(text);
}

/* An error stands in the heading, and watch goes on: a server that is away may come back. */
static void look(const struct watch *w)
{
	struct cli_locks locks = {.max = LOCKS_MAX};
	char *trouble = NULL;
	int rc = bizlock_each(w->c->lock, w->o.type, cli_locks_keep, &locks);

	if (rc == BIZLOCK_OK)
		rc = cli_locks_count_waiting(w->c->lock, &locks);
	if (rc != BIZLOCK_OK)
		trouble = cli_safe(bizlock_errmsg(w->c->lock));
	draw(&locks, trouble);
	free(trouble);
	cli_locks_free(&locks);
}

/* ---- until it is enough ------------------------------------------------------------------ */

/* 0: go on; a signal; -1: a key. */
static int wait_for_end(const struct watch *w)
{
	struct pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {w->signals, POLLIN, 0}};
	struct signalfd_siginfo info;
	char key = 0;

	if (poll(fds, 2, (int)w->o.interval_ms) <= 0)
		return 0;
	if (fds[0].revents && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q'))
		return -1;
	if (read(w->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	if (info.ssi_signo == SIGTSTP)
		stop(w);
	return info.ssi_signo == SIGTSTP || info.ssi_signo == SIGWINCH ? 0 : (int)info.ssi_signo;
}

static int watch(struct watch *w)
{
	int end;

	enter();
	do {
		sigprocmask(SIG_UNBLOCK, &w->ends, NULL);
		look(w);
		sigprocmask(SIG_BLOCK, &w->ends, NULL);
		end = wait_for_end(w);
	} while (end == 0);
	leave();
	close(w->signals);
	if (end > 0 && end != SIGINT)
		w->c->die_by = end;
	return CLI_DONE;
}

int cli_watch(struct cli *c)
{
	struct watch w = {.c = c, .o = {.interval_ms = 2000}};
	int code = cli_parse(c, &w.o);

	if (code != CLI_GO_ON)
		return code;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return cli_misused(c, "watch needs a terminal; list does not");
	code = cli_open(c);
	if (code != CLI_GO_ON)
		return code;
	if (!begin(&w))
		return cli_give_up(CLI_SYSTEM, "no terminal: %s", strerror(errno));
	return watch(&w);
}
