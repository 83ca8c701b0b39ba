/* How a contender waits: asleep at a doorbell, with its key watched by another connection, or in a
 * pause. The mutex is let go of meanwhile. */
#ifndef BL_CLIENT_CONTEST_SLEEP_H
#define BL_CLIENT_CONTEST_SLEEP_H

#include "client/contest/contest.h"

/* Waits until the key in the way may be free, or until `until`. If the doorbell rang, it has also
 * tried for the rows. BL_AGAIN, or an answer of bl_attempt(). */
int bl_contest_sleep(struct bl_contest *c, bl_time until);

/* The same for a thread that has the doorbell already, or cannot sleep there: its key is
 * watched. */
int bl_contest_watch(struct bl_contest *c, bl_time until);

/* Pauses, longer each time, until `until` at most. BL_AGAIN. */
int bl_contest_pause(struct bl_contest *c, bl_time until);

/* A request thread sleeps at the doorbell for a request. BL_PARKED: no connection was left, or the
 * server refused; from then on the request is watched. */
int bl_contest_sleep_at_bell(struct bl_contest *c, bl_time until);

/* A request does not wait in bl_contest_sleep() and _pause(): it is BL_PARKED. A request that is
 * watched goes on by this function. BL_PARKED: nothing has happened. */
int bl_contest_unwatch(struct bl_contest *c);

#endif
