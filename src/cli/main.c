/* bizlock(1): runs commands under locks, and shows and repairs locks. It uses only the public
 * headers of the library. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* Dies by the signal, so that the parent process sees which signal ended us. */
static void die_by(int number)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	signal(number, SIG_DFL);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static int run(struct cli *c)
{
	const char *name = "reap";
	int code;

	/* The second name it is installed by, for cron and timers. */
	if (strcmp(program_invocation_short_name, "bizlock-reaper") != 0) {
		code = cli_parse_first(c);
		if (code != CLI_GO_ON)
			return code;
		if (c->argc == 0)
			return cli_misused(c, "no command given");
		name = c->argv[0];
	}
	code = cli_choose(c, name);
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
	if (!c.left)
		bizlock_close(c.lock);
	code = cli_finish(&c, code);
	if (c.die_by)
		die_by(c.die_by);
	if (c.left)
		_exit(code); /* exit() would destroy objects that the thread still uses */
	return code;
}
