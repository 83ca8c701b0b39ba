/* The terminal of bizlock exec: lent to the command, and taken back. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/exec/exec.h"

/* In a pipeline the terminal belongs to all processes: if the command took it, the pager at the
 * other end would be stopped. So the command gets the terminal only when it asks. */
static bool is_piped(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

void cli_tty_begin(struct cli_tty *t)
{
	*t = (struct cli_tty){.fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)};
	t->alone = !is_piped(STDIN_FILENO) && !is_piped(STDOUT_FILENO);
}

void cli_tty_end(struct cli_tty *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

bool cli_tty_is_ours(const struct cli_tty *t)
{
	return t->fd >= 0 && tcgetpgrp(t->fd) == getpgrp();
}

/* A terminal that was hung up has no group. */
bool cli_tty_is_anothers(const struct cli_tty *t)
{
	pid_t group = t->fd >= 0 ? tcgetpgrp(t->fd) : -1;

	return group >= 0 && group != getpgrp();
}

void cli_tty_lend(struct cli_tty *t, pid_t group)
{
	if (!cli_tty_is_ours(t))
		return;
	t->changed = tcgetattr(t->fd, &t->modes) == 0;
	if (tcsetpgrp(t->fd, group) == 0)
		t->lent = group;
}

/* SIGTTOU is blocked while a command runs; otherwise this would stop us. */
void cli_tty_take_back(struct cli_tty *t, bool mend_modes)
{
	if (t->lent && tcgetpgrp(t->fd) == t->lent) {
		tcsetpgrp(t->fd, getpgrp());
		if (mend_modes && t->changed)
			tcsetattr(t->fd, TCSADRAIN, &t->modes);
	}
	t->lent = 0;
}
