/* Reading the numbers: sizes of structs, buffers, and bad calls. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cr_test.h"

TestSuite(stats_api, .init = world_begin, .fini = world_end, .timeout = 240);

struct later_numbers {
	bizlock_numbers known;
	uint64_t added[4];
};

Test(stats_api, a_struct_of_a_later_version_is_zero_past_what_is_known)
{
	struct later_numbers n;
	bizlock *b = client(NULL);

	works(b);
	memset(&n, 0xee, sizeof(n));
	n.known.size = sizeof(n);
	expect(OK, b, bizlock_stats(b, &n.known));
	cr_assert_eq(n.known.size, sizeof(n));
	cr_assert_eq(n.known.acquired, 1);
	cr_assert_eq(n.known.released, 1);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(n.added[i], 0);
}

Test(stats_api, sizes_that_no_version_had)
{
	static const size_t sizes[] = {0, 8, sizeof(bizlock_numbers) - 1, 1 << 20};
	bizlock *b = client(NULL);
	bizlock_numbers n, before;

	memset(&n, 0xee, sizeof(n));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		n.size = sizes[i];
		before = n;
		expect(INVALID, b, bizlock_stats(b, &n));
		expect_message(b, "bizlock_numbers.size");
		cr_assert_eq(memcmp(&n, &before, sizeof(n)), 0);
	}
}

Test(stats_api, missing_arguments)
{
	bizlock *b = client(NULL);
	bizlock_numbers n = BIZLOCK_NUMBERS_INIT;
	char text[4096];
	size_t length = 4711;

	expect(INVALID, b, bizlock_stats(b, NULL));
	expect_message(b, "ret");
	expect(INVALID, b, bizlock_stats_prometheus(b, NULL, 4096, &length));
	expect_message(b, "ret");
	cr_assert_eq(length, 4711);
	cr_assert_eq(bizlock_stats(NULL, &n), BIZLOCK_INVALID);
	cr_assert_eq(bizlock_stats_prometheus(NULL, text, sizeof(text), NULL), BIZLOCK_INVALID);
}

/* ---- when there is nothing to ask ---------------------------------------------- */

static int ask(bizlock *b)
{
	bizlock_numbers n = BIZLOCK_NUMBERS_INIT;
	char text[4096];
	int rc = bizlock_stats(b, &n);

	return bizlock_stats_prometheus(b, text, sizeof(text), NULL) == rc ? rc : -1;
}

Test(stats_api, a_client_that_is_not_open)
{
	bizlock *b = client_new(&world, NULL);

	expect(MISUSE, b, ask(b));
	bizlock_close(b);
}

Test(stats_api, a_client_of_the_parent_process)
{
	bizlock *b = client(NULL);
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(ask(b));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == BIZLOCK_MISUSE, "%x", status);
	expect(OK, b, ask(b));
}

/* ---- the text -------------------------------------------------------------------- */

Test(stats_api, the_text_has_the_numbers)
{
	bizlock *b = client(NULL);
	char text[4096];
	size_t length;

	works(b);
	expect(OK, b, acquire(b, "held"));
	expect(OK, b, bizlock_stats_prometheus(b, text, sizeof(text), &length));
	cr_assert_eq(strlen(text), length);
	cr_assert(strstr(text, "\nbizlock_held 1\n"));
	cr_assert(strstr(text, "\nbizlock_acquired_total 2\n"));
	cr_assert(strstr(text, "\nbizlock_released_total 1\n"));
	cr_assert(strstr(text, "\nbizlock_wait_seconds_count 2\n"));
}

Test(stats_api, a_buffer_that_just_fits_and_one_that_does_not)
{
	bizlock *b = client(NULL);
	char text[4096], same[4096];
	size_t length, needed;

	expect(OK, b, bizlock_stats_prometheus(b, text, sizeof(text), &length));
	for (size_t size = 0; size <= length; size += length / 4) {
		memset(same, 'x', sizeof(same));
		expect(LIMIT, b, bizlock_stats_prometheus(b, same, size, &needed));
		cr_assert_eq(needed, length);
		cr_assert_eq(same[0], 'x');
		cr_assert_eq(memcmp(same, same + 1, sizeof(same) - 1), 0, "written to");
	}
	expect(LIMIT, b, bizlock_stats_prometheus(b, same, length, NULL));
	expect(OK, b, bizlock_stats_prometheus(b, same, needed + 1, NULL));
	cr_assert_str_eq(same, text);
	cr_assert_eq(same[needed + 1], 'x', "written past the end");
}
