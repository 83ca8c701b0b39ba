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

/* Closes every present connection. New ones are taken. Done on return. */
void proxy_cut(struct proxy *p);

/* The present connections stay open, but nothing gets through them any more, as behind a firewall
 * that has forgotten them. New ones are taken. Done on return. */
void proxy_forget(struct proxy *p);

/* While true, replies are kept back; requests go through. */
void proxy_hold_replies(struct proxy *p, bool hold);

/* While true, who connects hears nothing. */
void proxy_hold_dials(struct proxy *p, bool hold);

/* The count of packets and the trace begin anew. fault: for the packets that follow; NULL: none,
 * and a fault that was for ever is over. */
void proxy_arm(struct proxy *p, const struct fault *fault);

/* From now on `from` becomes `to` in everything that passes. Both have the same length, and must
 * live until the proxy stops; `from` is found only where it arrives in one piece, as it does in
 * short packets. For statements that something on the way forbids or changes, and for what a server
 * says about itself. */
void proxy_replace(struct proxy *p, const char *from, const char *to);

/* Clients that connect from now on ask for CLIENT_FOUND_ROWS, as a proxy's own connections may. */
void proxy_find_rows(struct proxy *p);

/* How often it was found since then. */
unsigned proxy_replaced(struct proxy *p);

/* How often has the fault fired since proxy_arm()? */
unsigned proxy_fired(struct proxy *p);

/* The packets since proxy_arm(). */
struct fault_trace proxy_trace(struct proxy *p);

/* Are bytes still under way that a FAULT_DELAY made late? */
bool proxy_is_late(struct proxy *p);

#endif
