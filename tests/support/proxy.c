/* One thread and one poll(). A link joins a client to the server by two
 * streams; a stream reads only when all it read before has been written. */
#define _GNU_SOURCE 1
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "patience.h"

#define LINKS_MAX 128

struct stream {
	int from, to;
	size_t have, done; /* of buf */
	char buf[16384];
};

struct link {
	struct stream requests, replies;
	unsigned header;       /* bytes of the packet header seen, 0 to 4 */
	size_t payload;        /* bytes of the packet's body still to come */
	unsigned char head[4]; /* length in three bytes, sequence number */
};

struct proxy {
	struct server upstream;
	char host[64];
	unsigned port;
	int listener, wake;
	pthread_t thread;
	atomic_uint packets;
	pthread_mutex_t mu; /* guards what follows, up to links */
	pthread_cond_t obeyed;
	bool told, stop, cut, hold;
	struct link *links[LINKS_MAX]; /* the thread's own */
	unsigned count;
};

/* ---- sockets ------------------------------------------------------------- */

static int dial_unix(const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	close(fd);
	return -1;
}

static int dial_tcp(const char *host, unsigned port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *to;
	char service[16];
	int fd;

	snprintf(service, sizeof(service), "%u", port ? port : 3306);
	if (getaddrinfo(host, service, &hints, &to) != 0)
		return -1;
	fd = socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC, to->ai_protocol);
	if (fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) != 0) {
		close(fd);
		fd = -1;
	}
	freeaddrinfo(to);
	return fd;
}

static int dial(const struct server *at)
{
	int one = 1, fd = at->socket[0] ? dial_unix(at->socket) : dial_tcp(at->host, at->port);

	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static void listen_on(struct proxy *p, const char *host)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t size = sizeof(at);

	snprintf(p->host, sizeof(p->host), "%s", host);
	p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (inet_pton(AF_INET, host, &at.sin_addr) != 1 ||
	    bind(p->listener, (struct sockaddr *)&at, sizeof(at)) != 0 ||
	    listen(p->listener, LINKS_MAX) != 0 ||
	    getsockname(p->listener, (struct sockaddr *)&at, &size) != 0)
		die("proxy: cannot listen on %s: %s", host, strerror(errno));
	p->port = ntohs(at.sin_port);
}

/* ---- links --------------------------------------------------------------- */

/* Follows the packets in n bytes that a client sent. */
static unsigned count_packets(struct link *l, const char *bytes, size_t n)
{
	unsigned packets = 0;

	while (n > 0) {
		size_t step = l->payload < n ? l->payload : n;

		if (l->payload == 0) {
			l->head[l->header++] = (unsigned char)*bytes;
			step = 1;
			if (l->header == 4) {
				packets++;
				l->header = 0;
				l->payload =
				        l->head[0] | l->head[1] << 8 | (size_t)l->head[2] << 16;
			}
		} else {
			l->payload -= step;
		}
		bytes += step;
		n -= step;
	}
	return packets;
}

static void open_link(struct proxy *p)
{
	int one = 1, client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
	int server = client < 0 ? -1 : dial(&p->upstream);
	struct link *l = server < 0 || p->count == LINKS_MAX ? NULL : calloc(1, sizeof(*l));

	if (!l) {
		if (server >= 0)
			close(server);
		if (client >= 0)
			close(client);
		return;
	}
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	l->requests.from = l->replies.to = client;
	l->requests.to = l->replies.from = server;
	p->links[p->count++] = l;
}

static void close_link(struct proxy *p, unsigned i)
{
	struct link *l = p->links[i];

	/* A forked process may have copies of these sockets: close alone would
	 * not be seen at the other ends. */
	shutdown(l->requests.from, SHUT_RDWR);
	shutdown(l->requests.to, SHUT_RDWR);
	close(l->requests.from);
	close(l->requests.to);
	free(l);
	p->links[i] = p->links[--p->count];
}

/* ---- the loop ------------------------------------------------------------ */

static struct pollfd interest(const struct stream *s, bool hold)
{
	if (s->done < s->have)
		return (struct pollfd){hold ? -1 : s->to, POLLOUT, 0};
	return (struct pollfd){s->from, POLLIN, 0};
}

