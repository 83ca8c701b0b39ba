/* The option `host`: one host, or several in the order of preference. */
#ifndef BL_CORE_HOSTS_H
#define BL_CORE_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct bl_host {
	char name[256]; /* "": the connector's default */
	uint32_t port;  /* 0: the option `port` */
};

/* "db1,db2:3307,[::1]:3308". An address with several colons needs the brackets
 * only when a port follows. INVALID: an empty name, a bad port, too long, a
 * bracket that is not one of a pair, something else behind the pair. */
int bl_hosts_check(const char *list, struct bl_err *err);

/* The next host of a checked list (NULL: the default host, once). *at: the list at
 * first; "" or NULL at its end. */
struct bl_host bl_hosts_next(const char **at);

bool bl_hosts_several(const char *list);

#endif
