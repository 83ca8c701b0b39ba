/* At most N starts a second, of all processes on all machines together: calls to somebody's API,
 * for example, which allows no more.
 *
 *     limiter N [STARTS]        starts something STARTS times (10), and says when
 *
 * N owners may share the lock, and a slot that is released rests until a second after it was taken
 * (min_hold_ms): so in any second there are N grants at most. Where the server is comes from the
 * environment and the option files, as in hello.c. Each start costs a few round trips and two
 * commits: this is for tens a second, not for thousands. */
#define _POSIX_C_SOURCE 200809L
#include <bizlock.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const bizlock_key key = {"limiter", "api"};

static bizlock *lock; /* here for the signal handler */

static void on_signal(int number)
{
	(void)number;
	bizlock_stop(lock, 1); /* who waits for a slot need not wait to the end */
}

/* Your call. It has begun when it is counted; how long it takes does not matter. */
static void start(uint32_t slot)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	printf("%lld.%03ld slot %" PRIu32 "\n", (long long)now.tv_sec, now.tv_nsec / 1000000, slot);
}

/* One start, when it is its turn. */
static int start_in_turn(uint32_t limit)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	int rc;

	opts.flags = BIZLOCK_SHARED;
	opts.limit = limit;
	opts.min_hold_ms = 1000;
	opts.lease_ms = 5000; /* for so long, a process that dies here costs a slot */
	rc = bizlock_acquire(lock, key, &opts, &grant); /* waits for ever */
	if (rc != BIZLOCK_OK)
		return rc;
	start(grant.slot);
	return bizlock_release(lock, key, NULL, NULL); /* the slot rests from here on */
}

int main(int argc, char **argv)
{
	unsigned long limit = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	unsigned long starts = argc > 2 ? strtoul(argv[2], NULL, 10) : 10;
	int rc;

	if (limit < 1 || limit > 1000) {
		fprintf(stderr, "usage: limiter N [STARTS]; N: 1 to 1000 a second\n");
		return 64;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	rc = bizlock_new(&lock);
	if (rc == BIZLOCK_OK)
		rc = bizlock_open(lock);
	if (rc == BIZLOCK_OK) {
		signal(SIGTERM, on_signal);
		signal(SIGINT, on_signal);
	}
	while (rc == BIZLOCK_OK && starts-- > 0)
		rc = start_in_turn((uint32_t)limit);
	if (rc != BIZLOCK_OK && rc != BIZLOCK_CANCELLED)
		fprintf(stderr, "%s: %s\n", bizlock_err_name(rc), bizlock_errmsg(lock));
	signal(SIGTERM, SIG_DFL); /* bizlock_stop() must not be called from here on */
	signal(SIGINT, SIG_DFL);
	bizlock_close(lock);
	return rc != BIZLOCK_OK && rc != BIZLOCK_CANCELLED;
}
