#include "base/thread.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The one variable of the process: serials must be told apart across clients
 * and threads alike. It only counts; nothing has to be set up or torn down. */
static _Atomic uint64_t last_serial;

/* 0: this thread has not been asked yet. */
static _Thread_local uint64_t own_serial;

struct bl_thread bl_thread_self(void)
{
	struct bl_thread ret;

	if (own_serial == 0)
		own_serial = atomic_fetch_add(&last_serial, 1) + 1;
	ret.serial = own_serial;
	ret.tid = (uint64_t)syscall(SYS_gettid); /* not kept: a fork changes it */
	return ret;
}
