/* A lock server for programs that speak no MySQL: one thread, one poll(2), thousands of clients.
 *
 *     event_loop [PORT]       listens on 127.0.0.1, port 7878; 0: any that is free
 *
 * A client sends lines, `lock NAME` and `unlock NAME`, and gets one for each:
 *
 *     locked NAME FENCE       or, when it is the client's turn, some time later
 *     unlocked NAME           or: error NAME WHY
 *
 * and, without having asked, `lost NAME` if a lock was lost. A client that goes away gives up its
 * locks and its waits; SIGTERM ends the server, and gives up all. Where the database is comes from
 * the environment and the usual option files, as in hello.c. */
#include <arpa/inet.h>
#include <bizlock_async.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEY(item) ((bizlock_key){"event_loop", (item)->name})
#define LINE_BYTES 256
#define CLIENTS_MAX 10000
#define FDS_FOR_US 100 /* bizlock's connections among them */

/* A lock that a client has, waits for or gives back. It lives until bizlock calls no `done` for it
 * any more, and its client lives as long. */
struct item {
	struct item *next;
	struct client *client;
	uint64_t request; /* that acquires it */
	uint64_t fence;   /* while it has it; else 0 */
	char name[LINE_BYTES];
};

struct client {
	int fd; /* -1: gone */
	char owner[32];
	struct item *items;
	size_t len;
	char in[LINE_BYTES];
};

static bizlock *lock;
static struct client *clients[CLIENTS_MAX];
static size_t count, most = CLIENTS_MAX;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static void leave(struct client *c);

/* What the kernel does not take at once is not read at the other end: that client is let go. */
static void reply(struct client *c, const char *word, const char *name, const char *more)
{
	char line[1024];
	int len = snprintf(line, sizeof(line), "%s %s%s%s\n", word, name, *more ? " " : "", more);

	if (c->fd >= 0 && send(c->fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT) != len)
		leave(c);
}

static struct item *find(const struct client *c, const char *name)
{
	for (struct item *i = c->items; i; i = i->next)
		if (strcmp(i->name, name) == 0)
			return i;
	return NULL;
}

static void forget(struct item *i)
{
	struct item **at = &i->client->items;

	while (*at != i)
		at = &(*at)->next;
	*at = i->next;
	free(i);
}

static void released(void *arg, const bizlock_result *result)
{
	struct item *i = arg;

	if (result->rc == BIZLOCK_OK)
		reply(i->client, "unlocked", i->name, "");
	else if (result->rc != BIZLOCK_LOST) /* the client has been told */
		reply(i->client, "error", i->name, result->message);
	forget(i);
}

static void release(struct item *i)
{
	i->fence = 0;
	if (bizlock_release_start(lock, KEY(i), i->client->owner, released, i, NULL) != BIZLOCK_OK)
		die("release", bizlock_errmsg(lock));
}

static void acquired(void *arg, const bizlock_result *result)
{
	struct item *i = arg;
	char fence[24];

	if (result->rc != BIZLOCK_OK) {
		reply(i->client, "error", i->name, result->message);
		forget(i);
		return;
	}
	i->fence = result->grant->fence;
	snprintf(fence, sizeof(fence), "%" PRIu64, i->fence);
	reply(i->client, "locked", i->name, fence);
	if (i->client->fd < 0 && i->fence) /* it has gone; or was let go just now, with its locks */
		release(i);
}

static void acquire(struct client *c, const char *name)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	struct item *i;

	if (find(c, name)) {
		reply(c, "error", name, "is yours, or you wait for it");
		return;
	}
	i = calloc(1, sizeof(*i));
	if (!i)
		die("lock", strerror(errno));
	i->client = c;
	snprintf(i->name, sizeof(i->name), "%s", name);
	i->next = c->items;
	c->items = i;
	opts.owner = c->owner;
	if (bizlock_acquire_start(lock, KEY(i), &opts, acquired, i, &i->request) != BIZLOCK_OK) {
		reply(c, "error", name, bizlock_errmsg(lock));
		forget(i);
	}
}

/* Called by bizlock_dispatch(), because we ask for bizlock_fd(). */
static void lost(void *arg, bizlock_key key, uint64_t fence)
{
	(void)arg;
	for (size_t n = 0; n < count; n++) {
		struct item *i = find(clients[n], key.biz_id);

		if (i && i->fence == fence) {
			release(i); /* then its owner may ask for it again */
			reply(clients[n], "lost", i->name, "");
		}
	}
}

