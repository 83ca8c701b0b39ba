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

/* The code point at `at`, and its length; 0: not UTF-8. */
static size_t decode(const unsigned char *at, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;
	uint32_t point = len == 1 ? *at : *at & (0x7fu >> len);

	if (len == 0 || *at > 0xf4)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (at[i] & 0x3fu);
	}
	*ret = point;
	return point < least[len] || point > 0x10ffff ? 0 : len;
}

static bool harmless(uint32_t point)
{
	if (point < 0x20 || (point >= 0x7f && point < 0xa0))
		return false;
	/* line and paragraph separators, and what turns the direction of writing */
	return !(point >= 0x2028 && point <= 0x202e) && !(point >= 0x2066 && point <= 0x2069) &&
	       point != 0x200e && point != 0x200f && !(point >= 0xd800 && point < 0xe000);
}

char *cli_safe(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	char *ret = malloc(4 * strlen(text) + 1), *to = ret;
	uint32_t point = 0;

	while (ret && *at) {
		size_t len = decode(at, &point);

		if (len > 0 && harmless(point)) {
			memcpy(to, at, len);
			to += len;
			at += len;
			continue;
		}
		for (len = len ? len : 1; len > 0; len--, at++, to += 4)
			snprintf(to, 5, "\\x%02x", *at);
	}
	if (ret)
		*to = '\0';
	return ret;
}

static void say(const char *format, va_list args)
{
	char *text = NULL, *safe = NULL;

	if (vasprintf(&text, format, args) < 0)
		return;
	safe = cli_safe(text);
	fprintf(stderr, "bizlock: %s\n", safe ? safe : "out of memory");
	free(safe);
	free(text);
}

void cli_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

int cli_misused(const struct cli *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	fprintf(stderr, "Try 'bizlock %s%s--help'.\n", c->command ? c->command->name : "",
	        c->command ? " " : "");
	return CLI_USAGE;
}

void cli_guard_files(void)
{
	for (int fd = 0; fd <= 2; fd++)
		/* The wrong way round: who writes to what is closed shall hear of it. And closed
		 * again in what exec runs. */
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
		/* Its reader, such as head(1), has seen enough: we end as filters do. */
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}
	cli_say("standard output: %s", errno ? strerror(errno) : "could not be written");
	return CLI_OUTPUT;
}
