/* An event: one thread waits for it, another thread sets it, once. As soon as bl_event_wait() has
 * returned true, the memory is the waiter's again.
 *
 * It is a futex. With a mutex and a condition variable the woken thread wants the mutex before the
 * waking thread has released it, and sleeps again: that took a sixth of the client's processor
 * time, where each answer wakes a thread. */
#ifndef BL_BASE_EVENT_H
#define BL_BASE_EVENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct bl_event {
	_Atomic uint32_t is_set; /* 0: not set */
};

void bl_event_set(struct bl_event *e);

/* Whether the event was set. May return false before the deadline. */
bool bl_event_wait(struct bl_event *e, bl_time deadline);

#endif
