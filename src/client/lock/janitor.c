#include "client/lock/janitor.h"

#include "client/conn/heartbeat.h"
#include "client/conn/keepalive.h"
#include "client/lock/orphans.h"

static void *clean_always(void *arg)
{
	struct bizlock *b = arg;
	struct bl_worker *w = &b->janitor.worker;

	bl_lock(b);
	while (!w->stop) {
		bl_time idle_at, beat_at = bl_heartbeat_at(&b->pool), now = bl_now();
		struct bl_conn *conn = bl_keepalive_next(&b->pool, &idle_at);
		struct bl_hold *h = bl_orphans_next(b, &w->at);

		w->at = bl_earlier(w->at, bl_earlier(idle_at, beat_at));
		if (w->at > now) {
			bl_worker_sleep(w, &b->mu);
			continue;
		}
		w->at_work = true;
		if (beat_at <= now)
			bl_heartbeat_send(&b->pool);
		else if (idle_at <= now)
			bl_pool_ask(&b->pool, conn);
		else
			bl_orphan_clean(b, h);
		w->at_work = false;
	}
	bl_unlock(b);
	return NULL;
}

int bl_janitor_start(struct bizlock *b, struct bl_err *err)
{
	b->janitor = (struct bl_janitor){.failures = 0};
	b->pool.janitor = &b->janitor.worker;
	return bl_worker_start(&b->janitor.worker, clean_always, b, err);
}
