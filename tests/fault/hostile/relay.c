/* Passes packets between clients and the server, and lies to the clients. One thread and one
 * poll(). Each packet of a reply is looked at when it is there as a whole. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dial.h"
#include "link.h"
#include "patience.h"

enum { LINKS_MAX = 32, CHUNK = 65536 };
enum { NO_ROOM_TO_PREPARE = 1461 };

struct relay {
	struct server upstream;
	unsigned port;
	int listener, wake;
	pthread_t thread;
	pthread_mutex_t mu; /* guards what follows, up to links */
	bool stop, refuse_prepare;
	struct plan plan;
	struct seen seen;
	unsigned packets;
	struct link *links[LINKS_MAX]; /* the thread's own */
	unsigned count;
};

static void drop_front(struct bytes *b, size_t len)
{
	b->len -= len;
	memmove(b->data, b->data + len, b->len);
}

/* The length of the first packet's payload; false: it is not there as a whole. */
static bool packet_there(const struct bytes *b, size_t *ret)
{
	if (b->len < HEADER)
		return false;
	*ret = b->data[0] | (size_t)b->data[1] << 8 | (size_t)b->data[2] << 16;
	return b->len >= HEADER + *ret;
}

/* ---- packets ------------------------------------------------------------------------------ */

/* Extensions that reply.c does not know. */
static void disarm_greeting(struct packet *p)
{
	size_t at = 1;

	while (at < p->len && p->data[at])
		at++;
	at += 1 + 4 + 8 + 1 + 2 + 1 + 2 + 2 + 1 + 6;
	if (at + 4 <= p->len)
		memset(p->data + at, 0, 4);
}

static const struct lie *choose_lie(struct relay *relay, enum kind kind)
{
	const struct plan *plan = &relay->plan;
	unsigned at = relay->packets++;
	bool now = relay->seen.shots == 0 ? at >= plan->packet : plan->ever;

	if (relay->seen.trace.count < TRACE_MAX)
		relay->seen.trace.kinds[relay->seen.trace.count++] = (unsigned char)kind;
	if (!plan->lie || !now || !(plan->lie->kinds & 1u << kind))
		return NULL;
	relay->seen.shots++;
	relay->seen.told |= 1u << kind;
	return plan->lie;
}

static bool refused(struct relay *relay, struct link *l, struct told *t)
{
	static const unsigned char error[] = "\xff\0\0#42000no room";
	unsigned char text[sizeof(error)];
	bool prepares = reply_prepares(&l->at);

	reply_next(&l->at, t->truth);
	if (!prepares || !relay->refuse_prepare)
		return false;
	memcpy(text, error, sizeof(error));
	text[1] = NO_ROOM_TO_PREPARE & 0xff;
	text[2] = NO_ROOM_TO_PREPARE >> 8;
	if (t->truth->kind == PREPARED)
		tell(t, text, sizeof(text) - 1);
	return true;
}

static void pass_on(struct relay *relay, struct link *l, unsigned char number, struct packet *p)
{
	struct told t = {.truth = p, .link = l};
	const struct lie *lie;

	l->number = (unsigned char)(number + l->shift);
	pthread_mutex_lock(&relay->mu);
	t.seed = relay->plan.seed;
	if (refused(relay, l, &t)) {
		pthread_mutex_unlock(&relay->mu);
		return;
	}
	if (p->kind == GREETING)
		disarm_greeting(p);
	lie = choose_lie(relay, p->kind);
	pthread_mutex_unlock(&relay->mu);
	if (lie)
		lie->fn(&t, lie->number);
	else
		tell(&t, p->data, p->len);
	l->flood.on = t.flood;
	l->flood.pace = t.pace;
	l->shift = (unsigned char)(l->number - number - 1);
}

/* False: this end is gone. */
static bool take_reply(struct relay *relay, struct link *l)
{
	char chunk[CHUNK];
	ssize_t n = recv(l->server, chunk, sizeof(chunk), MSG_DONTWAIT);
	size_t len;

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	bytes_append(&l->reply, chunk, (size_t)n);
	while (!l->flood.on && !l->broken && packet_there(&l->reply, &len)) {
		struct bytes copy = {NULL, 0, 0};
		struct packet p;

		bytes_append(&copy, l->reply.data + HEADER, len);
		p = (struct packet){copy.data, len, OK};
		pass_on(relay, l, l->reply.data[3], &p);
		free(copy.data);
		drop_front(&l->reply, HEADER + len);
	}
	return !l->broken;
}

static bool take_request(struct relay *relay, struct link *l)
{
	char chunk[CHUNK];
	ssize_t n = recv(l->client, chunk, sizeof(chunk), MSG_DONTWAIT);
	size_t len;

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	bytes_append(&l->request, chunk, (size_t)n);
	while (packet_there(&l->request, &len)) {
		unsigned char number = l->request.data[3];

		l->shift = number == 0 ? 0 : l->shift;
		reply_asked(&l->at, number, l->request.data + HEADER, len);
		drop_front(&l->request, HEADER + len);
		pthread_mutex_lock(&relay->mu);
		relay->seen.requests++;
		pthread_mutex_unlock(&relay->mu);
	}
	return send(l->server, chunk, (size_t)n, MSG_NOSIGNAL) == n;
}

