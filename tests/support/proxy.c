/* One thread and one poll(). A link joins a client to the server by two streams. A stream reads
 * only when everything that it read before has been written. */
#define _GNU_SOURCE 1
#include "proxy.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dial.h"
#include "patience.h"

#define LINKS_MAX 128

struct stream {
	int from, to;
	struct fault_place place;
	bool mute;          /* what is read is thrown away */
	bool greeted;       /* the client's first packet, which has its capabilities, was read */
	int64_t late_until; /* of now_ms(): what follows `prompt` waits until then */
	size_t have, done;  /* of buf */
	size_t prompt;      /* bytes of buf that need not wait */
	char buf[16384];
};

struct link {
	struct stream streams[2]; /* by enum fault_side */
};

struct proxy {
	struct server upstream;
	char host[64];
	unsigned port;
	int listener, wake;
	pthread_t thread;
	atomic_uint packets, replaced;
	atomic_uint late;   /* streams that keep something back for a while */
	pthread_mutex_t mu; /* guards what follows, up to links */
	pthread_cond_t obeyed;
	bool told, stop, cut, forget, hold, find_rows, deaf;
	struct fault_plan plan;
	const char *from, *to;         /* NULL: nothing is replaced */
	struct link *links[LINKS_MAX]; /* the thread's own */
	unsigned count;
};

/* ---- links --------------------------------------------------------------- */

/* With mu held: what every connection suffers. */
static bool suffers(const struct proxy *p, enum fault_what what)
{
	return p->plan.shots > 0 && p->plan.fault.for_ever && p->plan.fault.what == what;
}

static bool line_is_down(struct proxy *p)
{
	bool down;

	pthread_mutex_lock(&p->mu);
	down = suffers(p, FAULT_CUT);
	pthread_mutex_unlock(&p->mu);
	return down;
}

static void open_link(struct proxy *p)
{
	int client = answer(p->listener);
	int server = client < 0 || line_is_down(p) ? -1 : dial(&p->upstream);
	struct link *l = server < 0 || p->count == LINKS_MAX ? NULL : calloc(1, sizeof(*l));

	if (!l) {
		if (server >= 0)
			close(server);
		if (client >= 0)
			close(client);
		return;
	}
	l->streams[FAULT_REQUESTS].from = l->streams[FAULT_REPLIES].to = client;
	l->streams[FAULT_REQUESTS].to = l->streams[FAULT_REPLIES].from = server;
	p->links[p->count++] = l;
}

static void close_link(struct proxy *p, unsigned i)
{
	struct link *l = p->links[i];

	/* A forked process may have copies of these sockets, so that the other ends would not see a
	 * mere close(). */
	for (unsigned side = 0; side < 2; side++) {
		shutdown(l->streams[side].from, SHUT_RDWR);
		atomic_fetch_sub(&p->late, l->streams[side].late_until != 0);
	}
	for (unsigned side = 0; side < 2; side++)
		close(l->streams[side].from);
	free(l);
	p->links[i] = p->links[--p->count];
}

/* ---- bytes --------------------------------------------------------------- */

/* The fault fired: the first n bytes of the buffer still get through. False:
 * this link is cut. */
static bool suffer(struct proxy *p, struct stream *s, size_t n, const struct fault *f)
{
	if (f->what == FAULT_DELAY) {
		s->prompt = n;
		s->late_until = now_ms() + f->delay_ms;
		atomic_fetch_add(&p->late, 1);
		return true;
	}
	/* The rest is so short that it fits into the socket's buffer. */
	if (n > 0 && send(s->to, s->buf, n, MSG_NOSIGNAL) != (ssize_t)n)
		return false;
	s->mute = true;
	return f->what == FAULT_SWALLOW;
}

