/* What one thread waits for, and another one sets, once. As soon as bl_event_wait() has answered
 * true, the memory is the waiter's again.
 *
 * It is one word that the kernel knows (futex). With a mutex and a condition variable the woken
 * thread wants the mutex before the waking thread has let go of it, and sleeps again: a sixth of
 * the client's processor time, where each answer wakes a thread. */
#ifndef BL_BASE_EVENT_H
#define BL_BASE_EVENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct bl_event {
	_Atomic uint32_t is_set; /* all-zero: it is not */
};

void bl_event_set(struct bl_event *e);

/* Was it set? false may also come before the deadline. */
bool bl_event_wait(struct bl_event *e, bl_time deadline);

#endif
