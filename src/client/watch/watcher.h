/* One connection that watches. All of this is the watch thread's own (watch.c). Functions are
 * entered with the client's mutex held, and let go of it while they send. */
#ifndef BL_CLIENT_WATCH_WATCHER_H
#define BL_CLIENT_WATCH_WATCHER_H

#include "client/watch/watch.h"

/* How soon to look at a key whose release rings no doorbell, or for which no connection has a
 * name. */
#define BL_SILENT_NS (200 * BL_NS_PER_MS)

struct bl_watcher {
	struct bl_conn *conn; /* NULL: none; then nothing else counts */
	struct bl_watched *items[BL_WATCH_MAX];
	size_t n;
	bool asleep;   /* its statement has no answer yet */
	bool called;   /* woken by us */
	bool grown;    /* it has keys that its sleep does not know */
	bool look;     /* before it sleeps again */
	bool missed;   /* it slept to the end: a key that is found free now was not told */
	bool told;     /* it was woken by a release */
	bl_time doubt; /* told, but all fences were there: a lock may rest (min_hold_ms), so at this
	                  time all keys are looked at; BL_NEVER: no doubt */
	bl_time distance;
	bl_time until; /* when its sleep is over; or when it goes, if it has nothing to watch */
};

/* One of b->watch.watchers gets a connection, if there is one. CONN, DB, NOMEM: none can be had.
 * The time to ask again is noted. */
int bl_watcher_open(struct bizlock *b);

/* Stops the watcher; its waiters poll. */
void bl_watcher_end(struct bizlock *b, struct bl_watcher *w);

/* It is awake: takes names, looks, gives up the names that are not needed, and sleeps again. */
void bl_watcher_tend(struct bizlock *b, struct bl_watcher *w);

/* The answer of its sleep is there, or will not come. */
void bl_watcher_awake(struct bizlock *b, struct bl_watcher *w, bool answers);

/* Wakes the watcher by another connection. If none is free soon, the watcher wakes when its sleep
 * ends. */
void bl_watcher_call(struct bizlock *b, struct bl_watcher *w);

#endif
