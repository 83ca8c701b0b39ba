/* Starts the command of bizlock exec by the guard: its open files, environment, process group. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/exec/exec.h"

/* ---- what it inherits ------------------------------------------------------------ */

static int by_number(const void *a, const void *b)
{
	int left = *(const int *)a, right = *(const int *)b;

	return (left > right) - (left < right);
}

/* Notes the open files before the library opens any. The command must not get the library's files,
 * whether a connector opens them with O_CLOEXEC or not. */
static void note_files(struct cli_inherited *ret)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	while (dir && ret->file_count < EXEC_FILES_MAX && (entry = readdir(dir)) != NULL) {
		uint64_t fd;
		int flags;

		if (!cli_read_number(entry->d_name, &fd) || (int)fd == dirfd(dir))
			continue;
		flags = fcntl((int)fd, F_GETFD);
		if (flags >= 0 && !(flags & FD_CLOEXEC))
			ret->files[ret->file_count++] = (int)fd;
	}
	if (dir)
		closedir(dir);
	qsort(ret->files, (size_t)ret->file_count, sizeof(ret->files[0]), by_number);
}

/* The command keeps the lock of an exec of which both wrapper and guard were killed, until the
 * lease is over: else the next exec would run beside it (option runtime_dir). */
static void keep_alive(struct cli_exec *x)
{
	struct cli_inherited *in = &x->inherited;
	int fd = bizlock_life_fd(x->c->lock);

	if (fd < 0)
		return;
	fcntl(fd, F_SETFD, 0);
	if (in->file_count == 0 || in->file_count == EXEC_FILES_MAX)
		return; /* see close_others() */
	in->files[in->file_count++] = fd;
	qsort(in->files, (size_t)in->file_count, sizeof(in->files[0]), by_number);
}

void cli_inherited_note(struct cli_inherited *ret)
{
	struct sigaction normal = {.sa_handler = SIG_DFL};

	sigprocmask(SIG_SETMASK, NULL, &ret->mask);
	/* If SIGCHLD were ignored, there would be no status to wait for. */
	sigaction(SIGCHLD, &normal, &ret->child);
	note_files(ret);
}

#ifndef SYS_close_range
#define SYS_close_range 436 /* of headers before Linux 5.9; the number is the same everywhere */
#endif

struct range {
	unsigned first, last;
	int folder; /* /proc/self/fd */
};

static void close_one(void *arg, int fd)
{
	const struct range *r = arg;

	if (fd != r->folder && (unsigned)fd >= r->first && (unsigned)fd <= r->last)
		close(fd);
}

/* Of a kernel before Linux 5.9, or where a filter refuses close_range(). The numbers up to the
 * limit are the last resort: there may be a billion of them, and files above a limit that was
 * lowered. */
