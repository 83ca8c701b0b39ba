#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "cli/commands.h"
#include "cli/exec/exec.h"

#define KILL_MS 2000      /* the kernel may be slow to end a process */
#define AGAIN_MS 10       /* between two searches for processes to kill */
#define LEASE_MIN_MS 1000 /* a shorter lease leaves too little time to end a command */

/* ---- options -------------------------------------------------------------------------- */

#define AT(field) offsetof(struct cli_exec_options, field)

const struct cli_option cli_exec_options[] = {
        {"wait", 'w', CLI_WAIT, AT(wait_ms), 0, CLI_EXEC_WAIT_MAX_MS, "DURATION|forever",
         "for the lock; also --timeout. Default: forever"},
        {"timeout", 0, CLI_WAIT, AT(wait_ms), 0, CLI_EXEC_WAIT_MAX_MS, "DURATION|forever", NULL},
        {"nonblock", 'n', CLI_FLAG, AT(nonblock), 0, 0, NULL, "fail rather than wait, as -w 0"},
        {"lease", 0, CLI_DURATION, AT(lease_ms), LEASE_MIN_MS, BIZLOCK_LEASE_MAX_MS, "DURATION",
         "1s to 24h, renewed while COMMAND runs; 30s"},
        {"shared", 's', CLI_FLAG, AT(shared), 0, 0, NULL, "a shared (read) lock"},
        {"exclusive", 'x', CLI_FLAG, AT(exclusive), 0, 0, NULL,
         "an exclusive (write) lock, the default"},
        {"and", 0, CLI_KEY, AT(more), 0, 0, "BIZ_TYPE BIZ_ID",
         "one more lock; all or none. May be repeated"},
        {"limit", 0, CLI_NUMBER, AT(limit), 1, BIZLOCK_LIMIT_MAX, "N",
         "as -s, for N at a time; all name the same N"},
        {"note", 0, CLI_TEXT, AT(note), 0, 0, "TEXT", "why, for people who look"},
        {"at-most-once-per", 0, CLI_DURATION, AT(min_hold_ms), 0, UINT32_MAX, "TIME",
         "nobody else gets the lock within it"},
        {"retry-failed", 0, CLI_FLAG, AT(retry_failed), 0, 0, NULL,
         "but at once after COMMAND has failed"},
        {"max-hold", 0, CLI_DURATION, AT(max_hold_ms), 1, UINT32_MAX, "DURATION",
         "then COMMAND is ended; exit code 82"},
        {"record", 0, CLI_FLAG, AT(record), 0, 0, NULL,
         "for bizlock runs; implied by --at-most-once-per"},
        {"conflict-exit-code", 'E', CLI_NUMBER, AT(busy_code), 0, 255, "N",
         "when it is not free (75; after a wait 124)"},
        {"verbose", 'v', CLI_FLAG, AT(verbose), 0, 0, NULL, "who holds it, how long it took"},
        {0},
};

const char cli_exec_more[] =
        "Environment of COMMAND: BIZLOCK_TYPE, _ID, _FENCE, _OWNER, _SLOT, _TOOK_OVER; of\n"
        "--and BIZLOCK_TYPE_2 ... If a lock is lost, COMMAND is killed: exit code 80\n";

/* ---- words ------------------------------------------------------------------------- */

/* Without a "--", the command's options would be read as ours, and be reported as unknown. */
static int refuse_bare_command(struct cli_exec *x)
{
	struct cli words = *x->c;
	struct cli_exec_options ignored = x->o;
	int code = cli_parse_to_word(&words, &ignored);

	if (code == CLI_GO_ON && words.argc > 2 && *words.argv[2] != '-')
		return cli_misused(x->c, "exec: \"--\" is missing before the command");
	return code;
}

int cli_exec_check_options(struct cli_exec *x)
{
	const char *name = x->c->command->name;

	if (x->o.shared && x->o.exclusive)
		return cli_misused(x->c, "%s: --shared or --exclusive, not both", name);
	if (x->o.limit && x->o.exclusive)
		return cli_misused(x->c, "%s: --limit or --exclusive, not both", name);
	if (x->o.nonblock && x->o.wait_ms > 0)
		return cli_misused(x->c, "%s: --nonblock or --wait, not both", name);
	if (x->o.nonblock)
		x->o.wait_ms = 0;
	return CLI_GO_ON;
}