/* Its locks and waits end one by one, and it with the last of them. */
static void leave(struct client *c)
{
	close(c->fd);
	c->fd = -1;
	for (struct item *i = c->items; i; i = i->next)
		if (i->fence)
			release(i);
		else
			bizlock_cancel(lock, i->request); /* which may have ended */
}

static void obey(struct client *c, const char *line)
{
	struct item *i = strncmp(line, "unlock ", 7) == 0 ? find(c, line + 7) : NULL;

	if (strncmp(line, "lock ", 5) == 0)
		acquire(c, line + 5);
	else if (i && i->fence)
		release(i);
	else
		reply(c, "error", line, "is not understood, or not locked");
}

static void hear(struct client *c)
{
	ssize_t len = recv(c->fd, c->in + c->len, sizeof(c->in) - c->len, MSG_DONTWAIT);
	char *end;

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	c->len += len > 0 ? (size_t)len : 0;
	while (c->fd >= 0 && (end = memchr(c->in, '\n', c->len))) {
		size_t used = (size_t)(end - c->in) + 1;

		*end = '\0';
		obey(c, c->in);
		c->len -= used;
		memmove(c->in, end + 1, c->len);
	}
	if (c->fd >= 0 && (len <= 0 || c->len == sizeof(c->in)))
		leave(c);
}

static void welcome(int listener)
{
	static uint64_t number;
	struct client *c;
	int fd = accept(listener, NULL, NULL);

	if (fd < 0)
		return;
	c = calloc(1, sizeof(*c));
	if (!c)
		die("welcome", strerror(errno));
	c->fd = fd;
	snprintf(c->owner, sizeof(c->owner), "client-%" PRIu64, ++number);
	clients[count++] = c;
}

/* Those that are still there, or have something under way; how many. */
static size_t watch_clients(struct pollfd *fds)
{
	size_t kept = 0;

	for (size_t n = 0; n < count; n++) {
		if (clients[n]->fd < 0 && !clients[n]->items) {
			free(clients[n]);
			continue;
		}
		fds[kept] = (struct pollfd){clients[n]->fd, POLLIN, 0};
		clients[kept++] = clients[n];
	}
	return kept;
}

static void serve(int listener, int signals)
{
	static struct pollfd fds[3 + CLIENTS_MAX];

	for (fds[0].revents = 0; !fds[0].revents;) {
		count = watch_clients(fds + 3);
		fds[0] = (struct pollfd){signals, POLLIN, 0};
		fds[1] = (struct pollfd){bizlock_fd(lock), POLLIN, 0};
		fds[2] = (struct pollfd){count < most ? listener : -1, POLLIN, 0};
		if (poll(fds, 3 + count, -1) < 0 && errno != EINTR)
			die("poll", strerror(errno));
		for (size_t n = 0; n < count; n++)
			if (clients[n]->fd >= 0 && fds[3 + n].revents)
				hear(clients[n]);
		if (bizlock_dispatch(lock, NULL) != BIZLOCK_OK)
			die("dispatch", bizlock_errmsg(lock));
		if (fds[2].revents)
			welcome(listener);
	}
}

static int listen_at(const char *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&at, len) != 0 || listen(fd, SOMAXCONN) != 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) != 0)
		die("listen", strerror(errno));
	printf("listening on 127.0.0.1:%u\n", ntohs(at.sin_port));
	fflush(stdout);
	return fd;
}

int main(int argc, char **argv)
{
	struct rlimit files;
	sigset_t caught;

	sigemptyset(&caught);
	sigaddset(&caught, SIGTERM);
	sigaddset(&caught, SIGINT);
	sigprocmask(SIG_BLOCK, &caught, NULL); /* before there are threads */
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (most > files.rlim_cur - FDS_FOR_US)
		most = files.rlim_cur - FDS_FOR_US;
	if (bizlock_new(&lock) != BIZLOCK_OK || bizlock_open(lock) != BIZLOCK_OK ||
	    bizlock_on_lost(lock, lost, NULL) != BIZLOCK_OK || bizlock_fd(lock) < 0)
		die("bizlock", bizlock_errmsg(lock));
	serve(listen_at(argc > 1 ? argv[1] : "7878"), signalfd(-1, &caught, 0));
	for (size_t n = 0; n < count; n++)
		clients[n]->fd = -1; /* nobody is told any more */
	bizlock_close(lock);
	return 0;
}
