#include "base/worker.h"

#include "base/thread.h"

int bl_worker_start(struct bl_worker *w, void *(*run)(void *arg), void *arg, struct bl_err *err)
{
	if (bl_cond_init(&w->wake) != 0)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	w->running = bl_thread_start(&w->thread, run, arg);
	if (w->running)
		return BIZLOCK_OK;
	pthread_cond_destroy(&w->wake);
	return bl_err_set(err, BIZLOCK_NOMEM, "no thread can be started");
}

void bl_worker_stop_soon(struct bl_worker *w)
{
	w->stop = true;
	pthread_cond_signal(&w->wake);
}

void bl_worker_stop(struct bl_worker *w, pthread_mutex_t *mu)
{
	if (!w->running)
		return;
	pthread_mutex_lock(mu);
	bl_worker_stop_soon(w);
	pthread_mutex_unlock(mu);
	pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->wake);
	w->running = false;
}

void bl_worker_join(struct bl_worker *w)
{
	if (!w->running || !w->ends)
		return;
	pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->wake);
	*w = (struct bl_worker){.running = false};
}

/* Once w->stop is set, w->wake may be destroyed at any time: another thread that still runs must
 * not signal it. */
void bl_worker_by(struct bl_worker *w, bl_time when)
{
	if (w->stop || when >= w->at)
		return;
	w->at = when;
	pthread_cond_signal(&w->wake);
}

void bl_worker_sleep(struct bl_worker *w, pthread_mutex_t *mu)
{
	while (!w->stop && !bl_passed(w->at))
		bl_cond_wait_until(&w->wake, mu, w->at);
}