void cli_exec_set_keys(struct cli_exec *x, bizlock_key key)
{
	const struct cli_keys *more = &x->o.more;
	const bizlock_key *second = more->list;

	x->keys.list[0] = key;
	memcpy(&x->keys.list[1], more->list, more->count * sizeof(key));
	x->keys.count = 1 + more->count;
	if (more->count == 0)
		snprintf(x->name, sizeof(x->name), "%s/%s", key.biz_type, key.biz_id);
	else if (more->count == 1)
		snprintf(x->name, sizeof(x->name), "%s/%s (with %s/%s)", key.biz_type, key.biz_id,
		         second->biz_type, second->biz_id);
	else
		snprintf(x->name, sizeof(x->name), "%s/%s (with %zu more)", key.biz_type,
		         key.biz_id, more->count);
}

/* A sharer takes one lock. A rest, and a record of the run, are the job's alone: the other locks
 * must not rest with it. */
static int check_several(struct cli_exec *x)
{
	const struct cli_exec_options *o = &x->o;

	if (o->more.count >= CLI_KEYS_MAX)
		return cli_misused(x->c, "exec: more than %d locks", CLI_KEYS_MAX);
	if (o->more.count > 0 && (o->shared || o->limit))
		return cli_misused(x->c,
		                   "exec: --and takes exclusive locks, so --%s does not go "
		                   "with it",
		                   o->shared ? "shared" : "limit");
	if (o->more.count > 0 && (o->min_hold_ms || o->record))
		return cli_misused(x->c,
		                   "exec: --%s is for one lock: put it on an exec of its own, "
		                   "around the one with --and",
		                   o->min_hold_ms ? "at-most-once-per" : "record");
	return CLI_GO_ON;
}

/* Words up to the first "--" are ours. Behind "exec --", a key may begin with a '-'. */
static int read_words(struct cli_exec *x)
{
	struct cli *c = x->c;
	int all = c->argc, own = 1, code;
	char **argv = c->argv;

	while (own < all && strcmp(argv[own], "--") != 0)
		own++;
	c->argc = own;
	code = own == all ? refuse_bare_command(x) : CLI_GO_ON;
	if (code == CLI_GO_ON)
		code = cli_parse(c, &x->o);
	if (code != CLI_GO_ON)
		return code;
	code = cli_exec_check_options(x);
	if (code != CLI_GO_ON)
		return code;
	if (x->o.record && (x->o.shared || x->o.limit))
		return cli_misused(c, "exec: --record needs an exclusive lock");
	if (x->o.retry_failed && !x->o.min_hold_ms)
		return cli_misused(c, "exec: --retry-failed goes with --at-most-once-per");
	code = check_several(x);
	if (code != CLI_GO_ON)
		return code;
	if (c->argc == 0 && own + 3 < all && strcmp(argv[own + 3], "--") == 0) {
		c->argv = &argv[own + 1];
		own += 3;
	} else if (c->argc != 2) {
		return cli_misused(c, "exec needs %s", c->command->words);
	}
	if (own + 1 >= all)
		return cli_misused(c, "exec: no command; it follows a \"--\"");
	cli_exec_set_keys(x, cli_key(c));
	x->command = &argv[own + 1];
	return CLI_GO_ON;
}

/* ---- the end --------------------------------------------------------------------------- */

/* A command that ended at the SIGTERM of --max-hold may have left processes that are not so fast.
 * They have the rest of the time that was promised, as long as the lease lasts. */
static void await_rest(const struct cli_exec *x)
{
	while (cli_exec_rest_ms(x) > 0 && cli_exec_lives(x))
		poll(NULL, 0, AGAIN_MS);
}

/* Kills all processes that the command has started, so that none is at work without the lock. Gives
 * up after KILL_MS: a process may be stuck in the kernel. One of another user is out of reach. */
