/* Who the calling thread is. The kernel reuses thread ids; serials are never
 * reused in a process, so a new thread never passes for one that has ended. */
#ifndef BL_BASE_THREAD_H
#define BL_BASE_THREAD_H

#include <stdint.h>

struct bl_thread {
	uint64_t serial; /* > 0 */
	uint64_t tid;    /* the kernel's, for people who look */
};

struct bl_thread bl_thread_self(void);

#endif
