/* A process with requests under way forks: the child is refused, and the parent goes on. */
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cr_ask.h"

TestSuite(async_fork, .init = world_begin, .fini = world_end, .timeout = 240);

static void never(void *arg, const bizlock_result *result)
{
	(void)result;
	*(int *)arg = 1;
}

/* In the child: 0, or the number of what should have been refused. */
static int try_to_disturb(const struct ask *waits, bool close_it)
{
	bizlock *b = waits->b;
	bizlock_acquire_opts opts = OPTS(.owner = "child");
	int called = 0;

	if (bizlock_cancel(b, waits->request) != BIZLOCK_MISUSE)
		return 7;
	if (bizlock_acquire_start(b, KEY("k"), &opts, never, &called, NULL) != BIZLOCK_MISUSE)
		return 1;
	if (bizlock_release_start(b, KEY("own"), "task", never, &called, NULL) != BIZLOCK_MISUSE)
		return 2;
	if (bizlock_dispatch(b, NULL) != BIZLOCK_MISUSE)
		return 3;
	if (bizlock_fd(b) != -1)
		return 4;
	if (waits->calls != 0)
		return 5;
	if (close_it)
		bizlock_close(b);
	return called ? 6 : 0;
}

/* One request waits, one lock is held and one is granted, but not told, when the child is made. */
static void survives_a_child(bool close_it)
{
	bizlock *other = client(NULL), *b = client(NULL);
	struct ask waits, held, untold;
	int status;
	pid_t pid;

	expect(OK, other, acquire_as(other, "k", "other"));
	ask_once(&held, b, "own", "task");
	ask_ends(OK, &held);
	ask_for(&waits, b, "k", "task", .wait_ms = -1);
	ask_once(&untold, b, "untold", "task");
	eventually(is_readable(b));
	pid = fork();
	if (pid == 0)
		_exit(try_to_disturb(&waits, close_it));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0, "%d", WEXITSTATUS(status));
	cr_assert_eq(untold.calls, 0);
	ask_ends(OK, &untold);
	cr_assert_eq(waits.calls, 0);
	expect(OK, b, bizlock_verify(b, KEY("own"), "task"));
	ask_release(&held);
	ask_ends(OK, &held);
	expect(OK, other, bizlock_release(other, KEY("k"), "other", NULL));
	ask_ends(OK, &waits);
	ask_release(&waits);
	ask_ends(OK, &waits);
}

Test(async_fork, a_child_that_closes_does_not_disturb)
{
	survives_a_child(true);
}

Test(async_fork, a_child_that_only_ends_does_not_disturb)
{
	survives_a_child(false);
}

/* It has a client of its own, and with that it is a process like any other. */
Test(async_fork, a_child_may_have_its_own)
{
	bizlock *b = client(NULL);
	struct ask held;
	int status;
	pid_t pid;

	ask_once(&held, b, "k", "task");
	ask_ends(OK, &held);
	pid = fork();
	if (pid == 0) {
		bizlock *own = client_open(&world, NULL);
		struct ask mine, busy;

		ask_once(&busy, own, "k", "task");
		ask_ends(BUSY, &busy);
		ask_once(&mine, own, "mine", "task");
		ask_ends(OK, &mine);
		bizlock_close(own);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	cr_assert_not(row_of(&world, KEY("mine")).there);
	expect(OK, b, bizlock_verify(b, KEY("k"), "task"));
	ask_release(&held);
	ask_ends(OK, &held);
}
