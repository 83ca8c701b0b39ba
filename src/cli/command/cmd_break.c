/* bizlock break: frees a lock in place of its holder. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command/locks.h"
#include "cli/commands.h"

struct options {
	uint64_t fence;
	bool yes;
};

#define AT(field) offsetof(struct options, field)

const struct cli_option cli_break_options[] = {
        {"fence", 0, CLI_NUMBER, AT(fence), 1, INT64_MAX, "N",
         "only if the lock still has this one"},
        {"yes", 'y', CLI_FLAG, AT(yes), 0, 0, NULL, "do not ask"},
        {0},
};

const char cli_break_more[] =
        "Frees a lock in place of its holder. The holder learns of it at its next\n"
        "renewal, after a third of its lease at most: until then two may be at work.\n"
        "Without --fence it shows who holds the lock, and asks. It never breaks a later\n"
        "holder.\n";

static void describe(const struct cli_lock *lock, char *ret, size_t size)
{
	char held[CLI_DURATION_SIZE];

	snprintf(ret, size, "%s/%s, %s%s%s, fence %" PRIu64 ", for %s", lock->biz_type,
	         lock->biz_id, cli_lock_state(lock), *lock->owner ? " by " : "", lock->owner,
	         lock->fence, cli_show_duration(lock->held_ms < 0 ? 0 : lock->held_ms, held));
}

/* CLI_GO_ON: go ahead. */
static int ask(const struct cli *c, const struct options *o, const char *holder)
{
	char answer[8] = "";

	if (o->yes && o->fence)
		return CLI_GO_ON;
	if (!isatty(STDIN_FILENO)) {
		if (o->fence)
			return CLI_GO_ON;
		return cli_misused(c,
		                   "break: --fence is needed where nobody can be asked; a "
		                   "script gets it from bizlock show --json: %s",
		                   holder);
	}
	cli_say("%s", holder);
	fprintf(stderr, "Break it? [y/N] ");
	if (fgets(answer, sizeof(answer), stdin) && strcspn(answer, "\n") == 1 &&
	    strchr("yY", answer[0]))
		return CLI_GO_ON;
	return cli_give_up(CLI_NO, "left as it is");
}

static int break_it(const struct cli *c, const struct options *o, const struct cli_lock *lock)
{
	char holder[640];
	int code, rc;

	describe(lock, holder, sizeof(holder));
	code = o->fence && o->fence != lock->fence ? CLI_GO_ON : ask(c, o, holder);
	if (code != CLI_GO_ON)
		return code;
	rc = bizlock_break(c->lock, cli_key(c), o->fence ? o->fence : lock->fence);
	if (rc != BIZLOCK_OK) {
		code = cli_failed(c, rc);
		return rc == BIZLOCK_LOST ? CLI_NO : code;
	}
	cli_print("broken: %s", holder);
	return CLI_DONE;
}

/* Several may share it. */
static int break_one(const struct cli *c, const struct options *o, const struct cli_locks *locks)
{
	size_t i = 0;

	if (locks->count > 1 && !o->fence)
		return cli_misused(
		        c, "break: %zu hold it: --fence says which one; bizlock show has all",
		        locks->count);
	while (o->fence && i + 1 < locks->count && locks->list[i].fence != o->fence)
		i++;
	return break_it(c, o, &locks->list[i]);
}

int cli_break(struct cli *c)
{
	struct options o = {0};
	struct cli_locks locks = {0};
	int code = cli_begin(c, &o), rc;

	if (code != CLI_GO_ON)
		return code;
	rc = bizlock_look(c->lock, cli_key(c), cli_locks_keep, &locks);
	if (rc != BIZLOCK_OK)
		code = cli_failed(c, rc);
	else if (locks.count == 0)
		code = cli_give_up(CLI_NO, "%s/%s: nobody holds it", c->argv[0], c->argv[1]);
	else
		code = break_one(c, &o, &locks);
	cli_locks_free(&locks);
	return code;
}
