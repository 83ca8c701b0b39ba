/* bizlock show: one lock, and who waits for it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/locks.h"

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

static void line(const char *name, const char *value)
{
	char *safe = cli_safe(value);

	printf("%-9s %s\n", name, safe ? safe : "?");
	free(safe);
}

static void number(const char *name, uint64_t value)
{
	printf("%-9s %" PRIu64 "\n", name, value);
}

static void duration(const char *name, int64_t ms, const char *more)
{
	char text[CLI_DURATION_SIZE];

	printf("%-9s %s%s\n", name, cli_show_duration(ms < 0 ? -ms : ms, text), more);
}

static int show_waiter(void *arg, const bizlock_waiter *w)
{
	char text[160], waited[CLI_DURATION_SIZE] = "";
	bool watches = w->waited_ms < 0;

	(void)arg;
	if (!watches)
		cli_show_duration(w->waited_ms, waited);
	snprintf(text, sizeof(text), "%.40s@%.60s%s%s, connection %" PRIu64, w->user, w->host,
	         watches ? " watches" : " for ", waited, w->connection);
	line("waiting", text);
	return 0;
}

static void show_lock(const struct cli_lock *lock)
{
	struct cli_owner o;
	bool over = lock->left_ms <= 0;

	cli_owner_read(lock->owner, &o);
	line("type", lock->biz_type);
	line("id", lock->biz_id);
	line("state", cli_lock_state(lock));
	line("mode", cli_lock_mode(lock));
	if (cli_lock_has_slot(lock)) {
		number("slot", lock->slot);
		number("limit", lock->limit);
	}
	if (*lock->owner) {
		line("owner", lock->owner);
		line("host", o.host);
		line("pid", o.pid);
	}
	number("fence", lock->fence);
	number("depth", lock->depth);
	duration("held", lock->held_ms, "");
	duration(*lock->owner ? "lease" : "rest", lock->left_ms, over ? " over" : " left");
	if (*lock->note)
		line("note", lock->note);
}

/* One by one those that share it, with a line in between. */
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
	int code = cli_parse(c, &o), rc;

	if (code == CLI_GO_ON)
		code = cli_open(c);
	if (code != CLI_GO_ON)
		return code;
	rc = bizlock_look(c->lock, cli_key(c), cli_locks_keep, &locks);
	code = rc == BIZLOCK_OK ? show_all(c, &locks, o.json) : cli_failed(c, rc);
	cli_locks_free(&locks);
	return code;
}
