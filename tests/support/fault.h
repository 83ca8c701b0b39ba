/* What goes wrong between a client and the server, at which byte of which
 * packet; and a record of the packets that went by, from which such places are
 * found. Used by proxy.c, which moves the bytes. */
#ifndef TEST_FAULT_H
#define TEST_FAULT_H

#include <stdbool.h>
#include <stddef.h>

enum fault_side { FAULT_REQUESTS, FAULT_REPLIES };

enum fault_what {
	FAULT_NONE,
	FAULT_CUT,     /* the connection ends, in both directions at once */
	FAULT_SWALLOW, /* it stays open, but nothing more gets through on that side */
	FAULT_DELAY    /* the rest comes delay_ms later, even if its sender has gone */
};

struct fault {
	enum fault_what what;
	enum fault_side side;
	unsigned packet;   /* of that side, of all connections; 0: the first one that
	                      begins after the fault was armed */
	size_t byte;       /* the number of its bytes that get through, header included */
	unsigned delay_ms; /* of FAULT_DELAY */
	unsigned again;    /* fires once more, this number of packets later, at the same
	                      byte or at the end of a shorter packet; 0: fires once */
	bool for_ever;     /* not of FAULT_DELAY: it happens to all other connections as
	                      well, and to new ones at once, until disarmed */
};

/* Contenders that poll on a busy machine send hundreds. */
#define FAULT_TRACE_MAX 2048

/* Packets in the order in which their headers were complete. */
struct fault_trace {
	unsigned count;
	struct fault_packet {
		enum fault_side side;
		size_t size; /* header included */
	} packets[FAULT_TRACE_MAX];
};

struct fault_plan {
	struct fault fault;
	unsigned shots;    /* how often it has fired */
	unsigned begun[2]; /* packets of each side since it was armed */
	struct fault_trace trace;
};

/* Where one direction of one connection stands. All zero: at its beginning. */
struct fault_place {
	size_t at, size; /* bytes of the packet seen; all of it, once the header is known */
	unsigned number;
	unsigned char head[4]; /* length in three bytes, sequence number */
};

/* Follows n bytes. Returns how many of them get through before the fault fires; n if it does not.
 * *packets grows by the number of headers that were completed. */
size_t fault_follow(struct fault_plan *plan, enum fault_side side, struct fault_place *place,
                    const char *bytes, size_t n, unsigned *packets);

#endif
