/* bizlock show: shows one lock, and who waits for it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/command/locks.h"
#include "cli/commands.h"

struct options {
	bool json;
};

const struct cli_option cli_show_options[] = {
        {"json", 0, CLI_FLAG, offsetof(struct options, json), 0, 0, NULL, "as list has it"},
        {0},
};

const char cli_show_more[] =
        "Exits by 0 if the lock is held or resting, else by 1. Waiters are shown as far\n"
        "as the server lets this user see connections.\n";

static int show_waiter(void *arg, const bizlock_waiter *w)
{
	char waited[CLI_DURATION_SIZE] = "";
	bool watches = w->waited_ms < 0;

	(void)arg;
	if (!watches)
		cli_show_duration(w->waited_ms, waited);
	cli_print("waiting   %.40s@%.60s%s%s, connection %" PRIu64, w->user, w->host,
	          watches ? " watches" : " for ", waited, w->connection);
	return 0;
}

static void show_lock(const struct cli_lock *lock)
{
	struct cli_owner o;
	char time[CLI_DURATION_SIZE];
	int64_t left = lock->left_ms;

	cli_owner_read(lock->owner, &o);
	cli_print("type      %s", lock->biz_type);
	cli_print("id        %s", lock->biz_id);
	cli_print("state     %s", cli_lock_state(lock));
	cli_print("mode      %s", cli_lock_mode(lock));
	if (cli_lock_has_slot(lock)) {
		cli_print("slot      %" PRIu32, lock->slot);
		cli_print("limit     %" PRIu32, lock->limit);
	}
	if (*lock->owner) {
		cli_print("owner     %s", lock->owner);
		cli_print("host      %s", o.host);
		cli_print("pid       %s", o.pid);
	}
	if (cli_owner_is_ticket(&o))
		cli_print("ticket    made by this process; whoever has the ticket has the lock");
	cli_print("fence     %" PRIu64, lock->fence);
	cli_print("depth     %" PRIu32, lock->depth);
	cli_print("held      %s", cli_show_duration(llabs(lock->held_ms), time));
	cli_print("%-9s %s %s", *lock->owner ? "lease" : "rest",
	          cli_show_duration(llabs(left), time), left > 0 ? "left" : "over");
	if (*lock->note)
		cli_print("note      %s", lock->note);
}

/* Shows each sharer of the lock, with an empty line in between. */
static void show_locks(const struct cli_locks *locks)
{
	for (size_t i = 0; i < locks->count; i++) {
		if (i > 0)
			printf("\n");
		show_lock(&locks->list[i]);
	}
	if (locks->count == 0)
		printf("nobody holds it\n");
}

static int show_all(struct cli *c, const struct cli_locks *locks, bool json)
{
	bizlock_key key = cli_key(c);
	int rc = BIZLOCK_OK, code = CLI_GO_ON;
	bool live = false;

	for (size_t i = 0; i < locks->count; i++)
		live |= locks->list[i].left_ms > 0;
	if (json)
		code = cli_print_locks(locks, true);
	else
		show_locks(locks);
	if (live && !json)
		rc = bizlock_waiters(c->lock, &key, 1, show_waiter, NULL);
	if (rc != BIZLOCK_OK)
		return cli_failed(c, rc);
	if (code > CLI_DONE)
		return code;
	return live ? CLI_DONE : CLI_NO;
}

int cli_show(struct cli *c)
{
	struct options o = {false};
	struct cli_locks locks = {0};
	int code = cli_begin(c, &o), rc;

	if (code != CLI_GO_ON)
		return code;
	rc = bizlock_look(c->lock, cli_key(c), cli_locks_keep, &locks);
	code = rc == BIZLOCK_OK ? show_all(c, &locks, o.json) : cli_failed(c, rc);
	cli_locks_free(&locks);
	return code;
}