static void close_one_by_one(unsigned first, unsigned last)
{
	struct range r = {first, last, open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	long limit = sysconf(_SC_OPEN_MAX);

	if (r.folder >= 0) {
		cli_read_numbers(r.folder, close_one, &r);
		close(r.folder);
		return;
	}
	for (unsigned fd = first; fd <= last && (long)fd < limit; fd++)
		close((int)fd);
}

void cli_close_files(unsigned first, unsigned last)
{
	if (syscall(SYS_close_range, first, last, 0) != 0)
		close_one_by_one(first, last);
}

/* If there are more files than noted, O_CLOEXEC closes nearly all. */
static void close_others(const struct cli_inherited *in)
{
	unsigned from = 0;

	if (in->file_count == 0 || in->file_count == EXEC_FILES_MAX)
		return;
	for (int i = 0; i < in->file_count; i++) {
		unsigned fd = (unsigned)in->files[i];

		if (fd > from)
			cli_close_files(from, fd - 1);
		from = fd + 1;
	}
	cli_close_files(from, ~0u);
}

/* ---- its environment --------------------------------------------------------------- */

/* None of these names is BIZLOCK_<OPTION> of an option, because a program that uses the library
 * would read it as that option. BIZLOCK_OUTER: owners of all the execs around the command. */
static const char *const variables[] = {
        "BIZLOCK_TYPE=",  "BIZLOCK_ID=",   "BIZLOCK_FENCE=",    "BIZLOCK_OWNER=",
        "BIZLOCK_OUTER=", "BIZLOCK_SLOT=", "BIZLOCK_TOOK_OVER="};

#define VARIABLES (sizeof(variables) / sizeof(variables[0]))

/* Of the second key and later keys, with its number. */
static const char *const numbered[] = {"BIZLOCK_TYPE_", "BIZLOCK_ID_", "BIZLOCK_FENCE_",
                                       "BIZLOCK_TOOK_OVER_"};

#define NUMBERED (sizeof(numbered) / sizeof(numbered[0]))

/* The command does not get our password: all that the command runs could read it, and so could
 * everybody who sees its environment. */
static bool is_ours(const char *entry)
{
	if (strncmp(entry, "BIZLOCK_PASSWORD=", strlen("BIZLOCK_PASSWORD=")) == 0)
		return true;
	for (size_t i = 0; i < VARIABLES; i++)
		if (strncmp(entry, variables[i], strlen(variables[i])) == 0)
			return true;
	for (size_t i = 0; i < NUMBERED; i++) {
		size_t len = strlen(numbered[i]);

		if (strncmp(entry, numbered[i], len) == 0 && entry[len] >= '0' && entry[len] <= '9')
			return true;
	}
	return false;
}

static char *outer(const struct cli_exec *x)
{
	const char *before = getenv("BIZLOCK_OUTER");
	char *ret = NULL;

	if (asprintf(&ret, "%s%s%s", before ? before : "", before && *before ? " " : "", x->owner) <
	    0)
		return NULL;
	return ret;
}

static const char *took_over(const bizlock_grant *grant)
{
	return grant->flags & BIZLOCK_TOOK_OVER ? "1" : "0";
}

/* Of keys.list[i]; returns where the next variables go. NULL: out of memory. */
static char **add_numbered(const struct cli_exec *x, size_t i, char **to)
{
	char fence[24];
	const char *values[NUMBERED] = {x->keys.list[i].biz_type, x->keys.list[i].biz_id, fence,
	                                took_over(&x->grants[i])};

	snprintf(fence, sizeof(fence), "%" PRIu64, x->grants[i].fence);
	for (size_t n = 0; n < NUMBERED; n++, to++)
		if (asprintf(to, "%s%zu=%s", numbered[n], i + 1, values[n]) < 0) {
			*to = NULL;
			return NULL;
		}
	return to;
}

static bool add_variables(const struct cli_exec *x, char **to)
{
	char fence[24], slot[16], *all = outer(x);
	const char *values[VARIABLES] = {
	        x->keys.list[0].biz_type, x->keys.list[0].biz_id, fence, x->owner, all, slot,
	        took_over(&x->grants[0])};
	bool done = all != NULL;

	snprintf(fence, sizeof(fence), "%" PRIu64, x->grants[0].fence);
	snprintf(slot, sizeof(slot), "%" PRIu32, x->grants[0].slot);
	for (size_t i = 0; done && i < VARIABLES; i++)
		if (asprintf(&to[i], "%s%s", variables[i], values[i]) < 0) {
			to[i] = NULL;
			done = false;
		}
	to += VARIABLES;
	for (size_t i = 1; done && i < x->keys.count; i++) {
		to = add_numbered(x, i, to);
		done = to != NULL;
	}
	free(all);
	return done;
}

struct environment {
	char **entries, **own; /* own: the variables we set, behind the inherited ones */
};

static void free_environment(struct environment *e)
{
	for (char **at = e->own; at && *at; at++)
		free(*at);
	free(e->entries);
}

static bool make_environment(const struct cli_exec *x, struct environment *ret)
{
	size_t count = 0, kept = 0;

	while (environ[count])
		count++;
	ret->entries =
	        calloc(count + VARIABLES + x->keys.count * NUMBERED + 1, sizeof(*ret->entries));
	if (!ret->entries)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!is_ours(environ[i]))
			ret->entries[kept++] = environ[i];
	ret->own = ret->entries + kept;
	return add_variables(x, ret->own);
}

/* ---- the child ------------------------------------------------------------------------ */

