/* A proxy between bizlock and the server that counts the MySQL packets which
 * clients send, and can cut connections or keep the server's replies back.
 * The traffic must be plain: clients connect with ssl_mode=disabled. */
#ifndef TEST_PROXY_H
#define TEST_PROXY_H

#include <stdbool.h>

#include "db.h"

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

/* While true, replies are kept back; requests go through. */
void proxy_hold_replies(struct proxy *p, bool hold);

#endif
