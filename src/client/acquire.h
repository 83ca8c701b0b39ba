/* The steps of an acquisition that one of a single key and one of a set share. */
#ifndef BL_CLIENT_ACQUIRE_H
#define BL_CLIENT_ACQUIRE_H

#include "client/contest.h"
#include "client/hold.h"

/* With the mutex held: the hold to work on, busy. One that is ACQUIRING is new.
 * BUSY, TIMEOUT, CANCELLED, NOMEM. */
int bl_acquire_begin(struct bl_call *call, bool once, struct bl_hold **ret);

/* BUSY was the answer, and the call may wait: does so for a moment. OK: try again; TIMEOUT,
 * CANCELLED. */
int bl_acquire_again(struct bl_call *call, unsigned attempt);

/* With the mutex held: done with it. What was not obtained goes, or is cleaned up
 * when its row may be there. */
void bl_acquire_end(struct bizlock *b, struct bl_hold *h);

/* With the mutex held: a new one is held from here on. */
void bl_acquire_settle(struct bizlock *b, struct bl_hold *h, const struct bl_won *won,
                       const struct bl_request *request);

/* One level deeper. BUSY: a transaction of the application's has fenced it. LOST, LIMIT, CONN,
 * UNKNOWN, DB. */
int bl_acquire_deeper(struct bl_call *call, struct bl_hold *h, const struct bl_request *request);

void bl_acquire_grant(const struct bl_hold *h, uint32_t lease_ms, bool took_over,
                      bizlock_grant *ret);

void bl_acquire_count(struct bl_numbers *n, const bizlock_grant *grant, bl_time began);
void bl_acquire_count_refused(struct bl_numbers *n, int rc);

#endif
