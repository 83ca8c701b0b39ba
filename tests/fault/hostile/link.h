/* One connection of a client's to the server, by way of relay.c. */
#ifndef TEST_LINK_H
#define TEST_LINK_H

#include "hostile.h"

struct bytes {
	unsigned char *data;
	size_t len, room;
};

/* One packet, again and again. */
struct flood {
	bool on;
	struct bytes packet; /* its payload; zeros if it is to be longer */
	size_t len, at, sent, pace;
	int64_t next_ms; /* when it may go on */
	int64_t end_ms;  /* when somebody should have had enough */
	unsigned char number;
};

struct link {
	int client, server;
	struct bytes request, reply; /* what has come of a packet */
	struct reply at;
	unsigned char shift; /* packets that were added to this reply */
	unsigned char number;
	bool broken;
	struct flood flood;
};

/* There is room for PACKET_ROOM bytes behind. */
void bytes_append(struct bytes *b, const void *data, size_t len);

/* Goes on with the flood, as far as the client takes it. False: it is over; *ret_swallowed: for the
 * client has taken more than anybody should. */
bool link_flood(struct link *l, bool *ret_swallowed);

#endif
