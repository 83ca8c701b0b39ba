/* A proxy between bizlock and the server that counts the MySQL packets which
 * clients send, can cut connections or keep the server's replies back, and does
 * harm at a chosen byte (fault.h).
 * The traffic must be plain: proxy_address() says so to db_open() and client_new(). */
#ifndef TEST_PROXY_H
#define TEST_PROXY_H

#include <stdbool.h>

#include "db.h"
#include "fault.h"

struct proxy;

/* Listens on `host`, an address of this machine such as 127.0.0.1. */
struct proxy *proxy_start(const struct server *upstream, const char *host);
void proxy_stop(struct proxy *p);

/* Where clients connect to. */
struct server proxy_address(const struct proxy *p);

/* Packets from clients so far: each was counted before it was passed on. */
unsigned proxy_packets(struct proxy *p);

/* Closes every connection there is; new ones are taken. Done on return. */
void proxy_cut(struct proxy *p);

/* The connections there are stay open, and nothing gets through any more, as behind a
 * firewall that has forgotten them; new ones are taken. Done on return. */
void proxy_forget(struct proxy *p);

/* While true, replies are kept back; requests go through. */
void proxy_hold_replies(struct proxy *p, bool hold);

/* Packets are counted anew from here on, and the trace begins anew. fault: for
 * the packets that follow; NULL: none, and what was for ever is over. */
void proxy_arm(struct proxy *p, const struct fault *fault);

/* From here on `from` becomes `to` in all that passes: of the same length, and in one piece
 * on the way, as short packets are. For statements that somebody in between forbids or
 * changes, and for what a server says of itself. Both texts must live on. */
void proxy_replace(struct proxy *p, const char *from, const char *to);

/* How often has it happened since? */
unsigned proxy_fired(struct proxy *p);

/* The packets since then. */
struct fault_trace proxy_trace(struct proxy *p);

/* Is something still under way that a FAULT_DELAY made late? */
bool proxy_is_late(struct proxy *p);

#endif
