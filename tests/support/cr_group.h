/* A group of three MySQL servers. */
#ifndef TEST_CR_GROUP_H
#define TEST_CR_GROUP_H

#include "cluster.h"
#include "cr_test.h"

extern struct cluster group;

/* Starts the group, and makes the world at member 0, which is the first primary. args: as of
 * cluster_start(). Skips where no group can be started. */
void group_begin(const char *args);
void group_end(void); /* for .fini */

/* All members that run have caught up with this one. */
void group_catches_up(int with);

/* Of a group with several primaries: member 0 applies nothing any more, until what this returns is
 * closed. For an ALTER TABLE of another member has to wait there, and nothing that comes after one
 * is applied before it. */
MYSQL *group_hold_up(void);

/* The world by way of that member. */
struct world group_world(int member);

/* A client of that member, to be closed by the test. */
bizlock *group_client(int member);

/* All members, for the option host. */
const char *group_hosts(void);

/* Another administrator, who works at that member. */
MYSQL *group_admin(int member);

#endif