/* With mu held. */
static void replace(struct proxy *p, struct stream *s)
{
	size_t len = p->from ? strlen(p->from) : 0;
	char *at = s->buf;

	while (len > 0 &&
	       (at = memmem(at, s->have - (size_t)(at - s->buf), p->from, len)) != NULL) {
		memcpy(at, p->to, len);
		atomic_fetch_add(&p->replaced, 1);
	}
}

/* With mu held. Behind a packet's head of 4 bytes: CLIENT_FOUND_ROWS is 2. */
static void find_rows(const struct proxy *p, struct stream *s)
{
	if (p->find_rows && !s->greeted && s->have > 4)
		s->buf[4] |= 2;
	s->greeted = true;
}

/* The buffer is fresh. False: the link is cut. */
static bool take_in(struct proxy *p, struct stream *s, enum fault_side side)
{
	struct fault fault;
	unsigned packets = 0;
	unsigned before;
	size_t through;
	bool fired;

	pthread_mutex_lock(&p->mu);
	replace(p, s);
	if (side == FAULT_REQUESTS)
		find_rows(p, s);
	before = p->plan.shots;
	s->mute |= suffers(p, FAULT_SWALLOW) && p->plan.fault.side == side;
	through = s->mute ? 0 : fault_follow(&p->plan, side, &s->place, s->buf, s->have, &packets);
	fired = p->plan.shots > before;
	fault = p->plan.fault;
	pthread_mutex_unlock(&p->mu);
	if (side == FAULT_REQUESTS)
		atomic_fetch_add(&p->packets, packets);
	if (fired && !suffer(p, s, through, &fault))
		return false;
	if (s->mute)
		s->have = 0;
	return true;
}

