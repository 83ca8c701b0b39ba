/* HAProxy or MySQL Router between clients and servers, configured as docs/clusters.md tells. It
 * dies with the test. */
#ifndef TEST_CR_BETWEEN_H
#define TEST_CR_BETWEEN_H

#include "cr_test.h"

struct between {
	pid_t pid; /* 0: not started */
	char dir[64];
	struct server at; /* where clients connect to */
};

/* Skip where the program is not. */
void need_haproxy(void);
void need_router(void);

/* Starts HAProxy before n servers. balance: "roundrobin"; or "first", with which the others are
 * for when the ones before them are down. idle: its timeouts of client and server, such as "2s". */
void haproxy_start(struct between *x, const struct server *servers, unsigned n, const char *balance,
                   const char *idle);

/* Settings of a route of Router's that lets TLS through. */
#define ROUTER_TRANSPARENT "client_ssl_mode=PASSTHROUGH\nserver_ssl_mode=AS_CLIENT"

/* Starts Router before n servers. more: settings of the route, a line each. */
void router_start(struct between *x, const struct server *servers, unsigned n, const char *strategy,
                  const char *more);

/* Takes an all-zero one. */
void between_end(struct between *x);

/* The world, by way of it. */
struct world world_behind(const struct between *x);

/* A client by this way, to be closed by the test. */
bizlock *client_behind(const struct between *x, const char *const *options);

#endif
