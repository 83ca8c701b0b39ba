/* A life: a file by which other processes of this host see whether a client's processes live. The
 * kernel locks it for as long as a process of the client lives, however the process ends. So a file
 * that is there and not locked proves that the client is gone; a file that is not there proves
 * nothing.
 *
 * A wrong proof would give one lock to two owners. So a file counts only if nobody else can have
 * made it, and if it is the very file that the client made: on a local file system, owned by root
 * or by this user, with a text that names the boot of this machine, the file's own device and
 * inode, and the client. A copy, a snapshot, a file of before a reboot prove nothing.
 *
 * The lock belongs to the open file description (F_OFD_SETLK), which a mapping of the file keeps
 * open. A forked child has the mapping, too; a program that a process becomes by exec has not. No
 * descriptor stays open: a program that closes all descriptors, as daemons do, would take the lock
 * away from itself.
 *
 * All functions may block as long as the file system does. */
#ifndef BL_BASE_LIFE_H
#define BL_BASE_LIFE_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define BL_LIFE_NAME_MAX 128 /* bytes, with the end */

struct bl_life {
	char dir[PATH_MAX]; /* "": none; files of others are not looked at either */
	char boot[64];      /* which boot of this machine */
	char name[BL_LIFE_NAME_MAX];
	void *page;           /* the mapping; NULL: none */
	atomic_bool has_file; /* the file is there */
};

/* Makes the file of the client `name`, "@pid.nonce@host", in `dir`, which is made, too, if it is
 * missing. false: *ret is all zero, and errno says why; EPERM: somebody else could change what is
 * in `dir`, or it is on a file system whose locks are not to be relied on. */
bool bl_life_begin(struct bl_life *ret, const char *dir, const char *name);

/* Removes the file: nobody finds a proof from here on. This client still finds those of others.
 * Thread-safe. */
void bl_life_hide(struct bl_life *life);

/* forked: the file is the parent's, and stays. Takes an all-zero struct. */
void bl_life_end(struct bl_life *life, bool forked);

/* Is it proved that the client `name` of this host has no process any more? Thread-safe. */
bool bl_life_is_over(const struct bl_life *own, const char *name);

/* A new descriptor with O_CLOEXEC, to be closed by the caller: while any process has it, this
 * client lives for others. -1: there is no file. Thread-safe. */
int bl_life_descriptor(const struct bl_life *own);

#endif
