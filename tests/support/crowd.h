/* Many processes that take, hold and give back a few keys, while the test breaks what they depend
 * on. Each process also keeps a key of its own, as long as it can. Each writes down from when to
 * when it believed to hold which key, on the machine's monotonic clock, which all share. The
 * verdict is made from that. A process believes in a hold from the return of the acquisition until
 * just before the last call of bizlock_left_ms() that was > 0. So the time in which a process is
 * not scheduled never counts, and no margin is needed. */
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
	unsigned long_in;      /* one hold in `long_in` is a long one */
	unsigned long_hold_ms; /* and lasts at most this long */
	const struct server
	        *servers; /* each process goes to the next of these; NULL: to the world's */
	unsigned servers_count;
};

struct crowd_tale {
	unsigned long acquired, lost; /* holds */
	unsigned long codes[16];      /* what acquire and release answered */
	unsigned overlaps, backward;  /* two believed to hold one key; a fence did not grow */
	int64_t overlap_us, gap_us;   /* longest overlap; longest time without an acquisition */
	unsigned long steps;          /* steps of the clock that clients noticed */
	unsigned errors;              /* answers that nothing excuses; they are on stderr */
};

/* Returns when all have a client and have begun. options: for each client. */
struct crowd *crowd_start(const struct world *w, const struct crowd_plan *plan,
                          const char *const *options);

/* Every process gives back what it holds, and waits with its client open. */
void crowd_pause(struct crowd *c);

/* While paused: what happened since the last call. */
struct crowd_tale crowd_tell(struct crowd *c);

void crowd_resume(struct crowd *c);

/* Waits until every key that all want was acquired again. Returns how long that took, in ms; -1: a
 * key was not acquired within `ms`. */
int64_t crowd_goes_on(struct crowd *c, int64_t ms);

/* Waits until each process holds the key of its own, and has renewed a lease since it began. False:
 * a process did not do so within `ms`. */
bool crowd_settles(struct crowd *c, int64_t ms);

/* Waits until all clients together have noticed `steps` steps of the clock since the last account.
 * False: they noticed fewer within `ms`. */
bool crowd_notices(struct crowd *c, unsigned long steps, int64_t ms);

/* While a crowd with this plan is paused: a newcomer gets every key, each within `ms`, and
 * afterwards neither a row nor a doorbell is left. If not: false, with the reason on stderr. */
bool crowd_leaves_nothing(const struct crowd_plan *plan, const struct world *w, int64_t ms);

/* The id of a key, in ret. The keys that all want come first, then one of each process. */
const char *crowd_key(char ret[16], unsigned key);

/* False: a process did not end well. */
bool crowd_end(struct crowd *c);

#endif
