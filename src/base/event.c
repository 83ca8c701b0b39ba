#define _GNU_SOURCE 1 /* syscall() */
#include "base/event.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A wait is cut into slices of a second. The clock is read after each slice, because the kernel's
 * timeout does not count the time that the machine is suspended. */
#define NS_PER_S (1000 * BL_NS_PER_MS)

/* The kernel's struct timespec: that of a C library may have more bits. */
struct kernel_time {
	long s, ns;
};

/* After the store the waiter may free the memory, and another futex may use it. Then the system
 * call wakes nobody, or a thread that checks its own condition again, as all waiters do. */
void bl_event_set(struct bl_event *e)
{
	atomic_store_explicit(&e->is_set, 1, memory_order_release);
	syscall(SYS_futex, &e->is_set, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static bool is_set(struct bl_event *e)
{
	return atomic_load_explicit(&e->is_set, memory_order_acquire) != 0;
}

bool bl_event_wait(struct bl_event *e, bl_time deadline)
{
	bl_time left = NS_PER_S;
	struct kernel_time pause;

	if (is_set(e))
		return true;
	if (deadline != BL_NEVER)
		left = bl_earlier(deadline - bl_now(), NS_PER_S);
	if (left <= 0)
		return false;
	pause.s = (long)(left / NS_PER_S);
	pause.ns = (long)(left % NS_PER_S);
	syscall(SYS_futex, &e->is_set, FUTEX_WAIT_PRIVATE, 0, &pause, NULL, 0);
	return is_set(e);
}
