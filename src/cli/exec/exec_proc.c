/* Reads folders of /proc, where processes and open files have numbers for names. Not by readdir():
 * the guard and the command's process, before it becomes the command, take no memory and no lock.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/exec/exec.h"

/* The kernel's entries have an offset of 64 bits. With a shorter off_t, as on 32 bits without
 * _FILE_OFFSET_BITS=64, names would be looked for in the wrong place. */
_Static_assert(sizeof(((struct dirent *)0)->d_off) == 8, "struct dirent is not getdents64()'s");

void cli_read_numbers(int folder, void (*fn)(void *arg, int number), void *arg)
{
	_Alignas(struct dirent) char entries[4096];
	ssize_t got;

	lseek(folder, 0, SEEK_SET);
	while ((got = syscall(SYS_getdents64, folder, entries, sizeof(entries))) > 0)
		for (ssize_t at = 0; at < got;) {
			const struct dirent *entry = (const struct dirent *)(entries + at);

			at += entry->d_reclen;
			if (isdigit((unsigned char)entry->d_name[0]))
				fn(arg, (int)strtol(entry->d_name, NULL, 10));
		}
}
