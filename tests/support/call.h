/* An acquisition, of one key or several, or a release, in a thread of its own, so that a
 * test can watch it wait. */
#ifndef TEST_CALL_H
#define TEST_CALL_H

#include <bizlock.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "keyset.h"

struct call {
	bizlock *b;
	bizlock_key key;
	struct keyset *set; /* instead of key, unless NULL */
	bool releases;
	bizlock_acquire_opts opts;
	bizlock_grant grant;
	int rc;
	int64_t ended; /* of now_ms() */
	char errmsg[512];
	_Atomic pid_t tid;
	atomic_bool done;
	pthread_t thread;
};

/* owner: a name, so that the test itself can release. */
void call_start(struct call *c, bizlock *b, const char *id, int64_t wait_ms, const char *owner);

/* In two steps, between which other options may be set. */
void call_prepare(struct call *c, bizlock *b, const char *id, int64_t wait_ms, const char *owner);
void call_go(struct call *c);

/* The same for all keys of a set, which has the grants then. */
void call_start_all(struct call *c, bizlock *b, struct keyset *set, int64_t wait_ms,
                    const char *owner);

/* A release by the owner that the call was started with. */
void call_start_release(struct call *c);

/* Waits until the call blocks: its thread sleeps, look after look. */
void call_blocks(const struct call *c);

/* Waits until it has returned; its code. */
int call_join(struct call *c);

#endif