/* What execve() answers. strerror() may take memory and locks to find a translation. */
static const char *say_why(int error)
{
	switch (error) {
	case ENOENT:
		return "No such file or directory";
	case EACCES:
		return "Permission denied";
	case EPERM:
		return "Operation not permitted";
	case ENOEXEC:
		return "Exec format error";
	case E2BIG:
		return "Argument list too long";
	case ETXTBSY:
		return "Text file busy";
	case ENOTDIR:
		return "Not a directory";
	case EISDIR:
		return "Is a directory";
	case ELOOP:
		return "Too many levels of symbolic links";
	case ENAMETOOLONG:
		return "File name too long";
	case ENOMEM:
		return "Cannot allocate memory";
	case EAGAIN:
		return "Too many processes of this user";
	case EMFILE:
	case ENFILE:
		return "Too many open files";
	case EIO:
		return "Input/output error";
	default:
		return "It cannot be run";
	}
}

static _Noreturn void not_run(const char *name)
{
	int code = errno == ENOENT ? 127 : 126;
	const char *words[] = {"bizlock: ", name, ": ", say_why(errno), "\n"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (write(STDERR_FILENO, words[i], strlen(words[i])) < 0)
			break;
	_exit(code);
}

/* After a fork from a process with threads: nothing here takes memory or a lock. */
static _Noreturn void become(const struct cli_launch *l, pid_t guard)
{
	const struct cli_inherited *in = &l->x->inherited;
	struct sigaction normal = {.sa_handler = SIG_DFL};
	char go;

	setpgid(0, 0);
	close(l->go[1]);
	/* If the guard has died before this call, there is no signal: so its number is checked. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != guard)
		_exit(126);
	if (read(l->go[0], &go, 1) != 1)
		_exit(126);
	if (!l->x->c->pipe_ignored)
		sigaction(SIGPIPE, &normal, NULL);
	sigaction(SIGCHLD, &in->child, NULL);
	sigprocmask(SIG_SETMASK, &in->mask, NULL);
	close_others(in);
	*l->x->ran = true;
	execvpe(l->x->command[0], l->x->command, l->environment);
	*l->x->ran = false;
	not_run(l->x->command[0]);
}

pid_t cli_launch(const struct cli_launch *l)
{
	pid_t guard = getpid(), pid = fork();

	if (pid == 0)
		become(l, guard);
	return pid;
}

/* ---- the wrapper ---------------------------------------------------------------------- */

static int cannot_start(const char *why)
{
	return cli_give_up(CLI_SYSTEM, "no process can be started%s%s", why ? ": " : "",
	                   why ? why : "");
}

/* Lets the command, which waits in its group, begin: after the guard knows when to kill. */
static int release_command(struct cli_exec *x, const struct cli_launch *l)
{
	if (cli_exec_rest_ms(x) <= 0)
		return cli_give_up(CLI_LOST, "%s: the lock is lost; the command was not started",
		                   x->name);
	if (x->tty.alone)
		cli_tty_lend(&x->tty, x->child);
	return write(l->go[1], "", 1) == 1 ? CLI_GO_ON : CLI_SYSTEM;
}

static int start_guard(struct cli_exec *x, const struct cli_launch *l)
{
	struct pollfd report = {.events = POLLIN};
	struct cli_report r;

	/* We adopt the orphans of the command if the guard is killed. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (!cli_guard_start(l, &x->guard))
		return cannot_start(strerror(errno));
	report.fd = x->guard.reports;
	poll(&report, 1, -1);
	if (cli_guard_read(&x->guard, &r) != CLI_REPORT_STARTED)
		return cannot_start(NULL);
	x->child = r.value;
	x->life = (int)syscall(SYS_pidfd_open, x->child, 0);
	return release_command(x, l);
}

/* The exit code does not tell whether the command ran: it may exit with 127 after an hour. */
static bool share_ran(struct cli_exec *x)
{
	x->ran = mmap(NULL, sizeof(*x->ran), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	              0);
	return x->ran != MAP_FAILED;
}

int cli_exec_start(struct cli_exec *x)
{
	struct cli_launch l = {.x = x, .wrapper = getpid()};
	struct environment e = {0};
	int code;

	keep_alive(x);
	if (!share_ran(x) || !make_environment(x, &e))
		code = cli_give_up(CLI_INTERNAL, "out of memory");
	else if (pipe2(l.go, O_CLOEXEC) != 0)
		code = cli_give_up(CLI_SYSTEM, "no pipe can be made: %s", strerror(errno));
	else {
		l.environment = e.entries;
		code = start_guard(x, &l);
		close(l.go[0]);
		close(l.go[1]);
	}
	free_environment(&e);
	return code;
}
