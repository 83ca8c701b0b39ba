/* Who the calling thread is. The kernel reuses thread ids; serials are never
 * reused in a process, so a new thread never passes for one that has ended. */
#ifndef BL_BASE_THREAD_H
#define BL_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct bl_thread {
	uint64_t serial; /* > 0 */
	uint64_t tid;    /* the kernel's, for people who look */
};

struct bl_thread bl_thread_self(void);

/* A number of this process, which a forked child has not: getpid() without asking the
 * kernel, which is most of what a re-entry in memory would take. */
uint64_t bl_process_mark(void);

/* Is that the mark of this process? A process id does not tell: a child in a namespace of
 * its own may have its parent's. `mark` is what bl_process_mark() has returned before.
 * Async-signal-safe. */
bool bl_process_is(uint64_t mark);

/* A thread that takes no signals: those are the program's. false: none can be had. */
bool bl_thread_start(pthread_t *ret, void *(*fn)(void *arg), void *arg);

/* Tells others whether a thread has ended. Shared; freed by the last drop. */
struct bl_token;

struct bl_token *bl_token_self(void); /* of the calling thread, to be dropped; NULL: no memory */
void bl_token_drop(struct bl_token *token);        /* takes NULL */
bool bl_token_ended(const struct bl_token *token); /* false for NULL */

#endif
