/* One interface for all ways to lock, so that the same driver runs them all. A failure ends the
 * program. */
#ifndef BENCH_CONTENDER_H
#define BENCH_CONTENDER_H

#include <stdbool.h>

/* How a contender waits for many keys, numbered from 0, over the connections that its users would
 * take for that. */
struct contender_waits {
	/* Called in each process, before and after everything else. woken: NULL in a process that
	 * holds and never waits. loop: one thread waits for all keys, not one for each. */
	void (*begin)(unsigned keys, bool loop, void (*woken)(unsigned key));
	void (*end)(void);

	/* Takes the key, by the thread that will release it. False: woken(key) is called later, in
	 * any thread, when it is time to try again. */
	bool (*attempt)(unsigned key);
	void (*release)(unsigned key);

	long long (*requests)(void); /* as below */
	unsigned (*port)(void);      /* of the server, to count connections */
};

/* How a contender shares a key. */
struct contender_shared {
	bool limits; /* it can be shared by some at a time, and no more */
	bool alone;  /* it can be shared by any number, or had alone */

	/* Called after that of the contender. limit: 0 for any number. */
	void (*begin)(const char *key, unsigned limit);

	/* As those of a lock that nobody shares, in a lane of the same kind. */
	void (*acquire)(void *lane, bool alone);
	void (*release)(void *lane);
};

struct contender {
	const char *name;
	const char *wakes; /* how a waiter learns of a release; NULL: it has no way to wait */
	unsigned keys;     /* a lane takes so many at a time; 0: one */

	/* Called before and after everything else, in the process that has the lanes or forks the
	 * processes that have them. */
	void (*set_up)(void);
	void (*tear_down)(void);

	/* Called in each process that has lanes, before and after them. */
	void (*begin)(unsigned lanes);
	void (*end)(void);

	/* A lane: one thread that takes one key again and again, with a session of its own where
	 * the recipe has sessions. key: lives as long as the lane. */
	void *(*open)(const char *key);
	void (*acquire)(void *lane);
	void (*release)(void *lane);
	void (*close)(void *lane);

	/* The number of requests since the server started, with this one. NULL: nobody counts. */
	long long (*requests)(void);

	const struct contender_waits *waits;   /* NULL: not measured */
	const struct contender_shared *shared; /* NULL: it has no such lock */
};

/* NULL: unknown, or its client library was not there when this was built. */
const struct contender *contender_find(const char *name);

/* For functions that have nothing to do. */
void contender_idle(void);
void contender_idle_begin(unsigned lanes);

extern const struct contender contender_bizlock, contender_floor, contender_textbook,
        contender_get_lock, contender_redis, contender_redis_always, contender_etcd,
        contender_zookeeper, contender_limit;

/* BIZLOCK_BENCH_<name>, a port; dies if there is none. */
unsigned contender_port(const char *name);

#endif
