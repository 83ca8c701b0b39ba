#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/life.h"

#define NAME "@4121.00112233445566ff@app-1"
#define FILE_NAME "00112233445566ff"
#define OTHER "@4121.0a112233445566ff@app-1" /* begins as NAME, so that old files are found */

static char dir[] = "/dev/shm/bizlock-life-XXXXXX";
static char path[64];

static void begin(void)
{
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/%s", dir, FILE_NAME);
}

static void end(void)
{
	unlink(path);
	rmdir(dir);
}

TestSuite(life, .init = begin, .fini = end);

/* A process that had the life NAME has ended without closing it. */
static void leave_file(void)
{
	static struct bl_life life;
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(bl_life_begin(&life, dir, NAME) ? 0 : 1);
	waitpid(pid, &status, 0);
	cr_assert_eq(status, 0);
}

Test(life, is_over_when_its_process_is_gone)
{
	static struct bl_life mine;

	cr_assert(bl_life_begin(&mine, dir, OTHER));
	cr_expect(!bl_life_is_over(&mine, NAME), "there is no file");
	cr_expect(!bl_life_is_over(&mine, OTHER), "it lives");
	leave_file();
	cr_expect(bl_life_is_over(&mine, NAME));
	cr_expect(!bl_life_is_over(&mine, "@4121.00112233445566ff@app-2"), "another client");
	cr_expect(!bl_life_is_over(&mine, "@4121.../../x@app-2"));
	cr_expect(!bl_life_is_over(&mine, "@4121"));
	bl_life_end(&mine, false);
}

Test(life, a_text_that_was_changed_proves_nothing)
{
	static struct bl_life mine;
	int fd;

	cr_assert(bl_life_begin(&mine, dir, OTHER));
	leave_file();
	fd = open(path, O_WRONLY);
	cr_expect_eq(pwrite(fd, "B", 1, 0), 1);
	cr_expect(!bl_life_is_over(&mine, NAME));
	cr_expect_eq(pwrite(fd, "b", 1, 0), 1);
	cr_expect(bl_life_is_over(&mine, NAME));
	cr_expect_eq(lseek(fd, 0, SEEK_END) > 0 && write(fd, " ", 1) == 1, 1);
	cr_expect(!bl_life_is_over(&mine, NAME));
	close(fd);
	bl_life_end(&mine, false);
}

Test(life, a_link_is_not_followed)
{
	static struct bl_life mine;
	char moved[80];

	cr_assert(bl_life_begin(&mine, dir, OTHER));
	leave_file();
	snprintf(moved, sizeof(moved), "%s.moved", path);
	cr_assert(rename(path, moved) == 0 && symlink(moved, path) == 0);
	cr_expect(!bl_life_is_over(&mine, NAME));
	unlink(moved);
	bl_life_end(&mine, false);
}

Test(life, a_descriptor_keeps_it)
{
	static struct bl_life mine, its;
	int fd;

	cr_assert(bl_life_begin(&mine, dir, OTHER));
	cr_assert(bl_life_begin(&its, dir, NAME));
	fd = bl_life_descriptor(&its);
	cr_assert_geq(fd, 0);
	cr_expect_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	bl_life_end(&its, true);
	cr_expect(!bl_life_is_over(&mine, NAME));
	close(fd);
	cr_expect(bl_life_is_over(&mine, NAME));
	bl_life_end(&mine, false);
	cr_expect_eq(bl_life_descriptor(&mine), -1);
}

/* When the file cannot be removed: its user has changed, for example. */
Test(life, a_file_that_must_stay_loses_its_text)
{
	static struct bl_life mine, its;

	cr_assert(bl_life_begin(&mine, dir, OTHER));
	cr_assert(bl_life_begin(&its, dir, NAME));
	snprintf(its.dir, sizeof(its.dir), "%s/" FILE_NAME, dir); /* ENOTDIR */
	bl_life_end(&its, false);
	cr_expect_eq(access(path, F_OK), 0);
	cr_expect(!bl_life_is_over(&mine, NAME));
	bl_life_end(&mine, false);
}

static void set_age(time_t seconds)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - seconds}};

	cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* The row of a dead client may be there for as long as a lease. */
Test(life, the_file_of_the_dead_goes_a_day_after_it_was_found)
{
	static struct bl_life mine;
	struct stat st;

	leave_file();
	cr_assert(stat(path, &st) == 0 && st.st_mtime == 0);
	cr_assert(bl_life_begin(&mine, dir, OTHER));
	cr_assert(stat(path, &st) == 0 && st.st_mtime > 0, "found, but not removed");
	bl_life_end(&mine, false);
	set_age(24 * 60 * 60);
	cr_assert(bl_life_begin(&mine, dir, OTHER));
	cr_expect_eq(access(path, F_OK), 0);
	bl_life_end(&mine, false);
	set_age(26 * 60 * 60);
	cr_assert(bl_life_begin(&mine, dir, OTHER));
	cr_expect_neq(access(path, F_OK), 0);
	bl_life_end(&mine, false);
}

Test(life, the_file_of_the_living_stays)
{
	static struct bl_life mine, its;

	cr_assert(bl_life_begin(&its, dir, NAME));
	set_age(26 * 60 * 60);
	cr_assert(bl_life_begin(&mine, dir, OTHER));
	cr_expect_eq(access(path, F_OK), 0);
	bl_life_end(&mine, false);
	bl_life_end(&its, false);
	cr_expect_neq(access(path, F_OK), 0);
}

/* In a mount of its own: 0, or the errno of bl_life_begin(); -1: none could be made. */
static int begin_on(unsigned long flags, const char *options)
{
	static struct bl_life life;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) != 0 ||
		    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		    mount("none", dir, "tmpfs", flags, options) != 0)
			_exit(255);
		_exit(bl_life_begin(&life, dir, NAME) ? 0 : errno);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status) == 255 ? -1 : WEXITSTATUS(status);
}

Test(life, a_directory_that_is_full_or_read_only_has_no_file)
{
	if (begin_on(0, "") < 0)
		cr_skip_test("not here: no mount can be made");
	cr_expect_eq(begin_on(0, "mode=0700"), 0);
	cr_expect_eq(begin_on(0, "mode=0700,nr_inodes=1"), ENOSPC);
	cr_expect_eq(begin_on(MS_RDONLY, "mode=0700"), EROFS);
	cr_expect_eq(begin_on(0, "mode=0777"), EPERM);
	cr_expect_eq(begin_on(0, "mode=1777"), 0);
}

Test(life, a_file_system_that_is_not_local_is_not_trusted)
{
	static struct bl_life life;

	cr_expect(!bl_life_begin(&life, "/proc", NAME));
	cr_expect_eq(errno, EPERM);
	cr_expect_eq(*life.dir, '\0');
}

Test(life, nobody_is_not_trusted)
{
	static struct bl_life life;
	const uid_t nobody = 65534;

	if (geteuid() != 0)
		cr_skip_test("not here: only root becomes another user");
	cr_assert(chown(dir, nobody, nobody) == 0 && seteuid(nobody) == 0);
	cr_expect(!bl_life_begin(&life, dir, NAME));
	cr_expect_eq(errno, EPERM);
	cr_assert_eq(seteuid(0), 0);
	cr_assert(chown(dir, 1, 1) == 0 && seteuid(1) == 0);
	cr_expect(bl_life_begin(&life, dir, NAME));
	bl_life_end(&life, false);
	cr_assert_eq(seteuid(0), 0);
}
