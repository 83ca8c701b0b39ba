/* The parts of the program cuts: what is done (scenario.c, ask.c) and by whom (bench.c), what must
 * be true afterwards (check.c), and where it can go wrong (points.c). */
#ifndef TEST_CUTS_H
#define TEST_CUTS_H

#include <bizlock.h>
#include <stdbool.h>
#include <stdint.h>

#include "proxy.h"
#include "world.h"

/* What happens at a point. It happens once, except for *_EVER and CUT_AGAIN. */
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

/* Times, in ms. Clients with a long timeout are for faults that are noticed at once: if they waited
 * for that timeout, they would be too late for this test. */
#define LEASE_MS 60000              /* much longer than anybody waits here */
#define HASTY_IO_MS 1000            /* the connectors know no shorter timeout */
#define PROMPT_MS 8000              /* for calls that need no timeout, on a busy machine */
#define SLACK_MS 3000               /* for a busy machine, beside timeouts */
#define DELAY_MS 20                 /* much shorter than a timeout */
#define LATE_MS (HASTY_IO_MS + 500) /* much longer */
#define SOON_MS 8000                /* for rows that are removed "as soon as the server is back" */

struct point {
	unsigned short scenario;
	bool off; /* queue=off */
	unsigned char what, side;
	unsigned packet, byte;
	unsigned again; /* of CUT_AGAIN: this number of packets later */
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
	bizlock *holders[2], *strangers[2]; /* by queue=off; without the proxy */
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
	struct row theirs;        /* the row of another owner */
	unsigned long long fence; /* the largest one that was seen of this key */
	int rc;                   /* what the client answered, and how fast */
	int64_t took_ms;
	char errmsg[512];
	unsigned told; /* how often, of a request */
	bool fired;
	struct fault_trace trace;
	char why[TEXT]; /* why the run failed; "": it did not */
};

enum kind { GAINS, HOLDS, SHUT_OUT, BREAKS, OPENS, CLOSES };

/* Alone, where others share it. */
#define AMONG 16u

struct scenario {
	const char *name;
	enum kind kind;
	unsigned before, after; /* depth of the client's hold, before and after success */
	int rc;                 /* success */
	void (*prepare)(struct run *);
	int (*act)(struct run *);
	bool cold; /* its connections were lost before */
	/* Of a lock that is shared: BIZLOCK_SHARED, or AMONG: how the client takes it. A stranger
	 * that is in its way holds it in another way, and strangers that try it want it alone. */
	uint32_t mode, limit;
};

extern const struct scenario scenarios[];
extern const unsigned scenario_count;

#define ME "me"
#define FIRST "first" /* of the same client, has it before */

void bench_open(struct bench *bench);
void bench_renew(struct bench *bench); /* after a failure: takes new clients and new keys */
void bench_close(struct bench *bench);

/* Returns when the server commits at once, or never seems to: a disk that stalls would be a second
 * fault, for which a client with HASTY_IO_MS has no time. */
void bench_await_commits(const struct bench *bench);

/* Sets r->b and r->me. */
void choose_client(struct run *r);

/* Prepares, acts and checks. ret->why tells what is wrong. */
void run_point(struct bench *bench, const struct point *point, struct run *ret);

/* Called after the act, when the fault is over. False: see ret->why. */
bool check_run(struct run *r);

/* By bizlock_async.h: an acquisition, one try, one whose holder releases meanwhile, a release, a
 * renewal. */
int ask_for(struct run *r), ask_once(struct run *r), ask_and_wait(struct run *r),
        ask_release(struct run *r), ask_renew(struct run *r);

int do_downgrade(struct run *r);

struct row row_now(const struct run *r);
int take(bizlock *b, struct run *r, const char *owner, int64_t wait_ms, bizlock_grant *ret);

/* All points, or a sample of them, and each scenario without a fault. only: the name of one
 * scenario, or NULL. Runs each scenario once. Returns how many points there are, at most max. */
unsigned find_points(struct point *ret, unsigned max, const char *only, bool all, unsigned seed);

/* A point as text, such as "acquire requests 0 4 cut auto" or, with its number, "cut-again:7"; and
 * back. */
const char *point_text(const struct point *p);
bool is_prompt(enum what what); /* the run ends without a timeout */
bool point_parse(struct point *ret, char **words);

#endif
