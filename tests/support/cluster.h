/* Three servers together, by tests/support/cluster.sh: Galera where MariaDB is, a group of MySQL
 * where MySQL is. They end with the process that started them. */
#ifndef TEST_CLUSTER_H
#define TEST_CLUSTER_H

#include <stdbool.h>

#include "db.h"

#define CLUSTER_NODES 3

struct cluster {
	char dir[256]; /* "": not started */
	bool is_group, has_one_primary;
	bool is_apart; /* "cut", "join", "fill" and "empty" are possible */
	struct server
	        nodes[CLUSTER_NODES]; /* by socket; their host and port are those for clients */
};

/* False: BIZLOCK_SERVER_SH does not say how, or Galera is not installed. */
bool cluster_possible(void);

/* True: what cluster_start() would start is a group. */
bool cluster_is_group(void);

/* From now on this process has a network and mounts of its own, which --apart asks for. To be
 * called before there are threads and children. False: it may not have them, or `ip` is missing. */
bool cluster_set_apart(void);

/* args: options of cluster.sh start, in one string of shell words. Dies if it does not come up. */
void cluster_start(struct cluster *c, const char *args);

/* "kill", "freeze", "thaw", "rejoin", "primary" and so on, as cluster.sh has them. Nodes are 0 to 2
 * here. False: it failed; why is on stderr. */
bool cluster_do(const struct cluster *c, const char *what, unsigned node);

/* Of a group with one primary: which node that is; -1: none of those that answer. */
int cluster_primary(const struct cluster *c);

/* Its files, of which one for each node says what the server complained about. */
void cluster_show(const struct cluster *c);

/* Takes an all-zero struct. */
void cluster_end(struct cluster *c);

#endif
