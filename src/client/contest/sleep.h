/* How a contender spends the time in which it can do nothing: asleep at a doorbell, watched by
 * another connection, or in a pause. The mutex is let go of meanwhile. */
#ifndef BL_CLIENT_CONTEST_SLEEP_H
#define BL_CLIENT_CONTEST_SLEEP_H

#include "client/contest/contest.h"

/* Until the key in the way may be free, or until then; where it rang, it has gone for the rows.
 * BL_AGAIN, and what bl_attempt() answers. */
int bl_contest_sleep(struct bl_contest *c, bl_time until);

/* The same of a thread that has the doorbell already, or cannot sleep there: it is watched. */
int bl_contest_watch(struct bl_contest *c, bl_time until);

/* For a moment that grows from one to the next, until then at most. BL_AGAIN. */
int bl_contest_pause(struct bl_contest *c, bl_time until);

/* What a thread of requests does for one that is to sleep at the doorbell. Where no connection can
 * be had, or the server refuses, it is BL_PARKED, and watched from then on. */
int bl_contest_sleep_at_bell(struct bl_contest *c, bl_time until);

/* A request does not wait in bl_contest_sleep() and _pause(), but is BL_PARKED. One that is watched
 * goes on by this: BL_PARKED: nothing has happened. */
int bl_contest_unwatch(struct bl_contest *c);

#endif
