/* Lanes that take and give back one key each, as threads of this process or as processes, and the
 * results. */
#ifndef BENCH_LANES_H
#define BENCH_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "../contenders/contender.h"
#include "hist.h"

#define LANES_MAX 256

struct lanes_plan {
	const struct contender *contender;
	unsigned lanes;
	bool one_key;   /* all want the same key */
	bool processes; /* a process each, not a thread */
	unsigned ms, hold_us;
};

struct lanes_tale {
	double seconds;
	uint64_t pairs, least, most; /* of all lanes; of the lane with the fewest, the most */
	uint64_t to_itself;          /* acquisitions by the one that had released last */
	struct hist pair, acquire, handover;
	int64_t longest_ns; /* longest wait; one that the end cut short counts, too */
	int64_t server_cpu_ms, own_cpu_ms; /* -1: not known */
	long long requests;                /* to the server; -1: not known */
};

/* Dies if two lanes ever hold the one key at the same time. ret: all zero before. */
void lanes_run(const struct lanes_plan *plan, struct lanes_tale *ret);

struct lanes_rest {
	double seconds;
	long long requests; /* -1: not known */
	int64_t server_cpu_ms, own_cpu_ms;
};

/* What it costs when one lane holds for plan->ms and the others wait. */
void lanes_rest(const struct lanes_plan *plan, struct lanes_rest *ret);

#endif