/* False: this end is gone. */
static bool move(struct proxy *p, struct stream *s, enum fault_side side)
{
	size_t end = s->late_until ? s->prompt : s->have;
	ssize_t n;

	if (s->done < s->have) {
		n = send(s->to, s->buf + s->done, end - s->done, MSG_NOSIGNAL | MSG_DONTWAIT);
		s->done += n > 0 ? (size_t)n : 0;
	} else {
		n = recv(s->from, s->buf, sizeof(s->buf), MSG_DONTWAIT);
		s->have = n > 0 ? (size_t)n : 0;
		s->done = 0;
		if (n > 0 && !take_in(p, s, side))
			return false;
	}
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* ---- the loop ------------------------------------------------------------ */

/* *timeout: until then, this stream has nothing to do. A stream that is late does not read: if it
 * saw that its sender has gone, it would stop the bytes that are under way. */
static struct pollfd interest(struct proxy *p, struct stream *s, bool hold, int *timeout)
{
	int64_t left = s->late_until - now_ms();

	if (s->late_until && left <= 0) {
		s->late_until = 0;
		atomic_fetch_sub(&p->late, 1);
	}
	if (s->late_until && s->done == s->prompt) {
		*timeout = *timeout < 0 || left < *timeout ? (int)left : *timeout;
		return (struct pollfd){-1, 0, 0};
	}
	if (s->done < s->have)
		return (struct pollfd){hold ? -1 : s->to, POLLOUT, 0};
	return (struct pollfd){s->from, POLLIN, 0};
}

/* Obeys the test. False: the end. */
static bool obey(struct proxy *p, bool *ret_hold, bool *ret_deaf)
{
	uint64_t rung;
	bool stop;

	if (read(p->wake, &rung, sizeof(rung)) < 0 && errno != EAGAIN)
		die("proxy: eventfd: %s", strerror(errno));
	pthread_mutex_lock(&p->mu);
	while ((p->cut || p->stop || suffers(p, FAULT_CUT)) && p->count > 0)
		close_link(p, 0);
	for (unsigned i = 0; p->forget && i < p->count; i++)
		for (unsigned side = 0; side < 2; side++)
			p->links[i]->streams[side].mute = true;
	p->cut = p->forget = p->told = false;
	pthread_cond_broadcast(&p->obeyed);
	stop = p->stop;
	*ret_hold = p->hold;
	*ret_deaf = p->deaf;
	pthread_mutex_unlock(&p->mu);
	return !stop;
}

static void serve(struct proxy *p, const struct pollfd *fds, unsigned links)
{
	for (unsigned i = links; i-- > 0;) {
		struct stream *s = p->links[i]->streams;
		bool alive = true;

		for (unsigned side = 0; alive && side < 2; side++)
			if (fds[2 * i + side].revents)
				alive = move(p, &s[side], side);
		if (!alive)
			close_link(p, i);
	}
}

static void *run(void *arg)
{
	struct proxy *p = arg;
	struct pollfd fds[2 + 2 * LINKS_MAX];
	bool hold, deaf;

	while (obey(p, &hold, &deaf)) {
		unsigned links = p->count;
		int timeout = -1;

		fds[0] = (struct pollfd){p->wake, POLLIN, 0};
		fds[1] = (struct pollfd){deaf ? -1 : p->listener, POLLIN, 0};
		for (unsigned i = 0; i < links; i++) {
			struct stream *s = p->links[i]->streams;

			fds[2 + 2 * i] = interest(p, &s[FAULT_REQUESTS], false, &timeout);
			fds[3 + 2 * i] = interest(p, &s[FAULT_REPLIES], hold, &timeout);
		}
		if (poll(fds, 2 + 2 * links, timeout) < 0 && errno != EINTR)
			die("proxy: poll: %s", strerror(errno));
		serve(p, fds + 2, links);
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
	snprintf(p->host, sizeof(p->host), "%s", host);
	p->listener = listen_on(host, &p->port);
	pthread_mutex_init(&p->mu, NULL);
	pthread_cond_init(&p->obeyed, NULL);
	if (pthread_create(&p->thread, NULL, run, p) != 0)
		die("proxy: no thread");
	return p;
}

/* With mu held: waits until the thread has noticed the change. */
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
	struct server at = server_over_tcp(p->upstream, p->host, p->port);

	at.plain = true;
	return at;
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

void proxy_forget(struct proxy *p)
{
	pthread_mutex_lock(&p->mu);
	p->forget = true;
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

void proxy_hold_dials(struct proxy *p, bool hold)
{
	pthread_mutex_lock(&p->mu);
	p->deaf = hold;
	tell(p);
	pthread_mutex_unlock(&p->mu);
}

void proxy_arm(struct proxy *p, const struct fault *fault)
{
	pthread_mutex_lock(&p->mu);
	p->plan = (struct fault_plan){.shots = 0};
	if (fault)
		p->plan.fault = *fault;
	pthread_mutex_unlock(&p->mu);
}

void proxy_replace(struct proxy *p, const char *from, const char *to)
{
	if (strlen(from) != strlen(to) || strstr(to, from))
		die("proxy: %s cannot become %s", from, to);
	pthread_mutex_lock(&p->mu);
	p->from = from;
	p->to = to;
	atomic_store(&p->replaced, 0);
	pthread_mutex_unlock(&p->mu);
}

void proxy_find_rows(struct proxy *p)
{
	pthread_mutex_lock(&p->mu);
	p->find_rows = true;
	pthread_mutex_unlock(&p->mu);
}

unsigned proxy_replaced(struct proxy *p)
{
	return atomic_load(&p->replaced);
}

unsigned proxy_fired(struct proxy *p)
{
	unsigned fired;

	pthread_mutex_lock(&p->mu);
	fired = p->plan.shots;
	pthread_mutex_unlock(&p->mu);
	return fired;
}

struct fault_trace proxy_trace(struct proxy *p)
{
	struct fault_trace trace;

	pthread_mutex_lock(&p->mu);
	trace = p->plan.trace;
	pthread_mutex_unlock(&p->mu);
	return trace;
}

bool proxy_is_late(struct proxy *p)
{
	return atomic_load(&p->late) > 0;
}
