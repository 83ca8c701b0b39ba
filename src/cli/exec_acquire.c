/* How bizlock exec gets its lock; and an exec within an exec. */
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/exec.h"

struct acquisition {
	struct cli_exec *x;
	bizlock_acquire_opts opts;
	bizlock_grant grant;
	int rc;
	char *message;
	atomic_bool done;
};

void cli_exec_wake(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		return; /* it is awake */
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
};

static int look(void *arg, const bizlock_info *info)
{
	struct sight *s = arg;
	const struct cli_exec *x = s->x;
	char left[CLI_DURATION_SIZE];

	if (info->left_ms <= 0 || s->outer)
		return 0;
	s->outer = is_outer(info->owner);
	if (s->outer)
		cli_say("%s is held by the exec that runs this one (fence %" PRIu64
		        "): waiting for it would never end",
		        x->name, info->fence);
	else if (x->o.verbose && *info->owner)
		cli_say("%s is held by %s (fence %" PRIu64 "), its lease ends in %s", x->name,
		        info->owner, info->fence, cli_show_duration(info->left_ms, left));
	else if (x->o.verbose)
		cli_say("%s is at rest for another %s", x->name,
		        cli_show_duration(info->left_ms, left));
	return 0;
}

/* An exec of a lock that an exec around it holds is refused, not run under the outer lock: that
 * has its own lease, minimum and end, which need not be what is asked for here. An owner is one
 * client of one process, so the row alone decides, whatever database was meant. */
int cli_exec_refuse_nested(struct cli_exec *x)
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

static int keep_owner(void *arg, const bizlock_info *info)
{
	struct acquisition *a = arg;

	if (info->fence != a->grant.fence || !info->flags != !a->opts.flags)
		return 0;
	a->x->owner = strdup(info->owner);
	return 1;
}

/* The message is the thread's own, so it is taken here. */
static void *acquire(void *arg)
{
	struct acquisition *a = arg;
	struct cli_exec *x = a->x;

	a->rc = bizlock_acquire(x->c->lock, x->key, &a->opts, &a->grant);
	if (a->rc == BIZLOCK_OK) {
		x->fence = a->grant.fence;
		x->slot = a->grant.slot;
		x->took_over = a->grant.flags & BIZLOCK_TOOK_OVER;
		x->lease_ms = a->grant.lease_ms;
		a->rc = bizlock_look(x->c->lock, x->key, keep_owner, a);
		if (a->rc == BIZLOCK_OK && !x->owner)
			a->rc = BIZLOCK_LOST;
	}
	if (a->rc != BIZLOCK_OK)
		a->message = strdup(bizlock_errmsg(x->c->lock));
	atomic_store(&a->done, true);
	cli_exec_wake(x->wake);
	return NULL;
}

/* The first signal that is to end us; 0: none came. */
static int wait_for(struct cli_exec *x, struct acquisition *a)
{
	struct pollfd fds[] = {{x->signals, POLLIN, 0}, {x->wake, POLLIN, 0}};
	struct signalfd_siginfo info;
	int came = 0;

	while (!atomic_load(&a->done)) {
		poll(fds, 2, -1);
		if (read(x->signals, &info, sizeof(info)) == (ssize_t)sizeof(info) && !came)
			came = (int)info.ssi_signo;
		if (came)
			bizlock_stop(x->c->lock, 1);
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

static int acquired(const struct cli_exec *x)
{
	char waited[CLI_DURATION_SIZE];

	if (x->o.verbose)
		cli_say("%s acquired after %s, fence %" PRIu64, x->name,
		        cli_show_duration(cli_exec_now_ms() - x->began_ms, waited), x->fence);
	if (x->took_over)
		cli_say("%s was taken over: its last holder never released it", x->name);
	return CLI_GO_ON;
}

/* The server may have been waited for, too. */
static int64_t wait_left_ms(const struct cli_exec *x)
{
	int64_t left = x->o.wait_ms - (cli_exec_now_ms() - x->began_ms);

	if (x->o.wait_ms <= 0)
		return x->o.wait_ms;
	return left > 0 ? left : 1;
}

int cli_exec_acquire(struct cli_exec *x)
{
	struct acquisition a = {
	        .x = x, .opts = BIZLOCK_ACQUIRE_OPTS_INIT, .grant = BIZLOCK_GRANT_INIT};
	pthread_t thread;
	int code;

	a.opts.wait_ms = wait_left_ms(x);
	a.opts.lease_ms = (uint32_t)x->o.lease_ms;
	a.opts.min_hold_ms = (uint32_t)x->o.min_hold_ms;
	a.opts.flags = x->o.shared || x->o.limit ? BIZLOCK_SHARED : 0;
	a.opts.limit = (uint32_t)x->o.limit;
	a.opts.owner = EXEC_OWNER;
	a.opts.note = x->o.note;
	if (pthread_create(&thread, NULL, acquire, &a) != 0)
		return cli_give_up(CLI_SYSTEM, "no thread can be started");
	x->c->die_by = wait_for(x, &a);
	pthread_join(thread, NULL);
	if (x->c->die_by)
		code = 128 + x->c->die_by;
	else
		code = a.rc == BIZLOCK_OK ? acquired(x) : not_acquired(x, &a);
	free(a.message);
	return code;
}
