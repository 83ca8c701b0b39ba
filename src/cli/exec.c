#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/exec.h"

#define WAIT_MAX_MS 31622400000 /* a year */
#define REPEAT_MS 50
#define LEASE_MIN_MS 1000 /* of a shorter one too little is left to end a command in time */

/* bizlock_interrupt() does not wake a thread that has not begun to wait; so it is repeated. */
struct acquisition {
	struct cli_exec *x;
	bizlock_acquire_opts opts;
	bizlock_grant grant;
	int rc;
	char *message;
	atomic_bool done;
};

static const char *name_of(const struct cli_exec *x, char buf[256])
{
	snprintf(buf, 256, "%s/%s", x->key.biz_type, x->key.biz_id);
	return buf;
}

/* ---- options -------------------------------------------------------------------------- */

#define AT(field) offsetof(struct cli_exec_options, field)

const struct cli_option cli_exec_options[] = {
        {"wait", 'w', CLI_WAIT, AT(wait_ms), 0, WAIT_MAX_MS, "MS|forever",
         "for the lock; 0: try once. Default: forever"},
        {"lease", 0, CLI_DURATION, AT(lease_ms), LEASE_MIN_MS, BIZLOCK_LEASE_MAX_MS, "DURATION",
         "1s to 24h, renewed while COMMAND runs; 30s"},
        {"note", 0, CLI_TEXT, AT(note), 0, 0, "TEXT", "why, for people who look"},
        {"at-most-once-per", 0, CLI_DURATION, AT(min_hold_ms), 0, UINT32_MAX, "DURATION",
         "nobody else gets the lock within it"},
        {"conflict-exit-code", 'E', CLI_NUMBER, AT(busy_code), 0, 255, "N",
         "when it is not free (75; after a wait 124)"},
        {"verbose", 'v', CLI_FLAG, AT(verbose), 0, 0, NULL, "who holds it, how long it took"},
        {0},
};

const char cli_exec_more[] =
        "COMMAND finds BIZLOCK_TYPE, _ID, _FENCE and _OWNER in its environment. When the\n"
        "lock cannot be renewed, its process group gets SIGTERM with a third of the\n"
        "lease left, SIGKILL before the lease ends, and bizlock exits by 80. Stopped\n"
        "(Ctrl-Z), bizlock renews nothing: COMMAND is killed when the lease ends.\n"
        "All exit codes: bizlock help exit-codes\n";

/* ---- words ------------------------------------------------------------------------- */

/* Words up to the first "--" are ours. Behind "exec --", a key may begin with a '-'. */
static int read_words(struct cli_exec *x)
{
	struct cli *c = x->c;
	int all = c->argc, own = 1, code;
	char **argv = c->argv;

	while (own < all && strcmp(argv[own], "--") != 0)
		own++;
	c->argc = own;
	code = cli_parse(c, &x->o);
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
	x->key = cli_key(c);
	x->command = &argv[own + 1];
	return CLI_GO_ON;
}

/* ---- nested execs ------------------------------------------------------------------- */

static bool is_outer(const char *owner)
{
	const char *list = getenv("BIZLOCK_OUTER");
	size_t len = strlen(owner);

	while (list && *list && len > 0) {
		size_t word = strcspn(list, " ");

		if (word == len && strncmp(list, owner, len) == 0)
			return true;
		list += word + strspn(list + word, " ");
	}
	return false;
}

struct sight {
	const struct cli_exec *x;
	bool outer;
	bool seen;
};

static int look(void *arg, const bizlock_info *info)
{
	struct sight *s = arg;
	char name[256], left[CLI_DURATION_SIZE];

	if (info->left_ms <= 0 || info->flags)
		return 0;
	s->outer = is_outer(info->owner);
	s->seen = true;
	if (s->outer)
		cli_say("%s is held by the exec that runs this one (fence %" PRIu64
		        "): waiting for it would never end",
		        name_of(s->x, name), info->fence);
	else if (s->x->o.verbose && *info->owner)
		cli_say("%s is held by %s (fence %" PRIu64 "), its lease ends in %s",
		        name_of(s->x, name), info->owner, info->fence,
		        cli_show_duration(info->left_ms, left));
	else if (s->x->o.verbose)
		cli_say("%s is at rest for another %s", name_of(s->x, name),
		        cli_show_duration(info->left_ms, left));
	return 0;
}

/* An exec of a lock that an exec around it holds is refused, not run under the outer lock: that
 * has its own lease, minimum and end, which need not be what is asked for here. An owner is one
 * client of one process, so the row alone decides, whatever database was meant. */
