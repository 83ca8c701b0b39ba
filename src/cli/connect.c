/* Opens the client of a command: options of the connection, the password, errors. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define SETTING(name, letter, arg, help)                                                           \
	{                                                                                          \
		name, letter, CLI_SETTING, 0, 0, 0, arg, help                                      \
	}

/* Names and letters as the mysql client has them. */
const struct cli_option cli_connection_options[] = {
        SETTING("host", 'h', "HOST", "or several, tried in order: db1,db2:3307"),
        SETTING("port", 'P', "PORT", "of each host that names none; 3306"),
        SETTING("socket", 'S', "FILE", "for host localhost"),
        SETTING("user", 'u', "NAME", "the login name, if not given"),
        {"password", 'p', CLI_PASSWORD, 0, 0, 0, NULL, "ask for it; it is never an argument"},
        SETTING("database", 'D', "NAME", "where the tables are"),
        SETTING("defaults-file", 0, "FILE", "in place of the usual option files"),
        SETTING("defaults-group-suffix", 0, "TEXT", "read [clientTEXT] and [bizlockTEXT], too"),
        SETTING("ssl-mode", 0, "MODE", "disabled, required, verify-ca, verify-identity"),
        SETTING("ssl-ca", 0, "FILE", "certificates that sign servers"),
        SETTING("ssl-cert", 0, "FILE", "our certificate"),
        SETTING("ssl-key", 0, "FILE", "and its key"),
        SETTING("table-prefix", 0, "TEXT", "before each table's name"),
        {"trace", 0, CLI_TRACE, 0, 0, 0, NULL, "say on standard error what is done, and why"},
        {0},
};

int cli_failed(const struct cli *c, int rc)
{
	return cli_give_up(cli_exit_of(rc), "%s", bizlock_errmsg(c->lock));
}

int cli_password(struct cli *c)
{
	char *secret = NULL;
	int rc;

	if (!c->ask_password)
		return CLI_GO_ON;
	c->ask_password = false;
	if (!cli_ask_secret("Password: ", &secret))
		return cli_give_up(CLI_SYSTEM, "the password could not be asked for: %s",
		                   strerror(errno));
	rc = bizlock_set(c->lock, "password", secret);
	explicit_bzero(secret, strlen(secret));
	free(secret);
	return rc == BIZLOCK_OK ? CLI_GO_ON : cli_failed(c, rc);
}

int cli_opened(const struct cli *c, int rc)
{
	const char *message = bizlock_errmsg(c->lock);

	if (rc == BIZLOCK_OK)
		return CLI_GO_ON;
	return cli_give_up(cli_exit_of_open(rc, message), "%s", message);
}

int cli_open(struct cli *c)
{
	int code = cli_password(c);

	return code == CLI_GO_ON ? cli_opened(c, bizlock_open(c->lock)) : code;
}

int cli_begin(struct cli *c, void *ret)
{
	int code = cli_parse(c, ret);

	return code == CLI_GO_ON ? cli_open(c) : code;
}
