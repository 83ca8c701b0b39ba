/* What one thread waits for, and another one sets, once. It has a mutex of its own, so that to set
 * it needs no other; as soon as bl_event_wait() has answered true, the memory is the waiter's
 * again. */
#ifndef BL_BASE_EVENT_H
#define BL_BASE_EVENT_H

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"

struct bl_event {
	pthread_mutex_t mu;
	pthread_cond_t is_set_now;
	bool is_set;
};

int bl_event_init(struct bl_event *ret); /* 0 or an errno */
void bl_event_destroy(struct bl_event *e);

void bl_event_set(struct bl_event *e);

/* Was it set? false may also come before the deadline. */
bool bl_event_wait(struct bl_event *e, bl_time deadline);

#endif
