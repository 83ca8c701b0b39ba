/* The output of commands: lines that cannot harm a terminal, and a check that they were written. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

#define SPEAKER "bizlock: " /* begins lines on stderr */

static void print_line(FILE *out, const char *before, const char *format, va_list args)
{
	char *text = NULL, *safe = NULL;

	if (vasprintf(&text, format, args) < 0)
		return;
	safe = cli_safe(text);
	fprintf(out, "%s%s\n", before, safe ? safe : "out of memory");
	free(safe);
	free(text);
}

void cli_print(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line(stdout, "", format, args);
	va_end(args);
}

void cli_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line(stderr, SPEAKER, format, args);
	va_end(args);
}

int cli_give_up(enum cli_exit code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line(stderr, SPEAKER, format, args);
	va_end(args);
	return code;
}

int cli_misused(const struct cli *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line(stderr, SPEAKER, format, args);
	va_end(args);
	fprintf(stderr, "Try 'bizlock %s%s--help'.\n", c->command ? c->command->name : "",
	        c->command ? " " : "");
	return CLI_USAGE;
}

void cli_guard_files(void)
{
	for (int fd = 0; fd <= 2; fd++)
		/* Standard input for writing, the others for reading: using a file that was
		 * closed must stay an error. For the command of exec it is closed again. */
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			open("/dev/null", (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

void cli_mind_pipes(struct cli *c)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, was;

	c->pipe_ignored = sigaction(SIGPIPE, &ignore, &was) == 0 && was.sa_handler == SIG_IGN;
}

static bool pipe_is_closed(void)
{
	struct pollfd out = {STDOUT_FILENO, POLLOUT, 0};

	return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

int cli_finish(const struct cli *c, int code)
{
	bool failed = ferror(stdout) != 0;

	errno = 0;
	if (fflush(stdout) == 0 && !failed)
		return code;
	if (pipe_is_closed() && !c->pipe_ignored) {
		/* The reader of our output, such as head(1), has ended: we end as filters do. */
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}
	return cli_give_up(CLI_OUTPUT, "standard output: %s",
	                   errno ? strerror(errno) : "could not be written");
}
