/* Kills all processes that the command of bizlock exec has started. Whatever sessions and process
 * groups they have made, they are descendants of the guard or of the wrapper, because both adopt
 * orphans (PR_SET_CHILD_SUBREAPER). The guard calls this, so nothing here takes memory or a lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/exec/exec.h"

#define DEPTH_MAX 10000 /* process numbers that are reused meanwhile could make a circle */

struct process {
	char state;
	pid_t parent, group;
};

/* Parses /proc/PID/stat, where the name, in brackets, may have any characters. */
static bool read_process(int proc, pid_t pid, struct process *ret)
{
	char path[32], text[256];
	char *at;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "%d/stat", (int)pid);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	at = strrchr(text, ')');
	if (!at || strlen(at) < sizeof(") S 1") - 1)
		return false;
	ret->state = at[2];
	ret->parent = (pid_t)strtol(at + 4, &at, 10);
	ret->group = (pid_t)strtol(at, NULL, 10);
	return true;
}

static bool is_below(int proc, pid_t pid, pid_t root)
{
	struct process p = {.parent = pid};

	for (unsigned depth = 0; depth < DEPTH_MAX && read_process(proc, p.parent, &p); depth++)
		if (p.parent == root)
			return true;
	return false;
}

struct tree {
	int proc; /* descriptor of /proc */
	pid_t root, spared;
};

/* A process that has ended needs no signal; one that has changed its user may be out of reach, but
 * lives. */
static bool signal_one(const struct tree *t, pid_t pid, int number)
{
	struct process p;

	if (pid <= 0 || !is_below(t->proc, pid, t->root) || !read_process(t->proc, pid, &p) ||
	    strchr("ZX", p.state) || p.group == t->spared)
		return false;
	return kill(pid, number) == 0 || (!number && errno == EPERM);
}

struct sweep {
	const struct tree *tree;
	int number; /* the signal */
	bool any;
};

static void sweep_one(void *arg, int pid)
{
	struct sweep *s = arg;

	s->any |= signal_one(s->tree, pid, s->number);
}

static bool signal_all(const struct tree *t, int number)
{
	struct sweep s = {t, number, false};

	cli_read_numbers(t->proc, sweep_one, &s);
	return s.any;
}

/* Used if there is no /proc. The guard is in the command's group. */
static void kill_group(pid_t root, pid_t spared)
{
	pid_t group = getpgid(root);

	if (group > 1 && group != spared)
		kill(-group, SIGKILL);
}

bool cli_tree_lives(pid_t root, pid_t spared)
{
	struct tree t = {open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), root, spared};
	bool any = t.proc >= 0 && signal_all(&t, 0);

	if (t.proc >= 0)
		close(t.proc);
	return any;
}

/* All are stopped first: a shell whose command is killed would go on to its next command. */
bool cli_tree_kill(pid_t root, pid_t spared)
{
	struct tree t = {open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), root, spared};
	bool any;

	if (t.proc < 0) {
		kill_group(root, spared);
		return false;
	}
	signal_all(&t, SIGSTOP);
	any = signal_all(&t, SIGKILL);
	close(t.proc);
	return any;
}
