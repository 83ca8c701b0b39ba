#include "base/life.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define NONCE_LEN 16
#define TEXT_MAX 320
#define PATH_SIZE (PATH_MAX + NONCE_LEN + 1)

#ifndef ZFS_SUPER_MAGIC
#define ZFS_SUPER_MAGIC 0x2fc12fc1
#endif

/* ---- what may be trusted ------------------------------------------------------------------- */

/* A network file system can lose a lock while its owner lives. */
static bool is_local(int fd)
{
	static const uint32_t local[] = {TMPFS_MAGIC,     RAMFS_MAGIC,          EXT4_SUPER_MAGIC,
	                                 XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,    F2FS_SUPER_MAGIC,
	                                 ZFS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC};
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return false;
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		if ((uint32_t)fs.f_type == local[i])
			return true;
	return false;
}

/* In a user namespace, files of all users who are not known there seem to belong to this one. */
#define NOBODY 65534

static bool is_trusted(uid_t owner)
{
	return owner == 0 || (owner == geteuid() && owner != NOBODY);
}

/* Others may make files in a directory with the sticky bit, but cannot remove ours. */
static bool check_dir(int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return false;
	if (is_trusted(st.st_uid) &&
	    (!(st.st_mode & (S_IWGRP | S_IWOTH)) || st.st_mode & S_ISVTX) && is_local(fd))
		return true;
	errno = EPERM;
	return false;
}

/* ---- names and texts ----------------------------------------------------------------------- */

/* The nonce of "@pid.nonce@host"; NULL: `name`, which may come from a row, has none. */
static const char *nonce_of(const char *name)
{
	const char *nonce = strchr(name, '.');

	if (!nonce || strspn(++nonce, "0123456789abcdef") != NONCE_LEN || nonce[NONCE_LEN] != '@')
		return NULL;
	return nonce;
}

/* false: `name` has no nonce, or there is no directory. */
static bool make_path(const struct bl_life *life, const char *name, char ret[PATH_SIZE])
{
	const char *nonce = nonce_of(name);

	return nonce && *life->dir &&
	       snprintf(ret, PATH_SIZE, "%s/%.*s", life->dir, NONCE_LEN, nonce) < PATH_SIZE;
}

/* The text that the file `fd` of the client `name` must have; its length, 0: none. */
static size_t make_text(const struct bl_life *life, int fd, const char *name, char ret[TEXT_MAX])
{
	struct stat st;
	int len;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || !is_trusted(st.st_uid))
		return 0;
	len = snprintf(ret, TEXT_MAX, "bizlock %s %" PRIuMAX ":%" PRIuMAX " %s\n", life->boot,
	               (uintmax_t)st.st_dev, (uintmax_t)st.st_ino, name);
	return len < TEXT_MAX ? (size_t)len : 0;
}

/* Is this the very file that the client `name` has made since this machine was booted? */
static bool is_genuine(const struct bl_life *life, int fd, const char *name)
{
	char expected[TEXT_MAX], found[TEXT_MAX];
	size_t len = make_text(life, fd, name, expected);

	return len > 0 && pread(fd, found, sizeof(found), 0) == (ssize_t)len &&
	       memcmp(expected, found, len) == 0;
}

/* ---- locks ---------------------------------------------------------------------------------- */

/* All processes of a client have read locks: so they do not exclude each other. */
static bool lock(int fd)
{
	struct flock whole = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_SETLK, &whole) == 0;
}

/* Only asks: a lock taken for a test would make other tests fail. */
static bool is_free(int fd)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type == F_UNLCK;
}

/* ---- files of the dead ---------------------------------------------------------------------- */

#define ENTRIES_MAX 4096      /* of the directory that one client looks at, */
#define TESTS_MAX 16          /* and files that it opens */
#define DEAD_S (25 * 60 * 60) /* longer than any lease, and so longer than a proof is needed */

/* The file of a dead client is still needed as a proof. So its time says when it was first found
 * without a lock; up to then it is 0. */
