/* bizlock list: shows all locks, or a selection. */
#include "cli/command/locks.h"
#include "cli/commands.h"

struct options {
	const char *type;
	bool held, stale, json;
};

#define AT(field) offsetof(struct options, field)

const struct cli_option cli_list_options[] = {
        {"type", 't', CLI_TEXT, AT(type), 0, 0, "BIZ_TYPE", "those of one type"},
        {"held", 0, CLI_FLAG, AT(held), 0, 0, NULL, "those that are held now"},
        {"stale", 0, CLI_FLAG, AT(stale), 0, 0, NULL, "those whose lease is over"},
        {"json", 0, CLI_FLAG, AT(json), 0, 0, NULL, "durations in milliseconds"},
        {0},
};

const char cli_list_more[] =
        "MODE is exclusive, or shared with slot and limit. OWNER is a thread's number,\n"
        "a name, or (ticket): whoever has the ticket that PID made, as bizlock acquire\n"
        "does. HELD is the time since the lock was acquired, LEFT what remains of its\n"
        "lease by the server's clock. A lock that rests was released, and nobody gets it\n"
        "yet. A row that is stale hinders nobody.\n";

int cli_list(struct cli *c)
{
	struct options o = {0};
	struct cli_locks locks = {0};
	int code = cli_parse(c, &o), rc;

	if (code == CLI_GO_ON && o.held && o.stale)
		return cli_misused(c, "list: --held or --stale, not both");
	if (code == CLI_GO_ON)
		code = cli_open(c);
	if (code != CLI_GO_ON)
		return code;
	locks.held_only = o.held;
	locks.stale_only = o.stale;
	rc = bizlock_each(c->lock, o.type, cli_locks_keep, &locks);
	code = rc == BIZLOCK_OK ? cli_print_locks(&locks, o.json) : cli_failed(c, rc);
	cli_locks_free(&locks);
	return code;
}
