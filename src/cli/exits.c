#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

enum cli_exit cli_exit_of(int bizlock_error)
{
	switch ((enum bizlock_error)bizlock_error) {
	case BIZLOCK_OK:
		return CLI_DONE;
	case BIZLOCK_BUSY:
		return CLI_BUSY;
	case BIZLOCK_TIMEOUT:
		return CLI_TIMEOUT;
	case BIZLOCK_LOST:
	case BIZLOCK_NOT_OWNER:
		return CLI_LOST;
	case BIZLOCK_UNKNOWN:
	case BIZLOCK_CONN:
		return CLI_UNREACHABLE;
	case BIZLOCK_DB:
		return CLI_REFUSED;
	case BIZLOCK_SCHEMA:
	case BIZLOCK_UNSUPPORTED:
		return CLI_CONFIG;
	case BIZLOCK_INVALID:
		return CLI_USAGE;
	case BIZLOCK_CANCELLED:
	case BIZLOCK_MISUSE:
	case BIZLOCK_LIMIT:
	case BIZLOCK_STALE:
	case BIZLOCK_NOMEM:
		break;
	}
	return CLI_INTERNAL;
}

/* The error numbers of servers and connectors that refuse a user, a password or a database. The
 * library shows these numbers only in its message. */
static bool is_refusal(unsigned long number)
{
	static const unsigned refusals[] = {
	        1044, 1045, 1049, /* no access to the database; wrong password; no such database */
	        1130, 1698, 1862, /* not from this host; no password; it has expired */
	        2059, 3118, 4151, /* no such plugin; the account is locked, by MySQL, by MariaDB */
	};

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		if (refusals[i] == number)
			return true;
	return false;
}

enum cli_exit cli_exit_of_open(int bizlock_error, const char *message)
{
	const char *at = message;

	while (bizlock_error == BIZLOCK_CONN && (at = strchr(at, '(')) != NULL) {
		char *end;
		unsigned long number = strtoul(++at, &end, 10);

		if (*end == ')' && is_refusal(number))
			return CLI_CONFIG;
	}
	return bizlock_error == BIZLOCK_INVALID ? CLI_CONFIG : cli_exit_of(bizlock_error);
}
