/* AddressSanitizer's allocator is not made for forks: a lock of it that another thread has at that
 * moment stays taken in the child for ever, and the child's next thread hangs before it has begun.
 * Threads of a client that has just been opened are at work on their first memory just then. So a
 * fork waits until all others sleep. The C library's own allocator needs no such thing, and other
 * builds fork where they are. */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "patience.h"

#if defined(__SANITIZE_ADDRESS__)
#define FORKS_WAIT 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FORKS_WAIT 1
#endif
#endif

#ifdef FORKS_WAIT
/* Some threads of a test may have work all the time. */
#define QUIET_MS 2000

static bool sleeps(const char *tid)
{
	char path[64], state = 'S';
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/stat", tid);
	stat = fopen(path, "re");
	if (!stat)
		return true; /* it has ended */
	if (fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
		state = 'S';
	fclose(stat);
	return state == 'S';
}

static bool others_sleep(void)
{
	DIR *tasks = opendir("/proc/self/task");
	bool quiet = true;

	if (!tasks)
		die("/proc/self/task cannot be read");
	for (const struct dirent *d; quiet && (d = readdir(tasks)) != NULL;)
		quiet = d->d_name[0] == '.' || strtol(d->d_name, NULL, 10) == gettid() ||
		        sleeps(d->d_name);
	closedir(tasks);
	return quiet;
}

static void wait_for_quiet(void)
{
	for (int64_t end = now_ms() + QUIET_MS; !others_sleep() && pause_before(end);)
		;
}

__attribute__((constructor)) static void make_forks_wait(void)
{
	if (pthread_atfork(wait_for_quiet, NULL, NULL) != 0)
		die("no memory for a handler of forks");
}
#endif
