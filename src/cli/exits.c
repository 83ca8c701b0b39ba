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
