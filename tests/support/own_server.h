/* A server of a test's own, by tests/support/server.sh: to be killed and
 * restarted, or started with arguments that suit nobody else. */
#ifndef TEST_OWN_SERVER_H
#define TEST_OWN_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "db.h"

struct own_server {
	char dir[256]; /* "": not started */
	struct server at;
	pid_t guard; /* kills the server if the test dies */
	int guard_fd;
};

/* False: BIZLOCK_SERVER_SH does not say how. */
bool own_server_possible(void);

/* args: options of the server, and before them NAME=value for its environment,
 * in one string of shell words; may be "". Fresh data, unless own_server_copy()
 * gave it some. Dies if it does not come up. */
void own_server_start(struct own_server *s, const char *args);

/* For the start of s: a copy of the data of `of`, which must be stopped. */
void own_server_copy(struct own_server *s, const struct own_server *of);

/* The path of libfaketime, for LD_PRELOAD; false: it is not installed. */
bool faketime_library(char *ret, size_t size);

/* For the server's environment: its clock is faked, and how long it waits is not. Without the
 * second one, libfaketime lets MySQL's waits end at once, and its threads spin on all processors.
 */
#define FAKETIME_REAL_WAITS "FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_FORCE_MONOTONIC_FIX=0"

/* Where the server of a folder of server.sh is. */
struct server own_server_address(const char *dir);

/* "stop", "kill", "restart", "freeze", "thaw": as server.sh has them. */
void own_server_do(struct own_server *s, const char *what);

/* Ends it and removes its data. Takes an all-zero struct. */
void own_server_end(struct own_server *s);

#endif
