/* Sockets for proxy.c. */
#ifndef TEST_DIAL_H
#define TEST_DIAL_H

#include "db.h"

/* A connection to the server; -1: it failed. */
int dial(const struct server *at);

/* Listens on a free port of this address; dies if that fails. */
int listen_on(const char *host, unsigned *ret_port);

/* The next connection to that port; -1: it is gone already. */
int answer(int listener);

#endif
