/* What bizlock exec records of its run: that it begins, and how it ends. The work goes on without a
 * record if there is no table for it, or the server does not take it. */
#include "cli/exec/exec.h"

static int begin(struct cli_exec *x)
{
	return bizlock_run_begin(x->c->lock, x->keys.list[0], EXEC_OWNER);
}

static int end(struct cli_exec *x)
{
	return bizlock_run_end(x->c->lock, x->keys.list[0], EXEC_OWNER, &x->result);
}

/* A beginning whose reply was lost may be there: without an end it would look like a death. */
void cli_exec_record_begin(struct cli_exec *x)
{
	int rc;

	x->result = (bizlock_run_result)BIZLOCK_RUN_RESULT_INIT;
	if (!x->o.record && !x->o.min_hold_ms)
		return;
	rc = cli_exec_call(x, begin);
	if (rc != BIZLOCK_OK && rc != CLI_EXEC_LEFT && x->o.verbose)
		cli_say("%s: the run is not recorded: %s", x->name, x->call_message);
	x->recorded = rc == BIZLOCK_OK || rc == BIZLOCK_CONN;
}

/* Says why not, also without -v: the run that is recorded will look like a death. */
void cli_exec_record_end(struct cli_exec *x)
{
	int rc = x->recorded ? cli_exec_call(x, end) : BIZLOCK_OK;

	if (rc != BIZLOCK_OK && rc != CLI_EXEC_LEFT)
		cli_say("%s: the end of the run is not recorded: %s", x->name, x->call_message);
}
