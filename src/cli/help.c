/* Prints the help of every command from its table. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

#define COLUMN 31 /* where explanations begin */

static void show_option(const struct cli_option *o)
{
	char left[64];
	int width = snprintf(left, sizeof(left), "  %c%c%s--%s%s%s", o->letter ? '-' : ' ',
	                     o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name,
	                     o->arg ? " " : "", o->arg ? o->arg : "");

	if (width > COLUMN - 2)
		printf("%s\n%*s%s\n", left, COLUMN, "", o->help);
	else
		printf("%-*s%s\n", COLUMN, left, o->help);
}

static void show_options(const struct cli_option *o)
{
	for (; o && o->name; o++)
		if (o->help)
			show_option(o);
}

void cli_help(const struct cli_command *command)
{
	printf("Usage: bizlock %s [OPTION...]%s%s\n%s.\n\n", command->name,
	       *command->words ? " " : "", command->words, command->summary);
	show_options(command->options);
	show_options(cli_common_options);
	printf("  -h, -P, -S, -u, -p, -D ...   server, as in mysql(1); bizlock help connection\n");
	if (command->more)
		printf("\n%s", command->more);
}

void cli_help_all(void)
{
	printf("Usage: bizlock [OPTION...] COMMAND [ARGUMENT...]\n"
	       "Distributed locks in MySQL or MariaDB.\n\n");
	for (const struct cli_command *command = cli_commands; command->name; command++)
		printf("  %-10s %s\n", command->name, command->summary);
	printf("\nbizlock help COMMAND, help connection (server, password, --trace), help\n"
	       "exit-codes. Durations are 500ms, 1.5s, 5m, 1h or 2d; without a unit, seconds.\n");
}

void cli_help_connection(void)
{
	printf("Where the server is, and --trace, for every command, before it or behind it:\n\n");
	show_options(cli_connection_options);
	printf("\nWhat is not given here is taken from the environment (BIZLOCK_HOST and so on),\n"
	       "then from the groups [bizlock] and [client] of the option files.\n");
}

void cli_help_exits(void)
{
#define SHOW_(name, number, text) printf("  %3d  %s\n", number, text);
	CLI_EXITS(SHOW_)
#undef SHOW_
	printf("  126  exec: the command cannot be run\n"
	       "  127  exec: the command is not found\n"
	       "  128 + n  ended by signal n while it waited\n");
}
