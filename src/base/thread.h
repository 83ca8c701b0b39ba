/* The identity of the calling thread, and of its process. The kernel reuses thread ids.
 * Serials are never reused in a process, so a new thread is never taken for one that
 * has ended. */
#ifndef BL_BASE_THREAD_H
#define BL_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct bl_thread {
	uint64_t serial;   /* > 0 */
	uint64_t tid;      /* the kernel's, for people who look, */
	char name[20 + 1]; /* and the same in decimal */
	uint8_t name_len;
};

/* The calling thread's. Valid until it ends or forks. */
const struct bl_thread *bl_thread_self(void);

/* A number that this process has, and a forked child of it has not. getpid() asks the
 * kernel, which would be most of what a re-entry in memory costs. */
uint64_t bl_process_stamp(void);

/* Is that the stamp of this process? `stamp`: what bl_process_stamp() has returned before.
 * A process id would not tell, because a child in a namespace of its own may have the same
 * one as its parent. Async-signal-safe. */
bool bl_process_is(uint64_t stamp);

/* Starts a thread that takes no signals: they are the program's. false: it could not. */
bool bl_thread_start(pthread_t *ret, void *(*fn)(void *arg), void *arg);

/* Tells others whether a thread has ended. They share it; the last drop frees it. */
struct bl_token;

struct bl_token *bl_token_self(void); /* of the calling thread, to be dropped; NULL: no memory */
void bl_token_drop(struct bl_token *token);        /* takes NULL */
bool bl_token_ended(const struct bl_token *token); /* false for NULL */

#endif
