/* Work that is to be done once an hour, by whichever machine comes first. Start this from cron or a
 * timer, every five minutes on every machine: it ends at once while another one is at work, or when
 * the work was done less than an hour ago. A run that fails, or dies, is made up for five minutes
 * later, and not an hour later.
 *
 *     once [SECONDS]        that many in place of an hour
 *
 * When the work was done last is in the server (table biz_run; `bizlock runs` shows it), and the
 * server's clock alone counts. Where the server is comes from the environment and the option files,
 * as in hello.c. Without code, `bizlock exec --at-most-once-per 1h --retry-failed` does the same.
 */
#define _POSIX_C_SOURCE 200809L
#include <bizlock.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const bizlock_key key = {"once", "hourly"};

static int fail(const bizlock *lock, int rc)
{
	fprintf(stderr, "%s: %s\n", bizlock_err_name(rc), bizlock_errmsg(lock));
	return rc;
}

/* The seconds since the work was done last. Stays as it is if it never was. */
static int read_age(void *arg, const bizlock_run *run)
{
	if (run->succeeded_us > 0)
		*(int64_t *)arg = (run->now_us - run->succeeded_us) / 1000000;
	if (run->outcome == BIZLOCK_RUN_DIED)
		printf("the last run died: %s\n", run->owner);
	return 0;
}

/* Your work. True: it is done. It looks at the lock before each step. */
static bool do_work(bizlock *lock)
{
	for (int step = 0; step < 2; step++) {
		if (bizlock_left_ms(lock, key, NULL) <= 0)
			return false;
		sleep(1);
	}
	return true;
}

/* Under the lock, so that nobody begins a run between the look and ours. BIZLOCK_OK, unless it
 * failed to do what is due. */
static int run_if_due(bizlock *lock, int64_t period_s)
{
	bizlock_run_result result = BIZLOCK_RUN_RESULT_INIT;
	int64_t age_s = INT64_MAX;
	int rc = bizlock_each_run(lock, key.biz_type, key.biz_id, read_age, &age_s);

	if (rc != BIZLOCK_OK)
		return fail(lock, rc);
	if (age_s < period_s) {
		printf("done %" PRId64 " s ago\n", age_s);
		return BIZLOCK_OK;
	}
	rc = bizlock_run_begin(lock, key, NULL);
	if (rc != BIZLOCK_OK)
		return fail(lock, rc);
	result.outcome = do_work(lock) ? BIZLOCK_RUN_DONE : BIZLOCK_RUN_FAILED;
	rc = bizlock_run_end(lock, key, NULL, &result);
	if (rc != BIZLOCK_OK)
		return fail(lock, rc);
	if (result.outcome != BIZLOCK_RUN_DONE)
		return BIZLOCK_LOST;
	printf("done\n");
	return BIZLOCK_OK;
}

int main(int argc, char **argv)
{
	int64_t period_s = argc > 1 ? strtoll(argv[1], NULL, 10) : 3600;
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock *lock = NULL;
	int rc = bizlock_new(&lock), released;

	setvbuf(stdout, NULL, _IOLBF, 0);
	opts.wait_ms = 0;
	if (rc == BIZLOCK_OK)
		rc = bizlock_open(lock);
	if (rc == BIZLOCK_OK)
		rc = bizlock_acquire(lock, key, &opts, NULL);
	if (rc == BIZLOCK_BUSY) {
		printf("at work elsewhere: %s\n", bizlock_errmsg(lock));
		rc = BIZLOCK_OK;
	} else if (rc != BIZLOCK_OK) {
		fail(lock, rc);
	} else {
		rc = run_if_due(lock, period_s);
		released = bizlock_release(lock, key, NULL, NULL);
		if (released != BIZLOCK_OK)
			rc = fail(lock, released);
	}
	bizlock_close(lock);
	return rc != BIZLOCK_OK;
}
