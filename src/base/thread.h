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
	uint64_t tid;      /* the kernel's thread id, for people who read rows, */
	char name[20 + 1]; /* and the same in decimal */
	uint8_t name_len;
};

/* The calling thread's. Valid until it ends or forks. */
const struct bl_thread *bl_thread_self(void);

/* A number of this process that a forked child of it does not have. Cheaper than getpid(): that
 * system call would be most of the cost of a re-entry in memory. */
uint64_t bl_process_stamp(void);

/* Whether `stamp`, an earlier result of bl_process_stamp(), is that of this process. A process id
 * would not do: a child in a namespace of its own may have the same id as its parent.
 * Async-signal-safe. */
bool bl_process_is(uint64_t stamp);

/* The stack of a thread of the library. The default is the program's: 128 KiB with musl, and what
 * "ulimit -s" says with glibc. The library uses up to 84 KiB of it (tests/support/stacks.h measures
 * that in the tests); the rest is for callbacks of users. */
#define BL_THREAD_STACK (1024 * 1024)

/* Starts a thread that takes no signals: signals belong to the program. false: not started. */
bool bl_thread_start(pthread_t *ret, void *(*fn)(void *arg), void *arg);

/* A token tells other threads whether its thread has ended. It is shared; the last drop frees it.
 */
struct bl_token;

struct bl_token *bl_token_self(void); /* of the calling thread, to be dropped; NULL: no memory */
void bl_token_drop(struct bl_token *token);        /* takes NULL */
bool bl_token_ended(const struct bl_token *token); /* false for NULL */

#endif
