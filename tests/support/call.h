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

/* A field that is not named is zero: one try, by the thread that makes the call. */
struct call_args {
	const char *id;
	struct keyset *set; /* instead of id: all its keys; the set gets the grants */
	int64_t wait_ms;    /* -1: for ever */
	const char *owner;  /* a name, so that the test itself can release */
};

void call_prepare_with(struct call *c, bizlock *b, struct call_args args);
void call_start_with(struct call *c, bizlock *b, struct call_args args);

/* call_start(&c, b, "k", .wait_ms = -1, .owner = "task-1"): begins the call. */
#define call_start(c, b, ...) call_start_with((c), (b), (struct call_args){.id = __VA_ARGS__})
#define call_start_all(c, b, ...) call_start_with((c), (b), (struct call_args){.set = __VA_ARGS__})

/* The same in two steps, between which other options may be set. */
#define call_prepare(c, b, ...) call_prepare_with((c), (b), (struct call_args){.id = __VA_ARGS__})
void call_go(struct call *c);

/* Releases the key, by the owner that the call was started with. */
void call_start_release(struct call *c);

/* Waits until the call blocks: its thread is seen asleep many times in a row. */
void call_blocks(const struct call *c);

/* The same, or until it has returned: then false. */
bool call_blocks_or_ends(const struct call *c);

/* Waits until the call has returned; its code. */
int call_join(struct call *c);

/* From now on no thread writes to its call. For the end of a test, which may have failed. */
void calls_abandon(void);

#endif
