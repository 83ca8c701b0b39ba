#include <criterion/criterion.h>

#include "base/worker.h"

struct owner {
	pthread_mutex_t mu;
	struct bl_worker worker;
};

static void *sleep_always(void *arg)
{
	struct owner *o = arg;

	pthread_mutex_lock(&o->mu);
	while (!o->worker.stop) {
		o->worker.at = BL_NEVER;
		bl_worker_sleep(&o->worker, &o->mu);
	}
	pthread_mutex_unlock(&o->mu);
	return NULL;
}

/* A thread that is to stop later may still have something for it to do: its condition is gone. */
Test(worker, is_not_signalled_after_its_end)
{
	struct owner o = {.mu = PTHREAD_MUTEX_INITIALIZER};
	struct bl_err err;

	cr_assert_eq(bl_worker_start(&o.worker, sleep_always, &o, &err), BIZLOCK_OK);
	bl_worker_stop(&o.worker, &o.mu);
	o.worker.at = BL_NEVER;
	pthread_mutex_lock(&o.mu);
	bl_worker_by(&o.worker, 0);
	pthread_mutex_unlock(&o.mu);
	cr_assert_eq(o.worker.at, BL_NEVER);
}
