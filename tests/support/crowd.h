/* Many processes that take, hold and give back a few keys, while somebody else
 * breaks what they depend on. Each also keeps a key of its own, for as long as it
 * can. They write down from when until when they believed to hold what; from that
 * the verdict is made: times on one machine's monotonic clock can be compared.
 *
 * A hold is believed in from when its acquisition had returned until just before
 * the last call of bizlock_left_ms() that was > 0. So what a process does not get
 * to do, because it is not scheduled, never counts, and no margin is needed. */
#ifndef TEST_CROWD_H
#define TEST_CROWD_H

#include <bizlock.h>
#include <stdbool.h>
#include <stdint.h>

#include "world.h"

struct crowd;

struct crowd_plan {
	unsigned processes, keys; /* keys that all want; "key-0" and so on */
	unsigned seed;
	uint32_t lease_ms, wait_ms;
	unsigned long_in;      /* one hold in that many is a long one */
	unsigned long_hold_ms; /* which lasts that long at most */
};

struct crowd_tale {
	unsigned long acquired, lost; /* holds */
	unsigned long codes[16];      /* what acquire and release answered */
	unsigned overlaps, backward;  /* two believed to hold a key; a fence was not larger */
	int64_t overlap_us, gap_us;   /* the longest; without any acquisition */
	unsigned long steps;          /* of the clock, that clients noticed */
	unsigned errors;              /* answers that nothing excuses; they are on stderr */
};

/* Returns when all have a client and have begun. options: for each client. */
struct crowd *crowd_start(const struct world *w, const struct crowd_plan *plan,
                          const char *const *options);

/* Everybody gives back what it has and waits, its client open. */
void crowd_pause(struct crowd *c);

/* While paused: what happened since the last call. */
struct crowd_tale crowd_tell(struct crowd *c);

void crowd_resume(struct crowd *c);

/* Waits until every key that all want was acquired again. How long it took, in
 * ms; -1: some were not, within ms. */
int64_t crowd_goes_on(struct crowd *c, int64_t ms);

/* Waits until each process holds the key of its own, and has renewed a lease since
 * it began. False: one does not, within ms. */
bool crowd_settles(struct crowd *c, int64_t ms);

/* Waits until so many steps of the clock were noticed since the last account, by
 * all clients together. False: fewer, within ms. */
bool crowd_notices(struct crowd *c, unsigned long steps, int64_t ms);

/* While a crowd with this plan is paused: a newcomer gets every key, each within
 * ms, and afterwards there is neither row nor doorbell. False, and the reason on
 * stderr. */
bool crowd_leaves_nothing(const struct crowd_plan *plan, const struct world *w, int64_t ms);

/* The id of a key, in ret. First those that all want, then one of each process. */
const char *crowd_key(char ret[16], unsigned key);

/* False: a process did not end well. */
bool crowd_end(struct crowd *c);

#endif
