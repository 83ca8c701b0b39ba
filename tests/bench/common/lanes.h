/* Lanes that take and give back one key each, as threads of this process or as
 * processes, and what came of it. */
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
	bool one_key;   /* all want the same */
	bool processes; /* a process each, not a thread */
	unsigned ms, hold_us;
};

struct lanes_tale {
	double seconds;
	uint64_t pairs, least, most; /* of all; of the lane that got the least, the most */
	uint64_t to_itself;          /* acquisitions by the one that had released last */
	struct hist pair, acquire, handover;
	int64_t longest_ns;                /* wait, those that the end cut short among them */
	int64_t server_cpu_ms, own_cpu_ms; /* -1: not known */
	long long requests;                /* to the server; -1: not known */
};

/* Dies if two ever held the key of all at a time. ret: all zero before. */
void lanes_run(const struct lanes_plan *plan, struct lanes_tale *ret);

struct lanes_rest {
	double seconds;
	long long requests; /* -1: not known */
	int64_t server_cpu_ms, own_cpu_ms;
};

/* One lane holds for so long, the others wait: what that costs. */
void lanes_rest(const struct lanes_plan *plan, struct lanes_rest *ret);

#endif
