#include "base/clock.h"

#include <time.h>

#define NS_PER_S 1000000000LL

/* Condition variables cannot use CLOCK_BOOTTIME. Ours use CLOCK_MONOTONIC, which stands still while
 * the machine is suspended. So waits are cut into slices: a deadline that passed during a
 * suspension is noticed at most a slice late. The extra wake-ups cost next to nothing. */
#define SLICE_NS NS_PER_S

static bl_time read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now); /* fails only for unknown clocks */
	return (bl_time)now.tv_sec * NS_PER_S + now.tv_nsec;
}

bl_time bl_now(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

int64_t bl_wall_us(void)
{
	return read_clock(CLOCK_REALTIME) / 1000;
}

bl_time bl_deadline_in_ms(int64_t wait_ms)
{
	bl_time now = bl_now();

	if (wait_ms == -1 || wait_ms > (BL_NEVER - now) / BL_NS_PER_MS)
		return BL_NEVER;
	return wait_ms < 0 ? now : now + wait_ms * BL_NS_PER_MS;
}

int64_t bl_left_ms(bl_time deadline)
{
	bl_time now, left;

	if (deadline == BL_NEVER)
		return INT64_MAX;
	now = bl_now();
	if (deadline <= now)
		return 0;
	left = deadline - now;
	return left / BL_NS_PER_MS + (left % BL_NS_PER_MS != 0);
}

void bl_sleep(bl_time ns)
{
	struct timespec pause = {ns / NS_PER_S, (long)(ns % NS_PER_S)};

	nanosleep(&pause, NULL);
}

void bl_sleep_until(bl_time deadline)
{
	while (!bl_passed(deadline))
		bl_sleep(deadline - bl_now());
}

bool bl_passed(bl_time deadline)
{
	return deadline != BL_NEVER && deadline <= bl_now();
}

bl_time bl_earlier(bl_time a, bl_time b)
{
	return a < b ? a : b;
}

bl_time bl_later(bl_time a, bl_time b)
{
	return a > b ? a : b;
}

int bl_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	int rc = pthread_condattr_init(&attr);

	if (rc != 0)
		return rc;
	rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	if (rc == 0)
		rc = pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
	return rc;
}

bool bl_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mu, bl_time deadline)
{
	bl_time now = bl_now(), until;
	struct timespec when;

	if (deadline == BL_NEVER) {
		pthread_cond_wait(cond, mu);
		return true;
	}
	if (deadline <= now)
		return false;
	until = read_clock(CLOCK_MONOTONIC) + bl_earlier(deadline - now, SLICE_NS);
	when.tv_sec = (time_t)(until / NS_PER_S);
	when.tv_nsec = (long)(until % NS_PER_S);
	pthread_cond_timedwait(cond, mu, &when);
	return !bl_passed(deadline);
}