static void test_age(const struct bl_life *life, int dir, const char *nonce)
{
	char text[TEXT_MAX];
	const char *name;
	struct stat st;
	ssize_t len;
	int fd = openat(dir, nonce, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return;
	len = pread(fd, text, sizeof(text) - 1, 0);
	text[len > 0 ? len - 1 : 0] = '\0';
	name = strrchr(text, ' ');
	if (name && fstat(fd, &st) == 0 && is_genuine(life, fd, name + 1) && is_free(fd)) {
		if (st.st_mtime == 0)
			futimens(fd, NULL);
		else if (st.st_mtime + DEAD_S < time(NULL))
			unlinkat(dir, nonce, 0);
	}
	close(fd);
}

/* Looks at the files whose nonces begin as our own, which is random: so all files are looked at in
 * time, and each client has little to do. */
static void remove_old(const struct bl_life *life)
{
	const char own = *nonce_of(life->name);
	DIR *dir = opendir(life->dir);
	struct dirent *entry;
	unsigned tests = 0;

	for (unsigned i = 0; dir && i < ENTRIES_MAX && (entry = readdir(dir)) != NULL; i++)
		if (entry->d_name[0] == own && strlen(entry->d_name) == NONCE_LEN &&
		    tests++ < TESTS_MAX)
			test_age(life, dirfd(dir), entry->d_name);
	if (dir)
		closedir(dir);
}

/* ---- the client's own file ------------------------------------------------------------------ */

static bool read_boot(struct bl_life *life)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, life->boot, sizeof(life->boot) - 1);

	if (fd >= 0)
		close(fd);
	life->boot[len > 0 ? len - 1 : 0] = '\0';
	return len > 1;
}

/* Opens the directory only to judge it. */
static bool use_dir(struct bl_life *life, const char *dir)
{
	bool good;
	int fd;

	if (snprintf(life->dir, sizeof(life->dir), "%s", dir) >= (int)sizeof(life->dir)) {
		errno = ENAMETOOLONG;
		return false;
	}
	if (mkdir(dir, 0700) != 0 && errno != EEXIST)
		return false;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	good = check_dir(fd);
	close(fd);
	return good;
}

/* Locked before it has its text: without the text nobody takes it for a proof. */
static bool fill(struct bl_life *life, int fd)
{
	static const struct timespec not_dead[2] = {{.tv_nsec = UTIME_OMIT}, {0}};
	char text[TEXT_MAX];
	size_t len = make_text(life, fd, life->name, text);

	if (len == 0 || !lock(fd))
		return false;
	life->page = mmap(NULL, 1, PROT_WRITE, MAP_SHARED, fd, 0);
	if (life->page == MAP_FAILED)
		life->page = NULL;
	return life->page && pwrite(fd, text, len, 0) == (ssize_t)len &&
	       futimens(fd, not_dead) == 0;
}

static bool make_file(struct bl_life *life)
{
	char path[PATH_SIZE];
	int fd;

	if (!make_path(life, life->name, path))
		return false;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return false;
	life->has_file = true;
	if (fill(life, fd)) {
		close(fd);
		return true;
	}
	bl_life_hide(life);
	close(fd);
	return false;
}

bool bl_life_begin(struct bl_life *ret, const char *dir, const char *name)
{
	int saved;

	memset(ret, 0, sizeof(*ret));
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	if (read_boot(ret) && use_dir(ret, dir) && make_file(ret)) {
		remove_old(ret);
		return true;
	}
	saved = errno;
	bl_life_end(ret, false);
	errno = saved;
	return false;
}

/* A program that has changed its user or its root cannot remove the file: it takes its text
 * away. */
void bl_life_hide(struct bl_life *life)
{
	char path[PATH_SIZE];

	if (!atomic_exchange(&life->has_file, false) || !make_path(life, life->name, path))
		return;
	if (unlink(path) != 0 && life->page)
		*(volatile char *)life->page = '\0';
}

void bl_life_end(struct bl_life *life, bool forked)
{
	if (!forked)
		bl_life_hide(life);
	if (life->page)
		munmap(life->page, 1);
	memset(life, 0, sizeof(*life));
}

bool bl_life_is_over(const struct bl_life *own, const char *name)
{
	char path[PATH_SIZE];
	bool over;
	int fd;

	if (!make_path(own, name, path))
		return false;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	over = is_genuine(own, fd, name) && is_free(fd);
	close(fd);
	return over;
}

int bl_life_descriptor(const struct bl_life *own)
{
	char path[PATH_SIZE];
	int fd;

	if (!own->has_file || !make_path(own, own->name, path))
		return -1;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && is_genuine(own, fd, own->name) && lock(fd))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}
