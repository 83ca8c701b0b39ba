#include "base/event.h"

int bl_event_init(struct bl_event *ret)
{
	int rc = pthread_mutex_init(&ret->mu, NULL);

	ret->is_set = false;
	if (rc != 0)
		return rc;
	rc = bl_cond_init(&ret->is_set_now);
	if (rc != 0)
		pthread_mutex_destroy(&ret->mu);
	return rc;
}

void bl_event_destroy(struct bl_event *e)
{
	pthread_cond_destroy(&e->is_set_now);
	pthread_mutex_destroy(&e->mu);
}

/* The signal comes before the unlock: behind it the waiter may have destroyed both. */
void bl_event_set(struct bl_event *e)
{
	pthread_mutex_lock(&e->mu);
	e->is_set = true;
	pthread_cond_signal(&e->is_set_now);
	pthread_mutex_unlock(&e->mu);
}

bool bl_event_wait(struct bl_event *e, bl_time deadline)
{
	bool is_set;

	pthread_mutex_lock(&e->mu);
	if (!e->is_set)
		bl_cond_wait_until(&e->is_set_now, &e->mu, deadline);
	is_set = e->is_set;
	pthread_mutex_unlock(&e->mu);
	return is_set;
}
