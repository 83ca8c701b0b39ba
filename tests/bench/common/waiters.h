/* Waits for many keys, each by a thread, or all by one. */
#ifndef BENCH_WAITERS_H
#define BENCH_WAITERS_H

#include <stdatomic.h>

#include "../contenders/contender.h"

struct waiters_plan {
	const struct contender_waits *way;
	unsigned keys;
	bool loop;                 /* by one thread */
	atomic_uint *started;      /* counts those that are about to wait, or wait */
	void (*got)(unsigned key); /* called as soon as a key is taken, by any thread */
};

/* plan: as long as it waits. Between these two, as often as wanted: waits for all keys, each once,
 * and gives each back. */
void waiters_begin(const struct waiters_plan *plan);
void waiters_run(void);
void waiters_end(void);

#endif
