/* The parts of the program cuts: what is done (cuts_scenario.c), what must be
 * true afterwards (cuts_check.c), and where it can go wrong (cuts_points.c). */
#ifndef TEST_CUTS_H
#define TEST_CUTS_H

#include <bizlock.h>
#include <stdbool.h>
#include <stdint.h>

#include "proxy.h"
#include "world.h"

/* What happens at a point: once, but for *_EVER and CUT_AGAIN. */
enum what {
	CUT,
	CUT_AGAIN,
	CUT_EVER,
	SWALLOW,
	SWALLOW_EVER,
	DELAY,
	LATE,
	NOTHING,
	WHATS = NOTHING
};

extern const char *const what_names[WHATS + 1];

/* Times, in ms. Patient clients are for what is noticed at once: should they
 * ever wait for a time-out, they are too late for this test. */
#define LEASE_MS 60000              /* much longer than anybody waits here */
#define HASTY_IO_MS 1000            /* the connectors know no shorter time-out */
#define PROMPT_MS 8000              /* for what needs no time-out, on a busy machine */
#define SLACK_MS 3000               /* for the machine, beside time-outs */
#define DELAY_MS 20                 /* much shorter than a time-out */
#define LATE_MS (HASTY_IO_MS + 500) /* much longer */
#define SOON_MS 8000                /* for what is cleaned up "as soon as the server is back" */

struct point {
	unsigned short scenario;
	bool off; /* queue=off */
	unsigned char what, side;
	unsigned packet, byte;
	unsigned again; /* of CUT_AGAIN: so many packets later */
};

enum { TEXT = 1152 };

/* What a process works with. */
struct bench {
	struct world world;
	struct proxy *proxy;
	struct {
		bizlock *b;
		char me[192];               /* ME's name in rows */
	} clients[2][2];                    /* by queue=off, by hastiness; NULL: to be opened */
	bizlock *holders[2], *strangers[2]; /* by queue=off; they go straight to the server */
	unsigned serial;                    /* of the next key */
};

struct run {
	struct bench *bench;
	const struct point *point;
	const struct scenario *scenario;
	bizlock *b; /* the client whose traffic suffers */
	bizlock *holder, *stranger;
	const char *me;
	char id[32];
	int64_t wait_ms; /* of an acquisition */
	bizlock_grant grant;
	struct row theirs;        /* what somebody else holds, or held */
	unsigned long long fence; /* the largest that was seen of this key */
	int rc;                   /* what the client answered, and how fast */
	int64_t took_ms;
	char errmsg[512];
	bool fired;
	struct fault_trace trace;
	char why[TEXT]; /* it failed; "": it did not */
};

enum kind { GAINS, HOLDS, SHUT_OUT, BREAKS, OPENS, CLOSES };

struct scenario {
	const char *name;
	enum kind kind;
	unsigned before, after; /* depth of the client's hold, before and after success */
	int rc;                 /* success */
	void (*prepare)(struct run *);
	int (*act)(struct run *);
	bool cold; /* its connections were lost before */
};

extern const struct scenario scenarios[];
extern const unsigned scenario_count;

#define ME "me"

void bench_open(struct bench *bench);
void bench_renew(struct bench *bench); /* after a failure: other clients, other keys */
void bench_close(struct bench *bench);

/* Does it all; what is wrong stands in ret->why. */
void run_point(struct bench *bench, const struct point *point, struct run *ret);

/* After the act, with the fault over. False: ret->why. */
bool check_run(struct run *r);

int take(bizlock *b, struct run *r, const char *owner, int64_t wait_ms, bizlock_grant *ret);

/* The points of the long form, or a sample, and each scenario undisturbed; `only`
 * one of them unless NULL. Runs them once. How many there are, of at most max. */
unsigned find_points(struct point *ret, unsigned max, const char *only, bool all, unsigned seed);

/* "acquire requests 0 4 cut auto", and back; "cut-again:7" with its number. */
const char *point_text(const struct point *p);
bool is_prompt(enum what what); /* over without a time-out */
bool point_parse(struct point *ret, char **words);

#endif
