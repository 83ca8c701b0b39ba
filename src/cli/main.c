/* bizlock(1): runs commands under a lock, shows and repairs what is there. It uses
 * the library as everybody else does, by its public header. */
#include <locale.h>
#include <signal.h>
#include <string.h>

#include "cli/cli.h"

/* The second name it is installed by, for cron and timers. */
static bool is_reaper(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return path && strcmp(slash ? slash + 1 : path, "bizlock-reaper") == 0;
}

/* So that whoever started us sees what ended us. */
static void die_by(int number)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	signal(number, SIG_DFL);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static int choose(struct cli *c, const char *name)
{
	struct cli_near near;

	c->command = cli_find_command(name, &near);
	return c->command ? CLI_GO_ON : cli_unknown_command(c, &near);
}

static int run(struct cli *c)
{
	int code;

	if (is_reaper(c->argv[0])) {
		code = choose(c, "reap");
		return code == CLI_GO_ON ? c->command->run(c) : code;
	}
	code = cli_parse_first(c);
	if (code != CLI_GO_ON)
		return code;
	if (c->argc == 0)
		return cli_misused(c, "no command given");
	code = choose(c, c->argv[0]);
	return code == CLI_GO_ON ? c->command->run(c) : code;
}

int main(int argc, char **argv)
{
	struct cli c = {.argc = argc, .argv = argv};
	int code;

	cli_guard_files();
	cli_mind_pipes(&c);
	setlocale(LC_ALL, "");
	if (bizlock_new(&c.lock) != BIZLOCK_OK)
		return cli_give_up(CLI_INTERNAL, "%s", bizlock_errmsg(NULL));
	code = run(&c);
	bizlock_close(c.lock);
	code = cli_finish(&c, code);
	if (c.die_by)
		die_by(c.die_by);
	return code;
}
