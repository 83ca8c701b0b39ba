#define _GNU_SOURCE 1
#include "own_server.h"

#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "patience.h"

static const char *script(void)
{
	const char *path = getenv("BIZLOCK_SERVER_SH");

	return path ? path : "";
}

bool own_server_possible(void)
{
	return script()[0] != '\0';
}

bool faketime_library(char *ret, size_t size)
{
	glob_t found = {0};
	bool is_there;

	glob("/usr/lib*/*/faketime/libfaketimeMT.so.1", 0, NULL, &found);
	glob("/usr/lib*/faketime/libfaketimeMT.so.1", GLOB_APPEND, NULL, &found);
	is_there = found.gl_pathc > 0;
	if (is_there)
		snprintf(ret, size, "%s", found.gl_pathv[0]);
	globfree(&found);
	return is_there;
}

static void shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void shell(const char *fmt, ...)
{
	char command[2048];
	va_list args;

	va_start(args, fmt);
	vsnprintf(command, sizeof(command), fmt, args);
	va_end(args);
	if (system(command) != 0)
		die("failed: %s", command);
}

static void run_script(const char *what, const char *dir, const char *args)
{
	shell("bash '%s' %s '%s' %s >&2", script(), what, dir, args);
}

/* One line "BIZLOCK_TEST_NAME=value", the value perhaps in quotes. */
static void take_line(struct server *at, char *line)
{
	char *value = strchr(line, '=');

	line[strcspn(line, "\n")] = '\0';
	if (!value || strncmp(line, "BIZLOCK_TEST_", 13) != 0)
		return;
	*value++ = '\0';
	line += 13;
	if (strcmp(line, "HOST") == 0)
		snprintf(at->host, sizeof(at->host), "%s", value);
	else if (strcmp(line, "PORT") == 0)
		at->port = (unsigned)strtoul(value, NULL, 10);
	else if (strcmp(line, "SOCKET") == 0)
		snprintf(at->socket, sizeof(at->socket), "%s", value);
	else if (strcmp(line, "USER") == 0)
		snprintf(at->user, sizeof(at->user), "%s", value);
	else if (strcmp(line, "PASSWORD") == 0)
		snprintf(at->password, sizeof(at->password), "%s", value);
}

struct server own_server_address(const char *dir)
{
	struct server at = {0};
	char command[1024], line[512];
	FILE *in;

	snprintf(command, sizeof(command), "bash '%s' env '%s'", script(), dir);
	in = popen(command, "r");
	if (!in)
		die("failed: %s", command);
	while (fgets(line, sizeof(line), in))
		take_line(&at, line);
	if (pclose(in) != 0 || !at.socket[0])
		die("no address from: %s", command);
	return at;
}

/* A process that outlives the test by a moment. It sees the test's end of the pipe close, and
 * removes what the test left behind. */
static void start_guard(struct own_server *s)
{
	static const char clean_up[] = "bash \"$0\" kill \"$1\" && rm -rf \"$1\"";
	char c;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) != 0 || (s->guard = fork()) < 0)
		die("no guard process");
	if (s->guard == 0) {
		setsid();
		close(fds[1]);
		if (read(fds[0], &c, 1) == 0)
			execlp("bash", "bash", "-c", clean_up, script(), s->dir, (char *)NULL);
		_exit(0);
	}
	close(fds[0]);
	s->guard_fd = fds[1];
}

static void make_dir(struct own_server *s)
{
	const char *tmp = getenv("TMPDIR");

	*s = (struct own_server){0};
	snprintf(s->dir, sizeof(s->dir), "%.200s/bizlock-test-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(s->dir))
		die("mkdtemp failed");
}

void own_server_start(struct own_server *s, const char *args)
{
	if (!s->dir[0])
		make_dir(s);
	start_guard(s);
	run_script("start", s->dir, args);
	s->at = own_server_address(s->dir);
}

void own_server_copy(struct own_server *s, const struct own_server *of)
{
	make_dir(s);
	shell("cp -a '%s/data' '%s/data.complete' '%s'", of->dir, of->dir, s->dir);
}

void own_server_do(struct own_server *s, const char *what)
{
	run_script(what, s->dir, "");
}

void own_server_end(struct own_server *s)
{
	if (!s->dir[0])
		return;
	run_script("kill", s->dir, "");
	if (write(s->guard_fd, "", 1) != 1)
		die("the guard is gone");
	close(s->guard_fd);
	waitpid(s->guard, NULL, 0);
	shell("rm -rf '%s'", s->dir);
	s->dir[0] = '\0';
}
