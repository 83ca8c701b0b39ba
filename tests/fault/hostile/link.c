/* What a client is sent. */
#define _GNU_SOURCE 1
#include "link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "patience.h"

/* The connectors set no limit to some answers, such as the parameters of a statement: there the
 * time that a call has ends it, whatever has come by then. */
enum { CHUNK = 65536, FLOOD_BYTES = 128 << 20, FLOOD_MS = 5 * IO_MS };

void bytes_append(struct bytes *b, const void *data, size_t len)
{
	if (b->len + len + PACKET_ROOM > b->room) {
		b->room = 2 * (b->len + len) + PACKET_ROOM;
		b->data = realloc(b->data, b->room);
		if (!b->data)
			die("out of memory");
	}
	if (len > 0)
		memcpy(b->data + b->len, data, len);
	b->len += len;
}

static void put_header(unsigned char *head, size_t len, unsigned char number)
{
	head[0] = (unsigned char)len;
	head[1] = (unsigned char)(len >> 8);
	head[2] = (unsigned char)(len >> 16);
	head[3] = number;
}

/* What a client does not read it need not get. */
static void send_all(struct link *l, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0 && !l->broken) {
		ssize_t n = send(l->client, at, len, MSG_NOSIGNAL);

		l->broken = n <= 0 && errno != EINTR;
		at += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

static void begin_flood(struct told *t, struct link *l, const unsigned char *data, size_t len)
{
	l->flood.packet.len = 0;
	bytes_append(&l->flood.packet, data, len);
	l->flood.len = t->length ? t->length : len;
	l->flood.number = l->number;
	l->flood.at = l->flood.sent = 0;
	l->flood.end_ms = now_ms() + FLOOD_MS;
}

void tell(struct told *t, const unsigned char *data, size_t len)
{
	struct link *l = t->link;
	unsigned char head[HEADER];

	begin_flood(t, l, data, len);
	put_header(head, t->length ? t->length : len, (unsigned char)(l->number++ + t->skew));
	if (t->flood)
		return;
	send_all(l, head, sizeof(head));
	send_all(l, data, len);
}

static size_t fill_flood(struct flood *f, unsigned char *ret, size_t room)
{
	size_t n = 0;

	while (n < room) {
		size_t whole = HEADER + f->len, part = 0;

		if (f->at < HEADER) {
			unsigned char head[HEADER];

			put_header(head, f->len, f->number);
			ret[n] = head[f->at];
			part = 1;
		} else {
			part = whole - f->at < room - n ? whole - f->at : room - n;
			if (f->len > f->packet.len)
				memset(ret + n, 0, part);
			else
				memcpy(ret + n, f->packet.data + f->at - HEADER, part);
		}
		n += part;
		f->at += part;
		if (f->at == whole) {
			f->at = 0;
			f->number++;
		}
	}
	return n;
}

bool link_flood(struct link *l, bool *ret_swallowed)
{
	unsigned char chunk[CHUNK];
	struct flood next = l->flood;
	size_t room = l->flood.pace ? l->flood.pace : sizeof(chunk);
	ssize_t n =
	        send(l->client, chunk, fill_flood(&next, chunk, room), MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	fill_flood(&l->flood, chunk, (size_t)n);
	l->flood.sent += (size_t)n;
	l->flood.next_ms = now_ms() + PACE_MS;
	*ret_swallowed = l->flood.sent >= FLOOD_BYTES && now_ms() > l->flood.end_ms;
	return !*ret_swallowed;
}
