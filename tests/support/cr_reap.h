/* What tests of the reaper share. */
#ifndef TEST_CR_REAP_H
#define TEST_CR_REAP_H

#include "cr_test.h"
#include "stale.h"

#define HOUR_MS 3600000ll
#define OLD_MS (2 * HOUR_MS)
#define REAPER ((bizlock_key){BIZLOCK_REAPER_TYPE, BIZLOCK_REAPER_ID})

/* Reaps; the answer must be OK. opts: may be NULL. */
bizlock_reap_result reaped(bizlock *b, const bizlock_reap_opts *opts);

/* expect_reaped(b, NULL, .leases = 12, .passed_over = 1): reaps, and the result must have these
 * numbers of rows purged and passed over; those that are not named must be 0. */
#define expect_reaped(b, opts, ...)                                                                \
	expect_reaped_as((b), (opts), (bizlock_reap_result){__VA_ARGS__})
void expect_reaped_as(bizlock *b, const bizlock_reap_opts *opts, bizlock_reap_result want);

/* How many rows of a table (biz_lock, ...) have an id "prefix-...". */
long long left_of(const char *table, const char *prefix);

/* Is anybody reaping? */
bool reaper_is_at_work(void);

/* A progress function. It calls `act` at its at-th call (1, 2, ...), and returns `answer` from then
 * on. */
struct at_progress {
	unsigned at;
	void (*act)(void *arg);
	void *arg;
	int answer;

	/* seen: */
	unsigned calls;
	bizlock_reap_result last;
};

/* The initial options, with this progress function and this size of a batch. */
bizlock_reap_opts with_progress(struct at_progress *p, uint32_t batch);

/* bizlock_reap() in a thread. */
struct reap_thread {
	bizlock *b;
	bizlock_reap_opts opts;
	bizlock_reap_result result;
	int rc;
	char errmsg[512];
	atomic_bool done;
	pthread_t thread;
};

void reap_start(struct reap_thread *t, bizlock *b, const bizlock_reap_opts *opts);
int reap_join(struct reap_thread *t);

#endif
