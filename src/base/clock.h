/* Local time, deadlines, and waits until a deadline. There is one clock: CLOCK_BOOTTIME, which
 * never steps, and counts the time that a machine is suspended, as the server's clock does.
 * Deadlines are absolute; only the public functions take relative waits. */
#ifndef BL_BASE_CLOCK_H
#define BL_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define BL_NS_PER_MS 1000000LL
#define BL_NEVER INT64_MAX

typedef int64_t bl_time; /* nanoseconds of bl_now(); BL_NEVER: no deadline */

bl_time bl_now(void);

/* -1: BL_NEVER. Saturates. */
bl_time bl_deadline_in_ms(int64_t wait_ms);

/* Milliseconds left, rounded up, never negative; INT64_MAX for BL_NEVER. */
int64_t bl_left_ms(bl_time deadline);

int64_t bl_wall_us(void); /* the time of day: microseconds since 1970, UTC. It may step */

void bl_sleep(bl_time ns); /* a signal may end it early */
void bl_sleep_until(bl_time deadline);
bool bl_passed(bl_time deadline);
bl_time bl_earlier(bl_time a, bl_time b);
bl_time bl_later(bl_time a, bl_time b);

/* A condition variable for bl_cond_wait_until() only. 0 or an errno. */
int bl_cond_init(pthread_cond_t *cond);

/* false: the deadline has passed (the condition may be true nevertheless). */
bool bl_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mu, bl_time deadline);

#endif