/* ---- links ---------------------------------------------------------------------------------- */

static void open_link(struct relay *relay)
{
	int client = answer(relay->listener);
	int server = client < 0 ? -1 : dial(&relay->upstream);
	struct link *l = server < 0 || relay->count == LINKS_MAX ? NULL : calloc(1, sizeof(*l));

	if (!l) {
		if (client >= 0)
			close(client);
		if (server >= 0)
			close(server);
		return;
	}
	l->client = client;
	l->server = server;
	relay->links[relay->count++] = l;
}

static void close_link(struct relay *relay, unsigned i)
{
	struct link *l = relay->links[i];

	shutdown(l->client, SHUT_RDWR);
	close(l->client);
	close(l->server);
	free(l->request.data);
	free(l->reply.data);
	free(l->flood.packet.data);
	free(l);
	relay->links[i] = relay->links[--relay->count];
}

/* ---- the loop ----------------------------------------------------------------------------------
 */

static bool flood(struct relay *relay, struct link *l)
{
	bool swallowed = false, alive = link_flood(l, &swallowed);

	pthread_mutex_lock(&relay->mu);
	relay->seen.swallowed |= swallowed;
	pthread_mutex_unlock(&relay->mu);
	return alive;
}

/* To be told when the client takes more. One of a flood that has a pace is asked again and again.
 */
static short wanted(const struct link *l)
{
	if (!l->flood.on)
		return POLLIN;
	return l->flood.pace && now_ms() < l->flood.next_ms ? 0 : POLLOUT;
}

static bool serve_link(struct relay *relay, struct link *l, const struct pollfd fds[2])
{
	bool alive = true;

	if (fds[0].revents & POLLOUT)
		alive = flood(relay, l);
	else if (fds[0].revents)
		alive = !l->flood.on && take_request(relay, l);
	if (alive && fds[1].revents)
		alive = take_reply(relay, l);
	return alive;
}

static void *run(void *arg)
{
	struct relay *relay = arg;
	struct pollfd fds[2 + 2 * LINKS_MAX];
	bool stop = false;

	while (!stop) {
		unsigned links = relay->count;
		int patience = -1;

		fds[0] = (struct pollfd){relay->wake, POLLIN, 0};
		fds[1] = (struct pollfd){relay->listener, POLLIN, 0};
		for (unsigned i = 0; i < links; i++) {
			const struct link *l = relay->links[i];

			patience = l->flood.on && l->flood.pace ? PACE_MS : patience;
			fds[2 + 2 * i] = (struct pollfd){l->client, wanted(l), 0};
			fds[3 + 2 * i] = (struct pollfd){l->flood.on ? -1 : l->server, POLLIN, 0};
		}
		if (poll(fds, 2 + 2 * links, patience) < 0 && errno != EINTR)
			die("relay: poll: %s", strerror(errno));
		for (unsigned i = links; i-- > 0;)
			if (!serve_link(relay, relay->links[i], fds + 2 + 2 * i))
				close_link(relay, i);
		if (fds[1].revents)
			open_link(relay);
		pthread_mutex_lock(&relay->mu);
		stop = relay->stop;
		pthread_mutex_unlock(&relay->mu);
	}
	while (relay->count > 0)
		close_link(relay, 0);
	return NULL;
}

/* ---- for the test ---------------------------------------------------------------------------- */

struct relay *relay_start(const struct server *upstream)
{
	struct relay *relay = calloc(1, sizeof(*relay));

	if (!relay)
		die("out of memory");
	relay->upstream = *upstream;
	relay->wake = eventfd(0, EFD_CLOEXEC);
	relay->listener = listen_on("127.0.0.1", &relay->port);
	pthread_mutex_init(&relay->mu, NULL);
	if (pthread_create(&relay->thread, NULL, run, relay) != 0)
		die("relay: no thread");
	return relay;
}

void relay_stop(struct relay *relay)
{
	pthread_mutex_lock(&relay->mu);
	relay->stop = true;
	pthread_mutex_unlock(&relay->mu);
	if (eventfd_write(relay->wake, 1) != 0)
		die("relay: eventfd: %s", strerror(errno));
	pthread_join(relay->thread, NULL);
	close(relay->listener);
	close(relay->wake);
	pthread_mutex_destroy(&relay->mu);
	free(relay);
}

struct server relay_address(const struct relay *relay)
{
	struct server at = server_over_tcp(relay->upstream, "127.0.0.1", relay->port);

	at.plain = true;
	return at;
}

void relay_arm(struct relay *relay, const struct plan *plan)
{
	pthread_mutex_lock(&relay->mu);
	relay->plan = plan ? *plan : (struct plan){.lie = NULL};
	relay->seen = (struct seen){.shots = 0};
	relay->packets = 0;
	pthread_mutex_unlock(&relay->mu);
}

void relay_refuse_prepare(struct relay *relay, bool refuse)
{
	pthread_mutex_lock(&relay->mu);
	relay->refuse_prepare = refuse;
	pthread_mutex_unlock(&relay->mu);
}

struct seen relay_seen(struct relay *relay)
{
	struct seen seen;

	pthread_mutex_lock(&relay->mu);
	seen = relay->seen;
	pthread_mutex_unlock(&relay->mu);
	return seen;
}