static int refuse_nested(struct cli_exec *x)
{
	struct sight s = {.x = x};
	int rc;

	if (!getenv("BIZLOCK_OUTER") && !x->o.verbose)
		return CLI_GO_ON;
	rc = bizlock_look(x->c->lock, x->key, look, &s);
	if (rc != BIZLOCK_OK)
		return cli_failed(x->c, rc);
	return s.outer ? CLI_NESTED : CLI_GO_ON;
}

/* ---- acquiring ------------------------------------------------------------------------ */

static void wake(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		return; /* it is awake */
}

static void lost(void *arg, bizlock_key key, uint64_t fence)
{
	(void)key;
	(void)fence;
	wake(*(const int *)arg);
}

static int keep_owner(void *arg, const bizlock_info *info)
{
	struct acquisition *a = arg;

	if (info->fence == a->grant.fence)
		a->x->owner = strdup(info->owner);
	return 0;
}

/* The message is the thread's own, so it is taken here. */
static void *acquire(void *arg)
{
	struct acquisition *a = arg;
	struct cli_exec *x = a->x;

	a->rc = bizlock_acquire(x->c->lock, x->key, &a->opts, &a->grant);
	if (a->rc == BIZLOCK_OK) {
		x->fence = a->grant.fence;
		x->lease_ms = a->grant.lease_ms;
		a->rc = bizlock_look(x->c->lock, x->key, keep_owner, a);
		if (a->rc == BIZLOCK_OK && !x->owner)
			a->rc = BIZLOCK_LOST;
	}
	if (a->rc != BIZLOCK_OK)
		a->message = strdup(bizlock_errmsg(x->c->lock));
	atomic_store(&a->done, true);
	wake(x->wake);
	return NULL;
}

/* The first signal that is to end us; 0: none came. */
static int wait_for(struct cli_exec *x, struct acquisition *a)
{
	struct pollfd fds[] = {{x->signals, POLLIN, 0}, {x->wake, POLLIN, 0}};
	struct signalfd_siginfo info;
	int came = 0;

	while (!atomic_load(&a->done)) {
		poll(fds, 2, came ? REPEAT_MS : -1);
		if (read(x->signals, &info, sizeof(info)) == (ssize_t)sizeof(info) && !came)
			came = (int)info.ssi_signo;
		if (came)
			bizlock_interrupt(x->c->lock);
	}
	return came;
}