static void kill_rest(struct cli_exec *x)
{
	int64_t until = cli_exec_now_ms() + KILL_MS;

	while (cli_exec_kill(x) && cli_exec_now_ms() < until)
		poll(NULL, 0, AGAIN_MS);
	x->left_over = cli_exec_lives(x);
	if (x->left_over)
		cli_say("%s: a process of the command could not be killed", x->name);
}

/* Returns whether the lock was lost, or nearly. The guard does not reap the command, so until the
 * guard has gone no other process can get the number of the command or its group. The guard is
 * asked whether it has killed, because a wrapper that is continued just after that may have renewed
 * the lease. Its reports are read: it may have heard a signal before the command ended. */
static bool bury(struct cli_exec *x)
{
	bool is_lost;

	if (x->ending == CLI_HOLD_ENDS)
		await_rest(x);
	is_lost = x->ending == CLI_LEASE_ENDS || cli_exec_lease_ms(x) <= 0;
	if (is_lost || x->ending || x->unguarded)
		kill_rest(x);
	if (cli_guard_end(&x->guard))
		is_lost = true;
	else if (x->unguarded && x->signalled == SIGKILL)
		cli_say("%s: the guard was killed, and with it the command", x->name);
	cli_exec_take_reports(x);
	return is_lost;
}

static int release(struct cli_exec *x)
{
	return bizlock_release_all(x->c->lock, x->keys.list, x->keys.count, EXEC_OWNER);
}

static bool was_lost(int rc)
{
	return rc == BIZLOCK_LOST || rc == BIZLOCK_NOT_OWNER;
}

/* The command has not run, or has failed and may be tried again, so the lock must not rest: one
 * machine without the program would keep the job from all other machines. A release would make the
 * lock rest. So the hold is broken first, and the release finds it lost. An exported hold is
 * broken, too: this client does not hold it any more. */
static int release_without_rest(struct cli_exec *x)
{
	int rc;

	if (x->o.min_hold_ms == 0 && !*x->ticket)
		return release(x);
	rc = bizlock_break(x->c->lock, x->keys.list[0], x->grants[0].fence);
	if (rc ==
	    BIZLOCK_BUSY) /* somebody else has the lock, or an open transaction has fenced it */
		return release(x);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = release(x);
	return was_lost(rc) ? BIZLOCK_OK : rc;
}

/* A lock that could not be released changes no exit code: the work is done, or has not begun. */
static int give_back(struct cli_exec *x, int (*how)(struct cli_exec *x))
{
	int rc;

	cli_exec_leave(x);
	cli_exec_record_end(x);
	rc = cli_exec_call(x, how);
	if (rc == CLI_EXEC_LEFT)
		cli_say("%s: the server does not answer; the lock stays until its lease ends",
		        x->name);
	else if (rc != BIZLOCK_OK && !was_lost(rc))
		cli_say("%s", x->call_message);
	return rc;
}

void cli_exec_give_back(struct cli_exec *x)
{
	give_back(x, release_without_rest);
}

static void note_result(struct cli_exec *x, bool is_lost)
{
	if (is_lost)
		x->result.outcome = BIZLOCK_RUN_LOST;
	else if (*x->ran && x->status == 0 && !x->ending)
		x->result.outcome = BIZLOCK_RUN_DONE;
	x->result.exit_code = x->signalled ? -1 : x->status;
	x->result.exit_signal = (uint32_t)x->signalled;
	if (x->ending == CLI_HOLD_ENDS && !is_lost) { /* 0 would not look like a failure */
		x->result.exit_code = CLI_OVERRUN;
		x->result.exit_signal = 0;
	}
}

static int end_work(struct cli_exec *x, bool is_lost)
{
	bool again = x->o.retry_failed && x->result.outcome == BIZLOCK_RUN_FAILED && !x->left_over;

	if (was_lost(give_back(x, again ? release_without_rest : release)) || is_lost)
		return cli_give_up(CLI_LOST,
		                   "%s was not safely held to the end (fence %" PRIu64
		                   "): its work may be half done",
		                   x->name, x->grants[0].fence);
	if (x->ending)
		return cli_give_up(CLI_OVERRUN,
		                   "%s: the command was ended, because --max-hold "
		                   "was over: its work may be half done",
		                   x->name);
	return x->status;
}

