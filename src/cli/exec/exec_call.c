/* Calls of the library by bizlock exec, and by acquire, renew and release, that may wait for a
 * server, and the release of the lock. A server that does not answer must not keep exec from ending
 * or from hearing signals: an init system would wait for exec, and then kill it. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/exec/exec.h"

#define LEAVE_MS 3000 /* for all calls at the end; a server that answers needs far less */
#define HEARD_MS 1000 /* the same, after a signal */

void cli_exec_wake(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		return; /* the reader is awake already */
}

static void leave_within(struct cli_exec *x, int64_t ms)
{
	int64_t by = cli_exec_now_ms() + ms;

	if (!x->leave_by_ms || by < x->leave_by_ms)
		x->leave_by_ms = by;
}

void cli_exec_leave(struct cli_exec *x)
{
	leave_within(x, LEAVE_MS);
}

/* Copies the message here, because each thread has its own. */
static void *make_call(void *arg)
{
	struct cli_exec *x = arg;
	const char *message;

	x->call_rc = x->call(x);
	if (x->call_rc != BIZLOCK_OK) {
		message = bizlock_errmsg(x->c->lock);
		snprintf(x->call_message, sizeof(x->call_message), "%s",
		         *message ? message : bizlock_strerror(x->call_rc));
	}
	atomic_store(&x->call_done, true);
	cli_exec_wake(x->wake);
	return NULL;
}

/* A signal stops an acquisition, but not the later calls, which release and close. */
static void hear(struct cli_exec *x)
{
	struct signalfd_siginfo info;

	while (read(x->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (x->leave_by_ms) {
			leave_within(x, HEARD_MS);
			continue;
		}
		cli_exec_leave(x);
		x->came = (int)info.ssi_signo;
		bizlock_stop(x->c->lock, 1);
	}
}

/* false: the call was not done in time. */
static bool await_call(struct cli_exec *x)
{
	struct pollfd fds[] = {{x->signals, POLLIN, 0}, {x->wake, POLLIN, 0}};
	uint64_t count;

	while (!atomic_load(&x->call_done)) {
		int64_t left = x->leave_by_ms ? x->leave_by_ms - cli_exec_now_ms() : -1;

		if (x->leave_by_ms && left <= 0)
			return false;
		poll(fds, 2, (int)left);
		if (fds[1].revents && read(x->wake, &count, sizeof(count)) < 0)
			continue;
		hear(x);
	}
	hear(x); /* a signal may have come together with the answer */
	return true;
}

int cli_exec_call(struct cli_exec *x, int (*call)(struct cli_exec *x))
{
	pthread_t thread;

	if (x->c->left)
		return CLI_EXEC_LEFT;
	x->call = call;
	atomic_store(&x->call_done, false);
	if (pthread_create(&thread, NULL, make_call, x) != 0) {
		make_call(x); /* without a thread: signals are not heard meanwhile */
		return x->call_rc;
	}
	if (await_call(x)) {
		pthread_join(thread, NULL);
		return x->call_rc;
	}
	x->c->left = true;
	return CLI_EXEC_LEFT;
}
