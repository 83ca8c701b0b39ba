#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"

static int help(struct cli *c)
{
	int code = cli_parse(c, NULL);
	const char *topic;

	if (code != CLI_GO_ON)
		return code;
	topic = c->argc > 0 ? c->argv[0] : "";
	if (!*topic)
		cli_help_all();
	else if (strcmp(topic, "connection") == 0)
		cli_help_connection();
	else if (strcmp(topic, "exit-codes") == 0)
		cli_help_exits();
	else if (cli_choose(c, topic) != CLI_GO_ON)
		return CLI_USAGE;
	else
		cli_help(c->command);
	return CLI_DONE;
}

/* In the order of the help. Their options stand in the files of the commands. */
const struct cli_command cli_commands[] = {
        {"exec", "BIZ_TYPE BIZ_ID -- COMMAND [ARGUMENT...]", "Run a command under a lock", 0, 2,
         cli_exec_options, cli_exec_more, cli_exec},
        {"acquire", "BIZ_TYPE BIZ_ID", "Acquire a lock for longer than a command; print a ticket",
         2, 2, cli_acquire_options, cli_acquire_more, cli_acquire},
        {"renew", "TICKET", "Renew that lock; print the next ticket", 1, 1, cli_renew_options,
         cli_renew_more, cli_renew},
        {"release", "TICKET", "Release that lock", 1, 1, cli_release_options, cli_release_more,
         cli_release},
        {"list", "", "Show all locks", 0, 0, cli_list_options, cli_list_more, cli_list},
        {"show", "BIZ_TYPE BIZ_ID", "Show one lock, and who waits for it", 2, 2, cli_show_options,
         cli_show_more, cli_show},
        {"watch", "", "Show all locks again and again, and how many wait", 0, 0, cli_watch_options,
         cli_watch_more, cli_watch},
        {"runs", "[BIZ_TYPE [BIZ_ID]]", "Show the last runs of jobs", 0, 2, cli_runs_options,
         cli_runs_more, cli_runs},
        {"overdue", "BIZ_TYPE BIZ_ID", "Check whether a job has succeeded in time", 2, 2,
         cli_overdue_options, cli_overdue_more, cli_overdue},
        {"metrics", "", "Print numbers about the tables for Prometheus", 0, 0, cli_metrics_options,
         cli_metrics_more, cli_metrics},
        {"break", "BIZ_TYPE BIZ_ID", "Free a lock in place of its holder", 2, 2, cli_break_options,
         cli_break_more, cli_break},
        {"reap", "", "Purge rows that are no longer of use; also: bizlock-reaper", 0, 0,
         cli_reap_options, cli_reap_more, cli_reap},
        {"migrate", "", "Create or update the tables", 0, 0, cli_migrate_options, cli_migrate_more,
         cli_migrate},
        {"grants", "USER", "Print the GRANTs that a user needs", 1, 1, cli_grants_options,
         cli_grants_more, cli_grants},
        {"doctor", "", "Check whether server, tables and user are fit", 0, 0, cli_doctor_options,
         cli_doctor_more, cli_doctor},
        {"help", "[COMMAND]", "Explain a command", 0, 1, NULL, NULL, help},
        {0},
};

int cli_choose(struct cli *c, const char *name)
{
	struct cli_near near = cli_near_to(name);

	c->command = NULL;
	for (const struct cli_command *command = cli_commands; command->name; command++) {
		if (strcmp(command->name, name) == 0) {
			c->command = command;
			return CLI_GO_ON;
		}
		cli_near_try(&near, command->name);
	}
	return cli_misused(c, "unknown command \"%s\"%s%s%s", name,
	                   near.name ? ", did you mean \"" : "", near.name ? near.name : "",
	                   near.name ? "\"?" : "");
}

bizlock_key cli_key(const struct cli *c)
{
	return (bizlock_key){c->argv[0], c->argv[1]};
}