/* False: this end is gone. */
static bool move(struct stream *s)
{
	ssize_t n;

	if (s->done < s->have) {
		n = send(s->to, s->buf + s->done, s->have - s->done, MSG_NOSIGNAL | MSG_DONTWAIT);
		s->done += n > 0 ? (size_t)n : 0;
	} else {
		n = recv(s->from, s->buf, sizeof(s->buf), MSG_DONTWAIT);
		s->have = n > 0 ? (size_t)n : 0;
		s->done = 0;
	}
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static bool serve(struct proxy *p, struct link *l, bool requests, bool replies)
{
	bool alive = true;

	if (requests) {
		bool fresh = l->requests.done == l->requests.have;

		alive = move(&l->requests);
		if (alive && fresh)
			atomic_fetch_add(&p->packets,
			                 count_packets(l, l->requests.buf, l->requests.have));
	}
	return alive && (!replies || move(&l->replies));
}

/* Obeys the test. False: the end. */
static bool obey(struct proxy *p, bool *ret_hold)
{
	uint64_t rung;
	bool stop;

	if (read(p->wake, &rung, sizeof(rung)) < 0 && errno != EAGAIN)
		die("proxy: eventfd: %s", strerror(errno));
	pthread_mutex_lock(&p->mu);
	while ((p->cut || p->stop) && p->count > 0)
		close_link(p, 0);
	p->cut = p->told = false;
	pthread_cond_broadcast(&p->obeyed);
	stop = p->stop;
	*ret_hold = p->hold;
	pthread_mutex_unlock(&p->mu);
	return !stop;
}

static void *run(void *arg)
{
	struct proxy *p = arg;
	struct pollfd fds[2 + 2 * LINKS_MAX];
	bool hold;

	while (obey(p, &hold)) {
		unsigned links = p->count;

		fds[0] = (struct pollfd){p->wake, POLLIN, 0};
		fds[1] = (struct pollfd){p->listener, POLLIN, 0};
		for (unsigned i = 0; i < links; i++) {
			fds[2 + 2 * i] = interest(&p->links[i]->requests, false);
			fds[3 + 2 * i] = interest(&p->links[i]->replies, hold);
		}
		if (poll(fds, 2 + 2 * links, -1) < 0 && errno != EINTR)
			die("proxy: poll: %s", strerror(errno));
		for (unsigned i = links; i-- > 0;)
			if (!serve(p, p->links[i], fds[2 + 2 * i].revents, fds[3 + 2 * i].revents))
				close_link(p, i);
		if (fds[1].revents)
			open_link(p);
	}
	return NULL;
}

/* ---- for tests ----------------------------------------------------------- */

struct proxy *proxy_start(const struct server *upstream, const char *host)
{
	struct proxy *p = calloc(1, sizeof(*p));

	if (!p)
		die("out of memory");
	p->upstream = *upstream;
	p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	listen_on(p, host);
	pthread_mutex_init(&p->mu, NULL);
	pthread_cond_init(&p->obeyed, NULL);
	if (pthread_create(&p->thread, NULL, run, p) != 0)
		die("proxy: no thread");
	return p;
}

/* With mu held: until the thread has taken notice of what was changed. */
static void tell(struct proxy *p)
{
	p->told = true;
	if (eventfd_write(p->wake, 1) != 0)
		die("proxy: eventfd: %s", strerror(errno));
	while (p->told)
		pthread_cond_wait(&p->obeyed, &p->mu);
}

void proxy_stop(struct proxy *p)
{
	pthread_mutex_lock(&p->mu);
	p->stop = true;
	tell(p);
	pthread_mutex_unlock(&p->mu);
	pthread_join(p->thread, NULL);
	close(p->listener);
	close(p->wake);
	pthread_cond_destroy(&p->obeyed);
	pthread_mutex_destroy(&p->mu);
	free(p);
}

struct server proxy_address(const struct proxy *p)
{
	return server_over_tcp(p->upstream, p->host, p->port);
}

unsigned proxy_packets(struct proxy *p)
{
	return atomic_load(&p->packets);
}

void proxy_cut(struct proxy *p)
{
	pthread_mutex_lock(&p->mu);
	p->cut = true;
	tell(p);
	pthread_mutex_unlock(&p->mu);
}

void proxy_hold_replies(struct proxy *p, bool hold)
{
	pthread_mutex_lock(&p->mu);
	p->hold = hold;
	tell(p);
	pthread_mutex_unlock(&p->mu);
}
