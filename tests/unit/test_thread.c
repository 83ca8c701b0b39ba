#include <criterion/criterion.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"

#define THREADS 64

static void *note_self(void *arg)
{
	struct bl_thread *ret = arg, again;

	*ret = *bl_thread_self();
	again = *bl_thread_self();
	if (again.serial != ret->serial || again.tid != ret->tid)
		ret->serial = 0;
	return NULL;
}

static void expect_distinct(const struct bl_thread *t, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		cr_expect_gt(t[i].serial, 0);
		for (size_t j = 0; j < i; j++)
			cr_expect_neq(t[i].serial, t[j].serial);
	}
}

/* What its owners are called. */
static bool is_named(const struct bl_thread *self)
{
	char name[32];

	snprintf(name, sizeof(name), "%llu", (unsigned long long)self->tid);
	return strcmp(self->name, name) == 0 && self->name_len == strlen(name);
}

Test(thread, is_the_kernels_thread)
{
	cr_expect(is_named(bl_thread_self()));
	cr_expect_eq(bl_thread_self()->tid, (uint64_t)syscall(SYS_gettid));
	cr_expect_eq(bl_thread_self()->serial, bl_thread_self()->serial);
}

/* One thread after the other: there the kernel and the C library often reuse ids. */
Test(thread, a_new_thread_never_passes_for_one_that_ended)
{
	struct bl_thread seen[THREADS];

	for (size_t i = 0; i < THREADS; i++) {
		pthread_t t;

		cr_assert_eq(pthread_create(&t, NULL, note_self, &seen[i]), 0);
		pthread_join(t, NULL);
	}
	expect_distinct(seen, THREADS);
}

Test(thread, threads_at_one_time_differ)
{
	struct bl_thread seen[THREADS];
	pthread_t t[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&t[i], NULL, note_self, &seen[i]), 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	expect_distinct(seen, THREADS);
}

Test(thread, a_forked_child_has_its_own_kernel_id)
{
	struct bl_thread parent = *bl_thread_self();
	int status;
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (child == 0) {
		struct bl_thread self = *bl_thread_self();

		_exit(self.tid == (uint64_t)getpid() && self.tid != parent.tid && is_named(&self)
		              ? 0
		              : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* From here on every madvise() of this process answers 0 and does nothing. */
static bool ignore_all_advice(void)
{
	struct sock_filter code[] = {
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 1),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static void expect_fork_is_seen(void)
{
	uint64_t stamp = bl_process_stamp();
	int status;
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (child == 0)
		_exit(bl_process_is(stamp) || bl_process_stamp() == stamp);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child passes for its parent");
	cr_expect(bl_process_is(stamp));
}

Test(thread, a_forked_child_is_another_process)
{
	expect_fork_is_seen();
}

Test(thread, a_forked_child_is_another_process_although_madvise_lies)
{
	if (!ignore_all_advice())
		cr_skip_test("not here: an emulator without seccomp");
	expect_fork_is_seen();
}

static void *note_stack(void *arg)
{
	size_t *ret = arg;
	pthread_attr_t attr;

	if (pthread_getattr_np(pthread_self(), &attr) == 0) {
		pthread_attr_getstacksize(&attr, ret);
		pthread_attr_destroy(&attr);
	}
	return NULL;
}

/* Whatever the program's default is: here less than the library uses. */
Test(thread, the_librarys_threads_have_a_stack_size_of_their_own)
{
	pthread_attr_t small;
	pthread_t thread;
	size_t size = 0;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, (size_t)64 * 1024);
	cr_assert_eq(pthread_setattr_default_np(&small), 0);
	pthread_attr_destroy(&small);
	cr_assert(bl_thread_start(&thread, note_stack, &size));
	pthread_join(thread, NULL);
	/* musl counts the guard page apart, and glibc within. */
	cr_expect_geq(size, BL_THREAD_STACK - (size_t)64 * 1024, "only %zu bytes", size);
}
