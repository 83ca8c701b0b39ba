/* What a program that this process starts does not inherit. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <sys/resource.h>

#include "cr_test.h"

TestSuite(descriptors, .init = world_begin, .fini = world_end, .timeout = 240);

#define MOST 1024

static bool is_inherited(int fd)
{
	int flags = fcntl(fd, F_GETFD);

	return flags >= 0 && !(flags & FD_CLOEXEC);
}

/* A session that lives on in a child keeps its doorbells: all who wait for them would wait for the
 * child. */
Test(descriptors, are_closed_in_programs_that_are_started)
{
	static bool before[MOST];
	bizlock *a, *b;
	struct call call;

	for (int fd = 0; fd < MOST; fd++)
		before[fd] = is_inherited(fd);
	a = client_open(&world, OPTIONS("lease_ms", "1000"));
	b = client_open(&world, NULL);
	expect(OK, a, bizlock_acquire(a, KEY("k"), NULL, NULL));
	call_start(&call, b, "k", .wait_ms = -1, .owner = "task");
	call_blocks(&call);
	steadily(bizlock_left_ms(a, KEY("k"), NULL) > 0, 2000); /* the renewer has connected */
	for (int fd = 0; fd < MOST; fd++)
		cr_assert(before[fd] || !is_inherited(fd), "descriptor %d", fd);
	bizlock_interrupt(b);
	cr_assert_eq(call_join(&call), BIZLOCK_CANCELLED);
	bizlock_close(a);
	bizlock_close(b);
}
