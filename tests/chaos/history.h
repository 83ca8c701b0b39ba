/* What happened while a cluster was being broken, as its clients saw it. All times are of the
 * monotonic clock of the machine, in µs, which all processes share; 0: did not happen. */
#ifndef CHAOS_HISTORY_H
#define CHAOS_HISTORY_H

#include <stddef.h>
#include <stdint.h>

enum chaos_what { CHAOS_ACQUIRE, CHAOS_RELEASE, CHAOS_CLOSE };

/* One call on the library. */
struct chaos_call {
	int64_t begun_us, ended_us;
	uint32_t wait_ms;
	uint16_t process, key;
	uint8_t what, rc;
};

/* One hold, from its grant on. */
struct chaos_hold {
	uint64_t fence;
	int64_t asked_us, from_us; /* the acquisition was called; it returned */
	int64_t until_us;          /* before the last look that found time left; 0: none did */
	int64_t ends_us;           /* when the lease was to end, by that look */
	int64_t over_us;           /* after the first look that found none */
	int64_t told_us;           /* the library said that the hold is lost */
	int64_t given_us;          /* the release was called */
	int64_t answered_us;       /* it returned */
	uint32_t limit;            /* how many may share the key, 0: it is held alone */
	uint16_t process, key;
	uint8_t rc;      /* of the release, if given_us */
	uint8_t by_call; /* 1: without the library */
};

#define CHAOS_ANY UINT32_MAX /* a limit */

/* One fault, from before it until all nodes were members again. */
struct chaos_fault {
	int64_t begun_us, struck_us, mended_us; /* struck: since then it does its harm */
	uint8_t kind, node;
	uint32_t excused_ms; /* so long after its end it may still keep a whole cluster up */
};

struct chaos_history {
	const struct chaos_call *calls;
	size_t n_calls;
	const struct chaos_hold *holds;
	size_t n_holds;
	const struct chaos_fault *faults;
	size_t n_faults;
	unsigned keys;
	int64_t end_us; /* until when it was watched */
};

#endif
