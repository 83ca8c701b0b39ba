#define _GNU_SOURCE 1
#include "peer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "losses.h"
#include "patience.h"

enum wish { ACQUIRE, RELEASE, RENEW, VERIFY, EXPORT, IMPORT, LOOK };

struct ask {
	enum wish wish;
	char id[BIZLOCK_EXPORT_MAX + 1]; /* or the text to be imported */
	int64_t wait_ms;                 /* this field and the next two: for ACQUIRE */
	uint32_t lease_ms;
	bool renewed;
};

/* ---- in the other process ------------------------------------------------ */

static struct losses losses;

static struct answer obey(bizlock *b, const struct ask *ask)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	struct answer a = {.grant = BIZLOCK_GRANT_INIT,
	                   .left_ms = bizlock_left_ms(b, KEY(ask->id), NULL)};

	opts.wait_ms = ask->wait_ms;
	opts.lease_ms = ask->lease_ms;
	opts.flags = ask->renewed ? 0 : BIZLOCK_NO_RENEW;
	if (ask->wish == ACQUIRE)
		a.rc = bizlock_acquire(b, KEY(ask->id), &opts, &a.grant);
	else if (ask->wish == RELEASE)
		a.rc = bizlock_release(b, KEY(ask->id), NULL, &a.depth);
	else if (ask->wish == RENEW)
		a.rc = bizlock_renew(b, KEY(ask->id), NULL, 0);
	else if (ask->wish == EXPORT)
		a.rc = bizlock_export(b, KEY(ask->id), NULL, a.text, sizeof(a.text));
	else if (ask->wish == IMPORT)
		a.rc = bizlock_import(b, ask->id, NULL, &a.grant);
	else if (ask->wish == VERIFY)
		a.rc = bizlock_verify(b, KEY(ask->id), NULL);
	a.lost = atomic_load(&losses.count);
	a.lost_fence = a.lost ? losses.list[a.lost - 1].fence : 0;
	if (a.rc != BIZLOCK_OK)
		snprintf(a.errmsg, sizeof(a.errmsg), "%s", bizlock_errmsg(b));
	return a;
}

static _Noreturn void serve(int fd, const struct world *w, const char *const *options)
{
	bizlock *b = client_open(w, options);
	struct ask ask;

	losses_watch(&losses, b);
	while (recv(fd, &ask, sizeof(ask), 0) == sizeof(ask)) {
		struct answer a = obey(b, &ask);

		if (send(fd, &a, sizeof(a), MSG_NOSIGNAL) != sizeof(a))
			break;
	}
	_exit(0);
}

/* ---- in the test --------------------------------------------------------- */

struct peer peer_start(const struct world *w, const char *const *options)
{
	pid_t parent = getpid();
	struct peer p;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		die("socketpair: %s", strerror(errno));
	p.pid = fork();
	if (p.pid < 0)
		die("fork: %s", strerror(errno));
	if (p.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		close(fds[0]);
		serve(fds[1], w, options);
	}
	close(fds[1]);
	p.fd = fds[0];
	return p;
}

static void send_ask(struct peer *p, struct ask ask, const char *id)
{
	snprintf(ask.id, sizeof(ask.id), "%s", id);
	if (send(p->fd, &ask, sizeof(ask), MSG_NOSIGNAL) != sizeof(ask))
		die("peer %d is gone", (int)p->pid);
}

void peer_ask_acquire_with(struct peer *p, struct peer_args args)
{
	send_ask(p,
	         (struct ask){.wish = ACQUIRE,
	                      .wait_ms = args.wait_ms,
	                      .lease_ms = args.lease_ms,
	                      .renewed = args.renewed},
	         args.id);
}

bool peer_has_answer(const struct peer *p)
{
	struct pollfd fd = {p->fd, POLLIN, 0};

	return poll(&fd, 1, 0) > 0;
}

struct answer peer_answer(struct peer *p)
{
	struct answer a;

	eventually(peer_has_answer(p));
	if (recv(p->fd, &a, sizeof(a), 0) != sizeof(a))
		die("peer %d is gone", (int)p->pid);
	return a;
}

struct answer peer_acquire_with(struct peer *p, struct peer_args args)
{
	peer_ask_acquire_with(p, args);
	return peer_answer(p);
}

/* The answer to a wish that needs nothing but an id. */
static struct answer ask_for(struct peer *p, enum wish wish, const char *id)
{
	send_ask(p, (struct ask){.wish = wish}, id);
	return peer_answer(p);
}

struct answer peer_release(struct peer *p, const char *id)
{
	return ask_for(p, RELEASE, id);
}

struct answer peer_renew(struct peer *p, const char *id)
{
	return ask_for(p, RENEW, id);
}

struct answer peer_verify(struct peer *p, const char *id)
{
	return ask_for(p, VERIFY, id);
}

struct answer peer_export(struct peer *p, const char *id, char text[BIZLOCK_EXPORT_MAX])
{
	struct answer a = ask_for(p, EXPORT, id);

	snprintf(text, BIZLOCK_EXPORT_MAX, "%s", a.text);
	return a;
}

struct answer peer_import(struct peer *p, const char *text)
{
	return ask_for(p, IMPORT, text);
}

struct answer peer_look(struct peer *p, const char *id)
{
	return ask_for(p, LOOK, id);
}

void peer_signal(struct peer *p, int signal)
{
	int status;

	if (kill(p->pid, signal) != 0)
		die("kill: %s", strerror(errno));
	if ((signal == SIGSTOP || signal == SIGKILL) &&
	    waitpid(p->pid, &status, WUNTRACED) != p->pid)
		die("waitpid: %s", strerror(errno));
	if (signal == SIGKILL)
		p->pid = 0;
}

void peer_end(struct peer *p)
{
	if (p->pid)
		peer_signal(p, SIGKILL);
	close(p->fd);
}