static int run_command(struct cli_exec *x)
{
	int code = cli_exec_start(x);
	bool is_lost;

	if (code != CLI_GO_ON) {
		cli_exec_give_back(x);
		return code;
	}
	cli_exec_watch(x);
	is_lost = bury(x);
	cli_tty_take_back(&x->tty, x->signalled != 0);
	cli_exec_catch(x, false);
	note_result(x, is_lost);
	if (*x->ran) {
		code = end_work(x, is_lost);
	} else {
		cli_exec_give_back(x);
		code = is_lost ? CLI_LOST : x->status;
	}
	/* Dies by SIGINT, as the command did: a shell script stops after a program that SIGINT has
	 * ended, but goes on after a program that exits with 130. */
	if (x->signalled == SIGINT && code == x->status)
		x->c->die_by = SIGINT;
	return code;
}

/* ---- the command ------------------------------------------------------------------------- */

static void lost(void *arg, bizlock_key key, uint64_t fence)
{
	(void)key;
	(void)fence;
	cli_exec_wake(*(const int *)arg);
}

/* Waits for a server that is full, restarts, or is not there yet, as for the lock. Says so, because
 * the address may be wrong. */
static int await_server(struct cli_exec *x)
{
	int64_t left = cli_exec_wait_left_ms(x);
	char text[24];

	cli_say("%s; waiting for the server", bizlock_errmsg(x->c->lock));
	snprintf(text, sizeof(text), "%" PRId64,
	         left >= 0 && left < UINT32_MAX ? left : UINT32_MAX);
	if (bizlock_set(x->c->lock, "open_wait_ms", text) != BIZLOCK_OK)
		return BIZLOCK_INVALID;
	return bizlock_open(x->c->lock);
}

static int open_client(struct cli_exec *x)
{
	struct cli *c = x->c;
	int code = cli_password(c), rc;

	if (code != CLI_GO_ON)
		return code;
	x->began_ms = cli_exec_now_ms();
	rc = bizlock_open(c->lock);
	if (x->o.wait_ms != 0 && cli_exit_of_open(rc, bizlock_errmsg(c->lock)) == CLI_UNREACHABLE)
		rc = await_server(x);
	return cli_opened(c, rc);
}

int cli_exec_begin(struct cli_exec *x)
{
	x->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (x->wake < 0 || bizlock_set(x->c->lock, "renew", "on") != BIZLOCK_OK ||
	    bizlock_on_lost(x->c->lock, lost, &x->wake) != BIZLOCK_OK)
		return cli_give_up(CLI_SYSTEM, "%s",
		                   x->wake < 0 ? strerror(errno) : bizlock_errmsg(x->c->lock));
	return open_client(x);
}

static int close_client(struct cli_exec *x)
{
	bizlock_close(x->c->lock);
	x->c->lock = NULL;
	return BIZLOCK_OK;
}

void cli_exec_end(struct cli_exec *x)
{
	if (x->signals < 0)
		return;
	cli_exec_leave(x);
	cli_exec_call(x, close_client);
}

int cli_exec(struct cli *c)
{
	/* Static, because the library's thread may report a loss until the client is closed, later.
	 */
	static struct cli_exec x = {
	        .o = {.wait_ms = -1, .busy_code = UINT64_MAX},
	        .signals = -1,
	        .wake = -1,
	        .life = -1,
	        .tty = {.fd = -1},
	};
	int code;

	x.c = c;
	code = read_words(&x);
	if (code == CLI_GO_ON) {
		cli_inherited_note(&x.inherited);
		code = cli_exec_begin(&x);
	}
	if (code == CLI_GO_ON)
		code = cli_exec_acquire(&x, cli_exec_note_owner);
	if (code == CLI_GO_ON && !cli_exec_catch(&x, true))
		code = CLI_SYSTEM;
	if (code == CLI_GO_ON) {
		cli_tty_begin(&x.tty);
		code = run_command(&x);
		cli_tty_end(&x.tty);
	}
	cli_guard_end(&x.guard);
	cli_exec_end(&x);
	return code;
}
