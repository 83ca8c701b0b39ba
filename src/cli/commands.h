/* The commands, each in a file of its own, with its options and the rest of its help. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"

#define CLI_COMMAND(name)                                                                          \
	int cli_##name(struct cli *c);                                                             \
	extern const struct cli_option cli_##name##_options[];                                     \
	extern const char cli_##name##_more[];

CLI_COMMAND(exec)
CLI_COMMAND(acquire)
CLI_COMMAND(renew)
CLI_COMMAND(release)
CLI_COMMAND(list)
CLI_COMMAND(show)
CLI_COMMAND(watch)
CLI_COMMAND(metrics)
CLI_COMMAND(runs)
CLI_COMMAND(overdue)
CLI_COMMAND(break)
CLI_COMMAND(reap)
CLI_COMMAND(migrate)
CLI_COMMAND(grants)
CLI_COMMAND(doctor)

#endif
