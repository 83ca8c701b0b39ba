/* The commands, each in a file of its own, with its options and the rest of its help. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"

int cli_exec(struct cli *c);
extern const struct cli_option cli_exec_options[];
extern const char cli_exec_more[];

#endif
