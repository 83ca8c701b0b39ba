#include "stacks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"

#define USED_MAX ((size_t)128 * 1024)
#define PATTERN 0xb1
#define OWN_FRAMES 1024 /* of what paints */

#ifdef MEASURE_STACKS
static const bool measures = true;
#else
static const bool measures = false;
#endif

static atomic_bool refuses;

void stacks_refuse_threads(void)
{
	atomic_store(&refuses, true);
}

struct start {
	void *(*fn)(void *arg);
	void *arg;
};

int __real_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *arg),
                          void *arg);

/* The lowest byte of the calling thread's stack. */
static unsigned char *stack_of_self(size_t *ret_size)
{
	pthread_attr_t attr;
	void *at = NULL;

	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		abort();
	pthread_attr_getstack(&attr, &at, ret_size);
	pthread_attr_destroy(&attr);
	return at;
}

static void report(size_t used)
{
	const char *path = getenv("BIZLOCK_TEST_STACKS");
	char line[32];
	int fd;

	if (used > USED_MAX) {
		fprintf(stderr, "a thread of the library has used %zu bytes of its stack\n", used);
		abort();
	}
	fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
	if (fd < 0)
		return;
	snprintf(line, sizeof(line), "%zu\n", used);
	if (write(fd, line, strlen(line)) < 0)
		perror(path);
	close(fd);
}

__attribute__((noinline)) static void paint(unsigned char *low)
{
	volatile unsigned char *end = (unsigned char *)__builtin_frame_address(0) - OWN_FRAMES;

	/* Not by memset(), whose frame would be below. */
	for (volatile unsigned char *at = low; at < end; at++)
		*at = PATTERN;
}

static void *run_painted(void *arg)
{
	struct start start = *(struct start *)arg;
	size_t size, clean = 0;
	unsigned char *low = stack_of_self(&size);
	void *ret;

	free(arg);
	paint(low);
	ret = start.fn(start.arg);
	while (low[clean] == PATTERN)
		clean++;
	report(size - clean);
	return ret;
}

int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *arg),
                          void *arg)
{
	struct start *start;
	size_t size = 0;
	int rc;

	if (atomic_load(&refuses))
		return EAGAIN;
	if (!measures || !attr || pthread_attr_getstacksize(attr, &size) != 0 ||
	    size != BL_THREAD_STACK)
		return __real_pthread_create(ret, attr, fn, arg);
	start = malloc(sizeof(*start));
	if (!start)
		return EAGAIN;
	*start = (struct start){.fn = fn, .arg = arg};
	rc = __real_pthread_create(ret, attr, run_painted, start);
	if (rc != 0)
		free(start);
	return rc;
}