static int not_acquired(const struct cli_exec *x, const struct acquisition *a)
{
	bool busy = a->rc == BIZLOCK_BUSY || a->rc == BIZLOCK_TIMEOUT;

	if (!busy || x->o.verbose)
		cli_say("%s", a->message && *a->message ? a->message : bizlock_strerror(a->rc));
	if (busy && x->o.busy_code <= 255)
		return (int)x->o.busy_code;
	return cli_exit_of(a->rc);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int acquired(const struct cli_exec *x, const bizlock_grant *grant, int64_t waited_ms)
{
	char name[256], waited[CLI_DURATION_SIZE];

	if (x->o.verbose)
		cli_say("%s acquired after %s, fence %" PRIu64 "%s", name_of(x, name),
		        cli_show_duration(waited_ms, waited), grant->fence,
		        grant->flags & BIZLOCK_TOOK_OVER ? "; its last holder never released it"
		                                         : "");
	return CLI_GO_ON;
}

static int acquire_lock(struct cli_exec *x)
{
	struct acquisition a = {
	        .x = x, .opts = BIZLOCK_ACQUIRE_OPTS_INIT, .grant = BIZLOCK_GRANT_INIT};
	int64_t began = now_ms();
	pthread_t thread;
	int code;

	a.opts.wait_ms = x->o.wait_ms;
	a.opts.lease_ms = (uint32_t)x->o.lease_ms;
	a.opts.min_hold_ms = (uint32_t)x->o.min_hold_ms;
	a.opts.owner = EXEC_OWNER;
	a.opts.note = x->o.note;
	if (pthread_create(&thread, NULL, acquire, &a) != 0) {
		cli_say("no thread can be started");
		return CLI_SYSTEM;
	}
	x->c->die_by = wait_for(x, &a);
	pthread_join(thread, NULL);
	if (x->c->die_by)
		code = 128 + x->c->die_by;
	else
		code = a.rc == BIZLOCK_OK ? acquired(x, &a.grant, now_ms() - began)
		                          : not_acquired(x, &a);
	free(a.message);
	return code;
}

/* ---- the end --------------------------------------------------------------------------- */

/* Was the lock lost, or nearly? Until the command is reaped, no other process can have its
 * number, or its group's. A wrapper that is continued just after the guard has killed may have
 * renewed the lease since: so the guard is asked, too. */
static bool bury(struct cli_exec *x)
{
	bool is_lost = x->ending || cli_exec_rest_ms(x) <= 0;

	if (is_lost)
		kill(-x->child, SIGKILL); /* its children, if it has ended */
	if (cli_guard_end(&x->guard))
		is_lost = true;
	waitpid(x->child, NULL, 0);
	return is_lost;
}

static int release(struct cli_exec *x, bool is_lost)
{
	char name[256];
	int rc = bizlock_release(x->c->lock, x->key, EXEC_OWNER, NULL);

	if (is_lost || rc == BIZLOCK_LOST || rc == BIZLOCK_NOT_OWNER) {
		cli_say("%s was not safely held to the end (fence %" PRIu64
		        "): its work may be half done",
		        name_of(x, name), x->fence);
		return CLI_LOST;
	}
	if (rc != BIZLOCK_OK)
		cli_failed(x->c, rc); /* it stays locked until the lease ends; the work is done */
	return x->status;
}

/* The command has not run, so the lock must not rest: one machine without the program would keep
 * the job from all others. A release would make it rest, so the row is removed before. */
static void give_back(const struct cli_exec *x)
{
	int rc = BIZLOCK_OK;

	if (x->o.min_hold_ms > 0)
		rc = bizlock_break(x->c->lock, x->key, x->fence);
	if (rc == BIZLOCK_OK)
		rc = bizlock_release(x->c->lock, x->key, EXEC_OWNER, NULL);
	if (rc != BIZLOCK_OK && rc != BIZLOCK_LOST && rc != BIZLOCK_NOT_OWNER)
		cli_failed(x->c, rc);
}

static int run_command(struct cli_exec *x)
{
	int code = cli_exec_start(x);
	bool is_lost;

	if (code != CLI_GO_ON) {
		give_back(x);
		return code;
	}
	cli_exec_watch(x);
	cli_tty_take_back(&x->tty, x->signalled != 0);
	is_lost = bury(x);
	if (*x->ran) {
		code = release(x, is_lost);
	} else {
		give_back(x);
		code = is_lost ? CLI_LOST : x->status;
	}
	/* A shell script goes on after a program that exits by 130, but not after one that SIGINT
	 * has ended, as it has ended the command. */
	if (x->signalled == SIGINT && code != CLI_LOST)
		x->c->die_by = SIGINT;
	return code;
}

/* ---- the command ------------------------------------------------------------------------- */

static int prepare(struct cli_exec *x)
{
	int code = read_words(x);

	if (code != CLI_GO_ON)
		return code;
	cli_inherited_note(&x->inherited);
	if (!cli_guard_start(x, &x->guard)) {
		cli_say("no process can be started: %s", strerror(errno));
		return CLI_SYSTEM;
	}
	x->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (x->wake < 0 || bizlock_set(x->c->lock, "renew", "on") != BIZLOCK_OK ||
	    bizlock_on_lost(x->c->lock, lost, &x->wake) != BIZLOCK_OK) {
		cli_say("%s", x->wake < 0 ? strerror(errno) : bizlock_errmsg(x->c->lock));
		return CLI_SYSTEM;
	}
	code = cli_open(x->c);
	return code == CLI_GO_ON ? refuse_nested(x) : code;
}

int cli_exec(struct cli *c)
{
	/* The library's thread may report a loss until the client is closed, which is later. */
	static struct cli_exec x;
	int code;

	x = (struct cli_exec){
	        .c = c,
	        .o = {.wait_ms = -1, .busy_code = UINT64_MAX},
	        .signals = -1,
	        .wake = -1,
	        .tty = {.fd = -1},
	};
	code = prepare(&x);
	if (code == CLI_GO_ON && !cli_exec_catch(&x, false))
		code = CLI_SYSTEM;
	if (code == CLI_GO_ON)
		code = acquire_lock(&x);
	if (code == CLI_GO_ON && !cli_exec_catch(&x, true))
		code = CLI_SYSTEM;
	if (code == CLI_GO_ON) {
		cli_tty_begin(&x.tty);
		code = run_command(&x);
		cli_tty_end(&x.tty);
	}
	cli_guard_end(&x.guard);
	free(x.owner);
	return code;
}
