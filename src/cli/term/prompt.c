/* Asks for a password at the terminal, and leaves the terminal as it was. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "cli/cli.h"

#define SECRET_MAX 1024

/* Signals that end or stop us at the prompt must not leave the terminal without echo. */
static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};

#define CAUGHT_COUNT (sizeof(caught) / sizeof(caught[0]))

static volatile sig_atomic_t came;

static void note(int number)
{
	came = number;
}

static void catch_signals(struct sigaction was[CAUGHT_COUNT])
{
	struct sigaction ours = {.sa_handler = note}; /* no SA_RESTART: read() is to end */

	came = 0;
	for (size_t i = 0; i < CAUGHT_COUNT; i++) {
		sigaction(caught[i], NULL, &was[i]);
		if (was[i].sa_handler != SIG_IGN)
			sigaction(caught[i], &ours, NULL);
	}
}

static void release_signals(const struct sigaction was[CAUGHT_COUNT])
{
	for (size_t i = 0; i < CAUGHT_COUNT; i++)
		sigaction(caught[i], &was[i], NULL);
}

/* Reads a line, without its end; returns its length, -1: no input. */
static ssize_t read_line(int fd, char *ret, size_t size)
{
	size_t len = 0;
	ssize_t got;
	char c = 0;

	while (!came && (got = read(fd, &c, 1)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 || c == '\n')
			break;
		if (len < size - 1)
			ret[len++] = c;
	}
	ret[len] = '\0';
	return c == '\n' ? (ssize_t)len : -1;
}

static bool ask_once(int fd, const char *prompt, char *ret, size_t size)
{
	struct sigaction was[CAUGHT_COUNT];
	struct termios normal, silent;
	ssize_t len = -1;

	if (tcgetattr(fd, &normal) != 0)
		return false;
	silent = normal;
	silent.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
	catch_signals(was);
	if (tcsetattr(fd, TCSAFLUSH, &silent) == 0 &&
	    write(fd, prompt, strlen(prompt)) == (ssize_t)strlen(prompt))
		len = read_line(fd, ret, size);
	tcsetattr(fd, TCSAFLUSH, &normal);
	release_signals(was);
	/* The user's own end of line was not shown. */
	if (write(fd, "\n", 1) != 1)
		return false;
	return len >= 0;
}

bool cli_ask_secret(const char *prompt, char **ret)
{
	int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
	char line[SECRET_MAX];
	bool done = false;

	*ret = NULL;
	if (fd < 0)
		return false;
	do {
		errno = ENODATA;
		done = ask_once(fd, prompt, line, sizeof(line));
		if (came)
			raise(came);
	} while (!done && came == SIGTSTP); /* continued: asked again */
	close(fd);
	*ret = done ? strdup(line) : NULL;
	explicit_bzero(line, sizeof(line));
	return *ret != NULL;
}
